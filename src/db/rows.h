/* A cache of rows as they are now, in front of RocksDB: a hit costs a hash, a lock and a copy (a
 * third of a microsecond) where RocksDB's own caches cost two. For files in db/ only.
 *
 * Coherent, not merely fresh (R1 to R3):
 *   R1  a row that a write is about to change leaves before the write begins, and while the write
 *       runs nothing enters the row's stripe: a key that is being written is read from RocksDB;
 *   R2  what a reader fetched enters only if no write touched its stripe since before the fetch;
 *   R3  so a row that is here is the committed row at every moment that it is here. A snapshot may
 *       use it as long as no write has begun since the snapshot was taken.
 * RocksDB's own row cache was rejected: it does not know of range deletes.
 *
 * Any thread. Rows past their time stay until they are pushed out; readers judge that themselves,
 * as they do for rows on disk. */
#ifndef DB_ROWS_H
#define DB_ROWS_H

#include "base/buf.h"

struct rows;
struct db_cf;

/* At most about `bytes` of memory. */
struct rows *rows_new(size_t bytes);
void rows_free(struct rows *r); /* NULL is fine */
size_t rows_bytes(struct rows *r);

/* Stands for "no write has begun since": what a snapshot remembers. */
enum { ROWS_STALE = 0 }; /* of a snapshot that was taken beside a write: never current */
uint64_t rows_now(struct rows *r);

/* A look at one row, and on a miss the right to bring it in. */
struct rows_look {
    struct db_cf *cf;
    struct str key;
    uint64_t hash, generation;
    bool may_keep;
};

/* True when the row is here: appended to *out. `now` is a snapshot's rows_now(), or NULL for the
 * latest state. On a miss fetch it from RocksDB and offer it to rows_keep(). */
bool rows_get(struct rows *r, struct rows_look *look, const uint64_t *now, struct buf *out);
void rows_keep(struct rows *r, const struct rows_look *look, struct str value);

/* Around every write to RocksDB. Several writes may run beside each other. */
uint64_t rows_hash(struct rows *r, struct db_cf *cf, struct str key);
void rows_write_begin(struct rows *r, const uint64_t *hashes, size_t count); /* of its keys */
void rows_write_end(struct rows *r, const uint64_t *hashes, size_t count);
/* The same around a write that changes the keys in [from, to), whichever they are. */
void rows_range_begin(struct rows *r, struct db_cf *cf, struct str from, struct str to);
void rows_range_end(struct rows *r);

#endif
