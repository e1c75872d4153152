/* The claim of a namespace: the object `_lakefs/dummy` in it says which repository it belongs to.
 * It is put only if it is absent, so that no two repositories share a namespace. */
#ifndef LAKE_CLAIM_H
#define LAKE_CLAIM_H

#include "lake/lake.h"

/* ERR_IN_USE: the namespace belongs to a repository. ERR_NO_BUCKET: its bucket does not exist. */
int lake_claim_space(struct lake *l, const struct lake_repo *r, struct err *err) MUST_CHECK;
/* Gives the namespace up again. A failure is logged: the namespace then stays claimed. */
void lake_release_space(struct lake *l, const struct lake_repo *r);

#endif
