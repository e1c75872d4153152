/* The claim of a namespace: the object `_lakefs/dummy` in it says which repository the namespace
 * belongs to, so that no two repositories share a namespace, and no namespace lies inside another
 * one. It also says which lake has used the namespace last, so that no lake removes files of
 * another lake (docs/lake-keeping.md, "Two lakes in one namespace"). For that the object names a
 * *life*, which is the random id of one start of a weir over the lake's records. The records have a
 * row for each of their own lives, so an unknown life is that of another lake.
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

/* The life of this process, and the claims that it has read so far, with the results. */
struct lake_claims;
struct lake_claims *lake_claims_new(void);
void lake_claims_free(struct lake_claims *c); /* stops the thread; NULL is fine */

/* Starts the thread that reads and judges the claims of all repositories, once in every
 * claim_every_ms (struct lake_options). */
int lake_claims_start(struct lake *l, struct err *err) MUST_CHECK;
/* Stops that thread. The thread finds buckets by the routes, so it must end before a space of
 * buckets is closed. */
void lake_claims_stop(struct lake *l);
/* Returns the number of repositories whose files may not be removed, as their claims said when this
 * process last read them. */
uint64_t lake_claims_refused(struct lake *l);
bool lake_claim_was_refused(struct lake *l, struct str partition);

/* Writes into the claim that this lake uses the namespace, so that other lakes see it. Callers must
 * call this before they put a file there; only the first call for a namespace reads the claim, and
 * later calls look into a table in memory. ERR_UNAVAILABLE: the claim is not there, or is that of
 * another repository. */
int lake_claim_may_write(struct lake *l, const struct lake_repo *r, struct err *err) MUST_CHECK;

/* The state of a caller that removes files of one namespace; {0}: it has not begun. */
struct lake_claim_watch {
    bool settled;
    uint64_t asked_ms; /* when the claim was last read, by the monotonic clock */
};
/* Returns 0 if the caller may remove the next file. Reads the claim if the last answer is older
 * than a second. ERR_IN_USE: another lake uses the namespace. ERR_NOT_FOUND: there is no claim, or
 * it is that of another repository. The text of both says what to do. ERR_BUSY: the claim was
 * changed lately, and other lakes have not had the time to write that they use the namespace too.
 * ERR_NO_BUCKET: the namespace's bucket does not exist. */
int lake_claim_may_remove(struct lake *l, const struct lake_repo *r, struct lake_claim_watch *w,
                          struct err *err) MUST_CHECK;

/* Gives this lake the right to remove files of the namespace, and takes it from other lakes; for a
 * call of the administrator. ERR_IN_USE: the claim is that of another repository. */
int lake_claim_take(struct lake *l, const struct lake_repo *r, struct err *err) MUST_CHECK;

#endif
