/* Amending an object: its entry gets other tags or other metadata, and its bytes stay.
 *
 * The entry that is there is read, changed, and staged if the branch still has exactly that entry.
 * If another write was faster, its entry is read and changed instead. So an amendment neither
 * brings old bytes back, nor undoes another amendment.
 *
 * Any thread may call; calls may block. Results are in the arena. */
#ifndef LAKE_AMEND_H
#define LAKE_AMEND_H

#include "lake/lake.h"

struct lake_amendment {
    /* Changes the entry, but neither its address nor its size. Called once for every try. */
    int (*change)(void *ctx, struct lake_entry *e, struct err *err);
    lake_judge_fn *judge; /* asked about the entry that is there; NULL: no condition */
    void *ctx;            /* of both functions */
};
/* Errors: those of lake_stat(), of lake_stage() and of the two functions. ERR_BUSY: other writes of
 * the path were faster again and again, or a collection began meanwhile. */
int lake_amend(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
               struct str path, const struct lake_amendment *m, struct err *err) MUST_CHECK;

#endif
