/* Allocation that ends the process when there is no memory, and bug(), which aborts it. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "weir: bug at %s:%d: %s\n", file, line, what);
    abort();
}

static void *memory_or_abort(void *p)
{
    if (!p) {
        fputs("weir: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *xcalloc(size_t count, size_t size)
{
    return memory_or_abort(calloc(count ? count : 1, size ? size : 1));
}

void *xzalloc(size_t size)
{
    return memory_or_abort(calloc(1, size ? size : 1));
}

void *xrealloc(void *p, size_t size)
{
    return memory_or_abort(realloc(p, size ? size : 1));
}

char *xstrdup(const char *s)
{
    return memory_or_abort(strdup(s));
}

void secure_zero(void *p, size_t len)
{
    if (len)
        explicit_bzero(p, len);
}
