/* The claim of a namespace: the object `_lakefs/dummy` in it says which repository it belongs to,
 * so that no two repositories share a namespace, and none lies inside another's. It also says which
 * lake has used the namespace last, so that no lake removes files of another one
 * (docs/lake-keeping.md, "Two lakes in one namespace").
 *
 * A row `claims/<partition>` is put before the object, and the write that makes the repository
 * removes the row. A claim whose repository does not exist is void: it was left behind by a crash,
 * or by a repository that was deleted. Whoever finds a void claim removes its row before looking
 * for the repository. So the repository cannot be made any more, and its claim can be replaced.
 *
 * Any thread may call these functions. */
#ifndef LAKE_CLAIM_H
#define LAKE_CLAIM_H

#include "lake/lake.h"

/* --- making and giving up (claim.c) --- */

/* Claims the namespace of a repository that is about to be made. A bare repository may claim a
 * namespace that already holds nodes and bodies, even those of lakeFS. ERR_IN_USE: the namespace
 * belongs to a repository, or is not empty. ERR_NO_BUCKET: its bucket does not exist. */
int lake_claim_space(struct lake *l, const struct lake_repo *r, bool bare,
                     struct err *err) MUST_CHECK;
/* Gives the namespace up again. A failure is only logged, because the claim is void then. */
void lake_release_space(struct lake *l, const struct lake_repo *r);
/* Returns the name of the claim's row, which the write that makes the repository removes. */
struct kv_name lake_key_claim(struct arena *a, struct str partition);

/* --- holding (claim_hold.c) --- */

/* What this process knows of claims: its life, and at which claims it has looked. */
struct lake_claims;
struct lake_claims *lake_claims_new(void);
void lake_claims_free(struct lake_claims *c); /* stops the thread; NULL is fine */

/* Starts the thread that looks at the claims of all repositories, every claim_every_ms of the
 * lake's options. */
int lake_claims_start(struct lake *l, struct err *err) MUST_CHECK;
/* Stops that thread. It finds buckets by the routes, so it ends before a space of them is closed.
 */
void lake_claims_stop(struct lake *l);
/* How many repositories there are whose files may not be removed, by the last looks. */
uint64_t lake_claims_refused(struct lake *l);
bool lake_claim_was_refused(struct lake *l, struct str partition);

/* Tells others that this lake writes into the namespace: before the first file of this process is
 * put there. Later calls cost a look into a table. ERR_UNAVAILABLE: the claim is not there, or is
 * that of another repository. */
int lake_claim_may_write(struct lake *l, const struct lake_repo *r, struct err *err) MUST_CHECK;

/* A work that removes files of one namespace; {0} is one that has not begun. */
struct lake_claim_watch {
    bool settled;
    uint64_t asked_ms; /* by the monotonic clock */
};
/* Whether the work may remove the next file. It reads the claim if the last answer is older than a
 * second. ERR_IN_USE: another lake uses the namespace. ERR_NOT_FOUND: there is no claim, or it is
 * that of another repository. The text of both says what to do. ERR_BUSY: the claim changed lately,
 * and others have not had the time to say that they use the namespace too. ERR_NO_BUCKET. */
int lake_claim_may_remove(struct lake *l, const struct lake_repo *r, struct lake_claim_watch *w,
                          struct err *err) MUST_CHECK;

/* Makes this lake the one that may remove files, because its administrator says so. ERR_IN_USE: the
 * claim is that of another repository. */
int lake_claim_take(struct lake *l, const struct lake_repo *r, struct err *err) MUST_CHECK;

#endif
