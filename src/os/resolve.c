/* Looks up host names, with a deadline. */
#include "os/resolve.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LOOKUPS = 64, LOOKUP_STACK = 256 * 1024, SERVICE_LEN = 8 };

/* One look-up, shared by the caller and the thread that runs the look-up. The last user frees it.
 */
struct lookup {
    struct mutex lock;
    struct cond changed;
    struct addrinfo *list;
    int failure; /* the result of getaddrinfo() */
    bool done, abandoned;
    char service[SERVICE_LEN];
    char host[NI_MAXHOST];
};

/* The number of look-ups that run in the process, at most MAX_LOOKUPS. There is a limit because
 * look-ups run on after their callers have given up. */
static _Atomic(unsigned) running;

static void lookup_free(struct lookup *l)
{
    if (l->list)
        freeaddrinfo(l->list);
    cond_release(&l->changed);
    mutex_release(&l->lock);
    free(l);
}

static void lookup_thread(void *ctx)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG};
    struct lookup *l = ctx;
    struct addrinfo *list = NULL;
    int failure = getaddrinfo(l->host, l->service, &hints, &list);
    bool abandoned;

    atomic_fetch_sub(&running, 1);
    mutex_lock(&l->lock);
    l->list = failure ? NULL : list;
    l->failure = failure;
    l->done = true;
    abandoned = l->abandoned;
    cond_signal(&l->changed);
    mutex_unlock(&l->lock);
    if (abandoned)
        lookup_free(l);
}

static int lookup_start(struct lookup *l, struct err *err)
{
    struct thread thread;
    int code;

    if (atomic_fetch_add(&running, 1) >= MAX_LOOKUPS)
        code = err_set(err, ERR_BUSY, "%d name look-ups hang already", MAX_LOOKUPS);
    else
        code = thread_start(&thread, "resolve", LOOKUP_STACK, lookup_thread, l, err);
    if (code < 0)
        atomic_fetch_sub(&running, 1);
    else
        pthread_detach(thread.id);
    return code;
}

/* Waits for the answer. When the wait fails, the look-up belongs to its thread, which then frees
 * it. */
static int lookup_wait(struct lookup *l, struct addrinfo **out, const struct sock_limit *limit)
{
    int code = 0;

    mutex_lock(&l->lock);
    while (!l->done && code == 0)
        if (!cond_wait_until(&l->changed, &l->lock, sock_limit_next(limit)) && !l->done)
            code = sock_limit_check(limit);
    l->abandoned = code < 0;
    *out = l->list;
    if (code == 0)
        l->list = NULL;
    mutex_unlock(&l->lock);
    return code;
}

static int lookup_name(struct addrinfo **out, const char *host, const char *service,
                       const struct sock_limit *limit, struct err *err)
{
    struct lookup *l;
    int code;

    if (strlen(host) >= NI_MAXHOST)
        return err_set(err, ERR_INVALID, "the name of a host has at most %d bytes", NI_MAXHOST - 1);
    l = xzalloc(sizeof(*l));
    mutex_init(&l->lock, "resolve");
    cond_init(&l->changed);
    memcpy(l->host, host, strlen(host) + 1);
    memcpy(l->service, service, SERVICE_LEN);
    code = lookup_start(l, err);
    if (code == 0) {
        code = lookup_wait(l, out, limit);
        if (code == ERR_TIMEOUT)
            return err_set(err, code, "looking up %s took too long", host);
        if (code < 0)
            return err_code(err, code);
        if (l->failure)
            code =
                err_set(err, ERR_UNAVAILABLE, "looking up %s: %s", host, gai_strerror(l->failure));
    }
    lookup_free(l);
    return code;
}

int resolve_host(struct addrinfo **out, const char *host, uint16_t port,
                 const struct sock_limit *limit, struct err *err)
{
    const struct addrinfo numeric = {.ai_socktype = SOCK_STREAM,
                                     .ai_flags = AI_NUMERICSERV | AI_NUMERICHOST};
    char service[SERVICE_LEN] = "";

    snprintf(service, sizeof(service), "%u", port);
    if (getaddrinfo(host, service, &numeric, out) == 0)
        return 0;
    return lookup_name(out, host, service, limit, err);
}
