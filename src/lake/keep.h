/* The writers' half of collection: every new reference to a commit or to the body of an object that
 * is there already.
 *
 * A run of the collector must not remove what somebody begins to refer to while the run looks
 * around. So a write that makes such a reference checks that the row `gc/state` is still the one
 * that was read before. While a run is marking, the same write leaves a mark: `gc/commits/<id>` or
 * `gc/kept/<address>`. The run can take the step from marking to removing only by changing
 * `gc/state`, so it sees every mark. docs/lake-keeping.md has the whole argument.
 *
 *     struct lake_keep keep;
 *     code = lake_keep_begin(&keep, l, a, r, err);
 *     … read the entry that is to be referred to …
 *     lake_tx_keep_address(&tx, r, &keep, address);     in the write that makes the reference
 *
 * A write of a body that was just put needs none of this: files younger than `lake.gc.grace` are
 * never removed. */
#ifndef LAKE_KEEP_H
#define LAKE_KEEP_H

#include "lake/lake.h"

struct lake_tx;

struct lake_keep {
    struct str stamp;  /* of the row gc/state */
    bool is_marking;   /* references leave marks */
    bool is_removing;  /* bodies that nothing referred to are being removed */
    bool is_idle;      /* no run is under way */
    int64_t cutoff_ms; /* a run leaves younger files alone */
    uint64_t number;   /* grows with every change of the state */
    struct str run;    /* the run that is under way */
};

/* Reads the state of the repository's collector. An address must be read behind this call. */
int lake_keep_begin(struct lake_keep *out, struct lake *l, struct arena *a,
                    const struct lake_repo *r, struct err *err) MUST_CHECK;

/* Adds the check of the state to the write. */
void lake_tx_keep_state(struct lake_tx *tx, const struct lake_repo *r,
                        const struct lake_keep *keep);
/* Adds what keeps a commit; an empty id is none. ERR_GONE: the commit has expired, and its objects
 * may be removed. If the write is refused afterwards, begin again with lake_keep_begin(). */
int lake_tx_keep_commit(struct lake_tx *tx, struct lake *l, const struct lake_repo *r,
                        const struct lake_keep *keep, struct str id, struct err *err) MUST_CHECK;
/* Adds what a commit needs that this write makes, and whose tree was built behind `keep`: a mark
 * while a run is marking. A commit of this id that has expired lives again. ERR_BUSY: it cannot
 * while a run is under way. */
int lake_tx_keep_new(struct lake_tx *tx, struct lake *l, const struct lake_repo *r,
                     const struct lake_keep *keep, struct str id, struct err *err) MUST_CHECK;
/* Adds what keeps the body of an entry that was read behind lake_keep_begin(), from a ref that had
 * it then. A body outside of the namespace needs nothing. */
void lake_tx_keep_body(struct lake_tx *tx, const struct lake_repo *r, const struct lake_keep *keep,
                       const struct lake_entry *e);

/* --- nodes that are put --- */

/* Whoever builds a tree reads the state before the first node is put, and the write that publishes
 * the tree checks that it is still that state (lake/change.h). */

/* Takes the node off the list of dead files, so that it can be put, if a run is about to remove the
 * file of its name. Waits if that file is just being removed. ERR_AGAIN: the state is not the one
 * that was read before. ERR_BUSY: the file has not been removed for a long time. */
int lake_keep_node(const struct lake_keep *keep, struct lake *l, const struct lake_repo *r,
                   struct str id, struct err *err) MUST_CHECK;
/* Whether nodes that were put under `old` are safe under `now` too. If they are not, the tree must
 * be built again. */
bool lake_keep_covers(const struct lake_keep *old, const struct lake_keep *now);

/* Gives the key of an entry's body below the namespace. Returns false when the body lies outside.
 */
bool lake_entry_below(const struct lake_repo *r, const struct lake_entry *e, struct str *key);

/* Refuses the body of an entry that no ref had, such as one that was uploaded to a signed address.
 * `modified_ms` is the time of the file. ERR_BUSY: a collection may be about to remove it. */
int lake_keep_check_file(const struct lake_keep *keep, const struct lake_repo *r,
                         const struct lake_entry *e, int64_t modified_ms,
                         struct err *err) MUST_CHECK;

/* ERR_GONE: the ref leads to a commit that has expired. The head of a branch never has. */
int lake_check_expired(struct lake *l, struct arena *a, const struct lake_repo *r,
                       const struct lake_ref *ref, struct err *err) MUST_CHECK;

#endif
