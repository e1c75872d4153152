/* Three-way merges of trees that collect the conflicting paths. For the files of src/lake/
 * alone. */
#ifndef LAKE_CONFLICTS_H
#define LAKE_CONFLICTS_H

#include "lake/lake_int.h"

struct conflict_merge {
    /* the caller sets its ctx to this struct, and its conflict() to conflicts_add() */
    struct tree_merge merge;
    struct lake_conflicts *conflicts; /* gets the paths; NULL: they are not collected */
    struct arena *arena;              /* memory of the paths; set by conflicts_merge() */
    void *ctx;                        /* for the caller's use */
};

/* Merges the trees, whose nodes are in `store`; *root is the root of the result, in the arena.
 * ERR_CONFLICT: the paths are in m->conflicts. */
int conflicts_merge(struct conflict_merge *m, struct lake *l, struct arena *a,
                    struct tree_store *store, struct str *root, struct err *err) MUST_CHECK;
void conflicts_add(void *ctx, struct str path);

#endif
