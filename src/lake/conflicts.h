/* Three-way merges of trees that collect the paths of their conflicts. For the files of src/lake/
 * alone. */
#ifndef LAKE_CONFLICTS_H
#define LAKE_CONFLICTS_H

#include "lake/lake_int.h"

struct conflict_merge {
    struct tree_merge merge; /* its ctx is this struct, its conflict() is conflicts_add() */
    struct lake_conflicts *conflicts; /* out; NULL: the paths are not wanted */
    struct arena *arena;              /* set by conflicts_merge() */
    void *ctx;                        /* the caller's own */
    const struct lake_keep *keep;     /* of the change that the merge is for */
};

/* Merges; *root is the tree, in the arena. ERR_CONFLICT: the paths are in m->conflicts. */
int conflicts_merge(struct conflict_merge *m, struct lake *l, struct arena *a,
                    const struct lake_repo *r, struct str *root, struct err *err) MUST_CHECK;
void conflicts_add(void *ctx, struct str path);

#endif
