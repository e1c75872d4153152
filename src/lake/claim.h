/* The claim of a namespace: the object `_lakefs/dummy` in it says which repository it belongs to,
 * so that no two repositories share a namespace, and none lies inside another's.
 *
 * A row `claims/<partition>` is put before the object, and the write that makes the repository
 * removes the row. A claim whose repository does not exist is void: it was left behind by a crash,
 * or by a repository that was deleted. Whoever finds a void claim removes its row before looking
 * for the repository. So the repository cannot be made any more, and its claim can be replaced. */
#ifndef LAKE_CLAIM_H
#define LAKE_CLAIM_H

#include "lake/lake.h"

/* Claims the namespace of a repository that is about to be made. A bare repository may claim a
 * namespace that holds nodes and bodies already, also those of lakeFS. ERR_IN_USE: the namespace
 * belongs to a repository, or is not empty. ERR_NO_BUCKET: its bucket does not exist. */
int lake_claim_space(struct lake *l, const struct lake_repo *r, bool bare,
                     struct err *err) MUST_CHECK;
/* Gives the namespace up again. A failure is logged: the claim is void then. */
void lake_release_space(struct lake *l, const struct lake_repo *r);
/* Whether the claim that is there is the repository's. A namespace without a claim is nobody's. */
int lake_claim_is_own(struct lake *l, const struct lake_repo *r, bool *out,
                      struct err *err) MUST_CHECK;
/* Returns the name of the claim's row, which the write that makes the repository removes. */
struct kv_name lake_key_claim(struct arena *a, struct str partition);

#endif
