/* Names of hosts for tests. */
#include "unit/kv/test_names.h"

#include "unit/test.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>

typedef int lookup_fn(const char *host, const char *service, const struct addrinfo *hints,
                      struct addrinfo **out);

static _Atomic(bool) speaks;
static _Atomic(unsigned) waiting;

static int silent_lookup(const char *service, const struct addrinfo *hints, struct addrinfo **out,
                         lookup_fn *real)
{
    waiting++;
    CHECK_SOON(speaks);
    int failure = real("127.0.0.1", service, hints, out);
    waiting--;
    return failure;
}

static int two_lookup(const char *service, const struct addrinfo *hints, struct addrinfo **out,
                      lookup_fn *real)
{
    int failure = real("127.0.0.2", service, hints, out);
    struct addrinfo *last = failure ? NULL : *out;

    while (last && last->ai_next)
        last = last->ai_next;
    return last ? real("127.0.0.1", service, hints, &last->ai_next) : failure;
}

/* Takes the place of the C library's, as the linker finds the program's functions first. */
int getaddrinfo(const char *restrict host, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict out)
{
    lookup_fn *real;
    bool is_name = host && !(hints && hints->ai_flags & AI_NUMERICHOST);

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (is_name && strcmp(host, "silent.test") == 0)
        return silent_lookup(service, hints, out, real);
    if (is_name && strcmp(host, "two.test") == 0)
        return two_lookup(service, hints, out, real);
    if (is_name && strcmp(host, "gone.test") == 0)
        return EAI_NONAME;
    return real(host, service, hints, out);
}

void names_speak(void)
{
    speaks = true;
    CHECK_SOON(waiting == 0);
}

unsigned names_waiting(void)
{
    return waiting;
}
