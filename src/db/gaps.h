/* A cache of gaps. A gap [from, to) says that no row lies between `from` and `to`, and that `to` is
 * the key of a row: a seek found it, and the next seek need not search again. A listing that skips
 * from one common prefix to the next asks here first; a seek in RocksDB looks into every run of
 * files. Each family that asks for it has one. For files in db/ only.
 *
 * The cache is coherent, as the row cache of rows.h is:
 *   G1  a gap that a change is about to make wrong (it writes a key in [from, to), or deletes `to`)
 *       leaves the cache before the change is committed;
 *   G2  a gap that a reader found enters the cache only if no key in [from, to] was written since
 *       before its iterator was made, and none is about to be written: readers register first, and
 *       get every key that is pending then or written later;
 *   G3  so a gap that is here is true of the committed rows at every moment that it is here;
 *   G4  gaps do not overlap: one that ends at a row is the only one that does.
 * Rows that vanish without a write (db_cf_spec.expired) must not be in the range of a reader.
 *
 * Any thread; of each batch gaps_write() comes before gaps_settled(). */
#ifndef DB_GAPS_H
#define DB_GAPS_H

#include "base/buf.h"
#include "base/list.h"

struct gaps;

/* At most about `bytes` of memory. */
struct gaps *gaps_new(size_t bytes);
void gaps_free(struct gaps *g); /* NULL is fine */
size_t gaps_bytes(struct gaps *g);

/* A bounded list of keys. Past the bound it is `lost`: any key may have been written. */
struct gaps_keys {
    struct buf bytes; /* for each key its length (size_t), then its bytes */
    size_t count;
    bool lost;
};

/* An iterator that may find gaps; registered from before the iterator is made until it is closed.
 */
struct gaps_reader {
    struct list node;
    struct str from, to;      /* keys that the iterator may see; borrowed; empty `to`: no end */
    struct gaps_keys written; /* those of them that were written since gaps_enter(); guarded by the
                                 lock of the gaps */
};
void gaps_enter(struct gaps *g, struct gaps_reader *r, struct str from, struct str to);
void gaps_leave(struct gaps *g, struct gaps_reader *r);

/* True when it is known which row is the first at or behind `from`: its key replaces *row. */
bool gaps_find(struct gaps *g, struct str from, struct buf *row);
/* The reader's iterator found that `row` is the first row at or behind `from`. */
void gaps_keep(struct gaps *g, const struct gaps_reader *r, struct str from, struct str row);

/* gaps_write(): a change puts or deletes the key in one of the batches under way. gaps_settled():
 * that batch is committed or has failed. */
enum { GAPS_BATCHES = 3 };
enum gaps_writing { GAPS_PUT, GAPS_DELETE };
void gaps_write(struct gaps *g, size_t batch, struct str key, enum gaps_writing what);
void gaps_settled(struct gaps *g, size_t batch);

/* Called before and after a write that changes a whole range. */
void gaps_range_begin(struct gaps *g);
void gaps_range_end(struct gaps *g);

#endif
