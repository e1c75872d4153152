/* A typed growable array.
 *
 *     VEC(int) numbers = {0};
 *     vec_push(&numbers, 7);
 *     vec_each(&numbers, int *, n) sum += *n;
 *     vec_release(&numbers);
 *
 * Pointers to items are valid until the next push. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t len, cap;                                                                           \
    }

static inline void *vec_grown(void *items, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return items;
    *cap = size_max(need, size_max(8, *cap * 2));
    BUG_ON(*cap > SIZE_MAX / size);
    return xrealloc(items, *cap * size);
}

/* Makes room for `n` more items. */
#define vec_grow(v, n)                                                                             \
    ((v)->items = vec_grown((v)->items, &(v)->cap, (v)->len + (n), sizeof(*(v)->items)))

#define vec_push(v, item)                                                                          \
    do {                                                                                           \
        vec_grow(v, 1);                                                                            \
        (v)->items[(v)->len++] = (item);                                                           \
    } while (0)

#define vec_pop(v)  ((v)->items[--(v)->len])
#define vec_last(v) (&(v)->items[(v)->len - 1])

/* Removes item `i` and keeps the order of the other items. */
#define vec_remove(v, i)                                                                           \
    do {                                                                                           \
        size_t at_ = (i);                                                                          \
        memmove(&(v)->items[at_], &(v)->items[at_ + 1], (--(v)->len - at_) * sizeof(*(v)->items)); \
    } while (0)

#define vec_release(v)                                                                             \
    do {                                                                                           \
        free((v)->items);                                                                          \
        (v)->items = NULL;                                                                         \
        (v)->len = (v)->cap = 0;                                                                   \
    } while (0)

/* Iterates over the items. The macro tests `it` because an empty vector has a NULL pointer, and
 * adding 0 to NULL is undefined. */
#define vec_each(v, type, it) for (type it = (v)->items; it && it < (v)->items + (v)->len; it++)

#endif
