/* The chosen paths of a commit that takes only some of the staged changes. A path that ends with
 * '/' stands for all paths below it. */
#ifndef LAKE_CHOSEN_H
#define LAKE_CHOSEN_H

#include "base/arena.h"
#include "base/err.h"

struct chosen {
    bool is_some;      /* false: all paths are chosen */
    struct str *paths; /* sorted; none is below another one */
    size_t count;
};

/* Sorts the paths and drops those below other ones. `paths` NULL: all paths are chosen. The array
 * is copied, the strings are borrowed. */
int chosen_make(struct chosen *out, struct arena *a, const struct str *paths, size_t count,
                struct err *err) MUST_CHECK;
bool chosen_has(const struct chosen *c, struct str path);

#endif
