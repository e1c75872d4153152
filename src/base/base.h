/* Helpers that every file may use: fixed-size integers, and small functions that fit no other
 * header. tools/lint lists the functions of the C library that weir does not use (strcpy, sprintf,
 * atoi, gmtime, ...). */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define MUST_CHECK        __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NORETURN          __attribute__((noreturn))

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Prints where the bug is and aborts the process, in every build. The function is for bugs in weir
 * itself; bad input is never a bug. */
NORETURN void bug(const char *file, int line, const char *what);
#define BUG_ON(cond)                                                                               \
    do {                                                                                           \
        if (__builtin_expect(!!(cond), 0))                                                         \
            bug(__FILE__, __LINE__, #cond);                                                        \
    } while (0)

/* These functions allocate small things of fixed size. The process ends when there is no memory.
 * For a size that came from a peer use struct buf or struct arena, which have a limit. The memory
 * of xzalloc and xcalloc is zeroed. The bytes that xrealloc adds are not. */
void *xzalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull)); /* an array */
void *xrealloc(void *p, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));

/* Overwrites a secret with zeros. The compiler does not optimise this call away. */
void secure_zero(void *p, size_t len);

#endif
