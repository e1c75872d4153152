/* A cache of rows with their committed values, in front of RocksDB. A hit costs a hash, a lock and
 * a copy, a third of a microsecond; RocksDB's own caches take two microseconds. The cache may also
 * know that there is no row of some key, and the rules below hold for this knowledge, too. Only
 * files in db/ may include this.
 *
 * The table of the cache is cut into *stripes*, each with a lock. The cache is coherent:
 *   R1  a row that a write will change leaves the cache before the write begins. While the write
 * runs, nothing enters the row's stripe, so a key that is being written is read from RocksDB; R2  a
 * row that a reader fetched enters only if no write has touched its stripe since the moment before
 * the fetch; R3  so a row in the cache is always the committed row. A snapshot may use it as long
 * as no write has begun since the snapshot was taken. RocksDB's own row cache is not used, because
 * it ignores range deletes.
 *
 * Any thread may call these functions. Expired rows stay in the cache until other rows replace
 * them; readers check the expiry themselves, as they do for rows on disk. */
#ifndef DB_ROWS_H
#define DB_ROWS_H

#include "base/buf.h"

struct rows;
struct db_cf;

/* Makes a cache that uses at most about `bytes` of memory. */
struct rows *rows_new(size_t bytes);
void rows_free(struct rows *r); /* `r` may be NULL */
size_t rows_bytes(struct rows *r);

/* Returns a number that grows with every write. A snapshot stores the number of the moment when it
 * was taken: while rows_now() still returns that number, no write has begun since. ROWS_STALE: a
 * write is running, and a snapshot taken now may never use the cache. */
enum { ROWS_STALE = 0 };
uint64_t rows_now(struct rows *r);

/* A look-up of one row, and after a miss the permission to add the row to the cache. */
struct rows_look {
    struct db_cf *cf;
    struct str key;
    uint64_t hash, generation;
    bool may_keep;
};

/* What the cache knows about a key: nothing, its row, or that there is no row. */
enum rows_answer { ROWS_MISS, ROWS_HIT, ROWS_ABSENT };

/* Looks up a row. ROWS_HIT: the value was appended to *out. `now` is the rows_now() of a snapshot,
 * or NULL for the latest state. After a miss the caller reads from RocksDB, and passes the row to
 * rows_keep() or, if there is none, may call rows_keep_absent(). */
enum rows_answer rows_get(struct rows *r, struct rows_look *look, const uint64_t *now,
                          struct buf *out);
void rows_keep(struct rows *r, const struct rows_look *look, struct str value);
void rows_keep_absent(struct rows *r, const struct rows_look *look);

/* Call rows_write_begin() before and rows_write_end() after every write to RocksDB, with the
 * rows_hash() of its keys. Several writes may run at the same time. */
uint64_t rows_hash(struct rows *r, struct db_cf *cf, struct str key);
void rows_write_begin(struct rows *r, const uint64_t *hashes, size_t count);
void rows_write_end(struct rows *r, const uint64_t *hashes, size_t count);
/* Like rows_write_begin() and rows_write_end(), for a write that changes all keys in [from, to). */
void rows_range_begin(struct rows *r, struct db_cf *cf, struct str from, struct str to);
void rows_range_end(struct rows *r);

#endif
