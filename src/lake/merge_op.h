/* A merge whose publishing write also makes a put of the caller, as the merge of a pull request
 * does. For the files of src/lake/ alone. */
#ifndef LAKE_MERGE_OP_H
#define LAKE_MERGE_OP_H

#include "lake/head.h"

struct merging {
    struct str source; /* the ref expression */
    struct str dest;   /* name of the branch */
    const struct lake_merge_options *o;
    struct lake_conflicts *conflicts; /* as in lake_merge() */
    /* Sets h->also before each try to publish the merge's commit `c`; its error ends the merge.
     * NULL: nothing else is put. */
    int (*add)(void *ctx, struct head_change *h, const struct lake_commit *c, struct err *err);
    void *ctx;
};
/* Makes the merge. The results and errors are those of lake_merge(). */
int merging_run(struct merging *g, struct lake *l, struct arena *a, const struct lake_repo *r,
                struct lake_commit *out, struct err *err) MUST_CHECK;

#endif
