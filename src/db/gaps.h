/* A cache of gaps. A gap [from, to) says that no row has a key in [from, to), and that `to` is the
 * key of a row. A seek from `from` has found that row; the next seek from there can use the gap
 * instead of searching again. A listing that skips from one common prefix to the next asks this
 * cache first, because a seek in RocksDB looks into every run of files. Each family with
 * db_cf_spec.skips has such a cache. Only files in db/ may include this.
 *
 * The cache is coherent, as the row cache of rows.h is:
 *   G1  a gap that a change would make wrong (it writes a key in [from, to), or deletes `to`)
 * leaves the cache before the change is committed; G2  a gap that a reader found enters the cache
 * only if no key in [from, to] was pending when the reader began, or was written since. To check
 * this, a reader registers before it makes its iterator, and gets every key that is pending then or
 * written later; G3  so a gap in the cache always agrees with the committed rows; G4  gaps do not
 * overlap, and at most one gap ends at a row. A reader's range must not have rows that vanish
 * without a write (db_cf_spec.expired).
 *
 * Any thread may call these functions. For each batch, gaps_write() is called before
 * gaps_settled(). */
#ifndef DB_GAPS_H
#define DB_GAPS_H

#include "base/buf.h"
#include "base/list.h"

struct gaps;

/* Makes a cache that uses at most about `bytes` of memory. */
struct gaps *gaps_new(size_t bytes);
void gaps_free(struct gaps *g); /* `g` may be NULL */
size_t gaps_bytes(struct gaps *g);

/* A bounded list of written keys. When it overflows, `lost` is true: any key may have been written.
 */
struct gaps_keys {
    struct buf bytes; /* for each key its length (size_t), then its bytes */
    size_t count;
    bool lost;
};

/* A reader whose iterator may find gaps. It registers before RocksDB's iterator is made, and stays
 * registered until that iterator is closed. */
struct gaps_reader {
    struct list node;
    struct str from, to; /* keys that the iterator may see; borrowed; empty `to`: no end */
    /* Keys of that range that were pending at gaps_enter() or written since; guarded by the lock of
     * the gaps. */
    struct gaps_keys written;
};
void gaps_enter(struct gaps *g, struct gaps_reader *r, struct str from, struct str to);
void gaps_leave(struct gaps *g, struct gaps_reader *r);

/* Looks up the first row whose key is `from` or greater. When the cache knows the row, the function
 * returns true, and the row's key replaces *row. */
bool gaps_find(struct gaps *g, struct str from, struct buf *row);
/* Adds a gap: the reader's iterator found that `row` is the first row whose key is `from` or
 * greater. */
void gaps_keep(struct gaps *g, const struct gaps_reader *r, struct str from, struct str row);

/* gaps_write() tells the cache that a change puts or deletes the key in the batch with this number.
 * gaps_settled() tells the cache that the batch is committed or has failed. */
enum { GAPS_BATCHES = 3 };
enum gaps_writing { GAPS_PUT, GAPS_DELETE };
void gaps_write(struct gaps *g, size_t batch, struct str key, enum gaps_writing what);
void gaps_settled(struct gaps *g, size_t batch);

/* Call these before and after deleting a range of rows. */
void gaps_range_begin(struct gaps *g);
void gaps_range_end(struct gaps *g);

#endif
