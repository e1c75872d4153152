/* How writers and collections work together. A write may make a new reference to a commit, or to a
 * body that exists already, while a run of the collector looks for files to remove. These functions
 * *keep* the commit or the body, so that the run does not remove it.
 *
 * A write that makes such a reference checks that the row `gc/state` has not changed since the
 * writer read it. A struct lake_keep has that state. While a run is marking, the same write also
 * leaves a mark: `gc/commits/<id>` or `gc/kept/<address>`. The run can go from marking to removing
 * only by changing `gc/state`, so it sees every mark. docs/lake-keeping.md has the whole argument.
 *
 *     struct lake_keep keep;
 *     code = lake_keep_begin(&keep, l, a, r, err);
 *     … read the entry that is to be referred to …
 *     lake_tx_keep_state(&tx, r, &keep);           in the write that makes the reference
 *     lake_tx_keep_body(&tx, r, &keep, &entry);    in the same write
 *
 * A write of a body that was just put needs none of this: files younger than `lake.gc.grace` are
 * never removed. */
#ifndef LAKE_KEEP_H
#define LAKE_KEEP_H

#include "lake/lake.h"

struct lake_tx;

struct lake_keep {
    struct str stamp;  /* the row gc/state as it was read */
    bool is_marking;   /* a run is marking, so writes leave marks for their new references */
    bool is_removing;  /* bodies without references are being removed */
    bool is_idle;      /* no run is under way */
    int64_t cutoff_ms; /* a run leaves younger files alone */
    uint64_t number;   /* grows with every change of the state */
    struct str run;    /* the run that is under way */
};

/* Reads the state of the repository's collector. The caller must read the entry whose body it will
 * refer to after this call, not before. */
int lake_keep_begin(struct lake_keep *out, struct lake *l, struct arena *a,
                    const struct lake_repo *r, struct err *err) MUST_CHECK;

/* Adds the check to the write: the state must still be the one that was read. Every write that
 * makes a reference needs this check; the next three functions add only marks. */
void lake_tx_keep_state(struct lake_tx *tx, const struct lake_repo *r,
                        const struct lake_keep *keep);
/* Adds the mark that keeps a commit, if a run is marking. Does nothing for an empty id. ERR_GONE:
 * the commit has expired, and its objects may be removed. If the write is refused afterwards, begin
 * again with lake_keep_begin(). */
int lake_tx_keep_commit(struct lake_tx *tx, struct lake *l, const struct lake_repo *r,
                        const struct lake_keep *keep, struct str id, struct err *err) MUST_CHECK;
/* Adds the mark that keeps a commit that this write makes, if a run is marking. The commit's tree
 * was built after `keep` was read. If a commit of this id has expired, it becomes live again.
 * ERR_BUSY: it has expired, but cannot become live again while a run is under way. */
int lake_tx_keep_new(struct lake_tx *tx, struct lake *l, const struct lake_repo *r,
                     const struct lake_keep *keep, struct str id, struct err *err) MUST_CHECK;
/* Adds the mark that keeps the body of an entry, if a run is marking. The caller has read the entry
 * after lake_keep_begin(), from a ref that had it at that time. A body outside of the namespace
 * needs no mark. */
void lake_tx_keep_body(struct lake_tx *tx, const struct lake_repo *r, const struct lake_keep *keep,
                       const struct lake_entry *e);

/* --- nodes that are put --- */

/* A caller that builds a tree reads the state before it puts the first node. The write that
 * publishes the tree checks that the state has not changed (lake/change.h). */

/* Prepares the put of a node: if a run is about to remove the file of that name, takes it off the
 * list of dead files. Waits if the file is being removed just now. ERR_AGAIN: the state of the
 * collector has changed, so the caller must begin again with lake_keep_begin(). ERR_BUSY: the
 * removal of the file has not ended after a long wait. */
int lake_keep_node(const struct lake_keep *keep, struct lake *l, const struct lake_repo *r,
                   struct str id, struct err *err) MUST_CHECK;
/* Whether nodes that were put when the collector was in the state `old` are safe in the state `now`
 * too. If they are not, the tree must be built again. */
bool lake_keep_covers(const struct lake_keep *old, const struct lake_keep *now);

/* Gives the key of an entry's body relative to the namespace. Returns false when the body is
 * outside of the namespace. */
bool lake_entry_below(const struct lake_repo *r, const struct lake_entry *e, struct str *key);

/* Checks the body of an entry that no ref had, such as a body that was uploaded to a signed
 * address. `modified_ms` is the time of the file. ERR_BUSY: a collection may be about to remove
 * it. */
int lake_keep_check_file(const struct lake_keep *keep, const struct lake_repo *r,
                         const struct lake_entry *e, int64_t modified_ms,
                         struct err *err) MUST_CHECK;

/* Checks that the commit of a ref has not expired. ERR_GONE: it has. The head of a branch never
 * expires. */
int lake_check_expired(struct lake *l, struct arena *a, const struct lake_repo *r,
                       const struct lake_ref *ref, struct err *err) MUST_CHECK;

#endif
