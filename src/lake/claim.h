/* The claim of a namespace: the object `_lakefs/dummy` in it says which repository the namespace
 * belongs to, so that no two repositories share a namespace, and no namespace lies inside another
 * one. It also says which lake has used the namespace last, so that no lake removes files of
 * another lake (docs/lake-keeping.md, "Two lakes in one namespace"). For that the object has the id
 * of a *life*. Each start of weir on the lake's records begins a life with a random id, and puts a
 * row for the life into the records before it writes the id into a claim. So a life that has no row
 * in this lake's records belongs to another lake.
 *
 * A row `claims/<partition>` is put before the object, and the write that makes the repository
 * removes the row. A claim is *void* if its repository does not exist: the claim was left behind by
 * a crash, or by a repository that was deleted. A caller that finds a claim and thinks that it may
 * be void removes the row of that claim first, and looks for the repository afterwards. Without the
 * row the repository can no longer be made, so the claim can be replaced.
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
/* Removes the claim of the repository. A failure is only logged: the claim is void then, so another
 * repository can replace it. */
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
/* Stops that thread. Call it before lake_space_close(): the thread finds buckets by the routes,
 * which use the space. */
void lake_claims_stop(struct lake *l);
/* Returns the number of repositories whose files may not be removed, by the claims as this process
 * read them last. */
uint64_t lake_claims_refused(struct lake *l);
bool lake_claim_was_refused(struct lake *l, struct str partition);

/* Makes sure that the claim says that this lake uses the namespace, so that other lakes see it.
 * Call it before you put a file into the namespace. Only the first call for a namespace reads the
 * claim; later calls look into a table in memory. ERR_UNAVAILABLE: the claim is absent, or is that
 * of another repository. */
int lake_claim_may_write(struct lake *l, const struct lake_repo *r, struct err *err) MUST_CHECK;

/* The state of a caller that removes files of one namespace; {0}: it has not begun. */
struct lake_claim_watch {
    bool settled;
    uint64_t asked_ms; /* when the claim was last read, by the monotonic clock */
};
/* Returns 0 if the caller may remove the next file. Reads the claim if it was last read more than a
 * second ago. ERR_IN_USE: another lake uses the namespace. ERR_NOT_FOUND: there is no claim, or it
 * is that of another repository. The text of both errors says what to do. ERR_BUSY: the claim was
 * changed so lately that another lake may not yet have written that it uses the namespace too.
 * ERR_NO_BUCKET: the namespace's bucket does not exist. */
int lake_claim_may_remove(struct lake *l, const struct lake_repo *r, struct lake_claim_watch *w,
                          struct err *err) MUST_CHECK;

/* Gives this lake the right to remove files of the namespace, and takes it from other lakes. Only
 * an administrator asks for this. ERR_IN_USE: the claim is that of another repository. */
int lake_claim_take(struct lake *l, const struct lake_repo *r, struct err *err) MUST_CHECK;

#endif
