/* Amending an object: its entry gets other tags or other metadata, and its bytes stay.
 *
 * The present entry is read, changed, and staged on the condition that the branch still has exactly
 * that entry. If another write was faster, its entry is read and changed instead. So an amendment
 * neither brings old bytes back nor undoes another amendment.
 *
 * Any thread may call these functions; they may block. Results are in the arena. */
#ifndef LAKE_AMEND_H
#define LAKE_AMEND_H

#include "lake/lake.h"

struct lake_amendment {
    /* Changes the entry, but neither its address nor its size. Called once for every try. */
    int (*change)(void *ctx, struct lake_entry *e, struct err *err);
    lake_judge_fn *judge; /* judges the present entry; NULL: no condition */
    void *ctx;            /* passed to both functions */
};
/* Amends the object. Errors: those of lake_stat(), lake_stage() and the two functions. ERR_BUSY:
 * other writes of the path were faster again and again, or a collection began meanwhile. */
int lake_amend(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
               struct str path, const struct lake_amendment *m, struct err *err) MUST_CHECK;

#endif
