/* The embedded database: one RocksDB per data folder, one write-ahead log, one fsync for many
 * changes.
 * docs/db.md has the mechanism, its invariants and the crash points.
 *
 * Reading: through a view. A view is a consistent picture: either a snapshot (any thread, never
 * blocks, never waits for writers) or the pending state inside a change. The same reading code
 * serves both.
 *
 * Writing: hand in a change. A change is a function that reads through the pending state and puts
 * and deletes rows. One thread (a caller, or the writer thread) runs the waiting changes one after
 * another; each sees the writes of those before it. Another thread appends their rows as one batch
 * to the log, syncs once, and wakes the callers. Two changes never run at the same time, so a
 * change is atomic and isolated without locks. A change that returns an error is undone alone. A
 * change must be short, must not block, and must not call db_apply().
 *
 * Keys and values are byte strings; keys are ordered bytewise. All threads share struct db;
 * a view, an iterator and a tx belong to one thread. */
#ifndef DB_DB_H
#define DB_DB_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"

struct db;
struct db_cf; /* a column family: a key space of its own for one use; borrowed from the db */
/* The state that a read sees: a snapshot, the latest state, or a pending state. */
struct db_view;
struct db_tx; /* a change under way */
struct db_iter;

/* True when the row has expired. Compaction may drop an expired row at any moment, so readers must
 * treat it as absent themselves. Compaction threads call this. */
typedef bool db_expired_fn(struct str key, struct str value, int64_t now_wall_ms);

struct db_cf_spec {
    const char *name;
    db_expired_fn *expired; /* NULL: no row expires */
    bool skips;             /* db_iter_skip() caches the keys that it finds, for later calls */
};

/* Called once when the disk has failed, by a thread in the middle of a write. From then on no write
 * is accepted until the database is opened anew. The function must neither block nor call the
 * database. */
typedef void db_failed_fn(void *ctx);

struct db_options {
    const char *path; /* the database's folder; created with mode 0700 if absent */
    /* Families to open or create; other families in the folder stay untouched. */
    const struct db_cf_spec *cfs;
    size_t cf_count;
    /* Size of the block cache; 0: 64 MiB. The row cache gets the same size on top, and each family
     * with `skips` a 16th of it. */
    size_t cache_bytes;
    size_t memtable_bytes; /* size of all write buffers together; 0: 16 MiB */
    size_t reserve_bytes;  /* writes are refused while less than this is free on the disk; 0: 64
                              MiB. Ballast of half that size is kept for urgent writes */
    const struct log *log; /* NULL: silent */
    db_failed_fn *failed;  /* may be NULL */
    void *failed_ctx;
};

/* Opens the database, or creates it. ERR_IN_USE: another process has it open. ERR_VERSION: a newer
 * weir wrote it. ERR_CORRUPT: its files are damaged. */
int db_open(struct db **out, const struct db_options *o, struct err *err) MUST_CHECK;
/* Waits for the changes that were handed in, then closes the database. Every view and iterator must
 * be closed before. The folder of a database that has failed (db_failed()) stays locked until the
 * process ends. */
void db_close(struct db *db);

/* Returns the family of that name, which must be in db_options.cfs (BUG_ON). */
struct db_cf *db_cf(struct db *db, const char *name);

/* --- reading --- */

int db_snapshot(struct db_view **out, struct db *db, struct err *err) MUST_CHECK;
void db_snapshot_free(struct db_view *view);

/* The latest state, without a snapshot: each db_get() sees the newest committed row. It is for
 * reads of a single row. Borrowed; lives as long as the db. */
struct db_view *db_latest(struct db *db);

/* Appends the row's value to *out. ERR_NOT_FOUND: there is no such row. */
int db_get(struct db_view *view, struct db_cf *cf, struct str key, struct buf *out,
           struct err *err) MUST_CHECK;

/* A range of rows in key order within [from, to); an empty `to` means to the end of the family. The
 * iterator starts before the first row (in reverse: behind the last). In a change it sees the
 * pending state as of its opening; open a new iterator after writing. */
struct db_range {
    struct str from, to; /* borrowed until db_iter_close */
    bool reverse;
    bool skips; /* makes db_iter_skip() fast on this iterator */
};
int db_iter_open(struct db_iter **out, struct db_view *view, struct db_cf *cf,
                 const struct db_range *r, struct err *err) MUST_CHECK;
/* Moves to the next row. ERR_END: there are no more rows. key and value are borrowed until the next
 * call on the iterator. */
int db_iter_next(struct db_iter *it, struct str *key, struct str *value,
                 struct err *err) MUST_CHECK;
/* Moves to the first row at or behind `key` (reverse: at or before it) inside the range. The next
 * db_iter_next() returns that row. */
void db_iter_seek(struct db_iter *it, struct str key);
/* As db_iter_seek(), and also gives the key of that row. ERR_END: there is none. In a family with
 * `skips` the key is often known without reading files. It is then the key as of now, not as of the
 * iterator's opening: rows written or deleted after the opening may be found or skipped.
 * db_iter_next() still returns the row as it was at the opening, or the first row behind it. Must
 * not be used in reverse, or for rows that expire. */
int db_iter_skip(struct db_iter *it, struct str from, struct str *key, struct err *err) MUST_CHECK;
void db_iter_close(struct db_iter *it); /* NULL is fine */

/* Appends to *out the smallest key that is greater than every key with this prefix. Leaves *out
 * empty when there is none (all bytes are 0xff): an empty end of a range means "to the end". */
void db_prefix_end(struct str prefix, struct buf *out);

/* --- writing --- */

enum db_durability {
    DB_DURABLE, /* db_apply() returns when the change is on disk */
    /* db_apply() returns when the change is visible; a crash of the machine may lose it. For locks
     * and leases. It may use the reserve, as DB_URGENT may */
    DB_VOLATILE,
    /* Durable, and may use the reserve: for changes that make room, and changes without which weir
     * cannot start or stop. */
    DB_URGENT,
};

/* The function of a change. It returns 0 to commit. An error undoes this change alone, and
 * db_apply() returns that error. */
typedef int db_change_fn(struct db_tx *tx, void *ctx, struct err *err);

/* Runs the change `fn`, maybe on another thread, and returns its result once it is committed.
 * ERR_TOO_LARGE: it wrote more than 64 MiB. ERR_NO_SPACE: nothing was written; reads go on, and a
 * later write may succeed once there is room again. ERR_IO: the disk failed during the write; the
 * change may be there after the next start. ERR_UNAVAILABLE: the disk failed earlier (db_failed()).
 * ERR_SHUTDOWN: db_close() has begun. */
int db_apply(struct db *db, enum db_durability d, db_change_fn *fn, void *ctx,
             struct err *err) MUST_CHECK;

/* borrowed; the pending state, with this change's own writes */
struct db_view *db_tx_view(struct db_tx *tx);
int64_t db_tx_now_ms(struct db_tx *tx); /* wall clock, constant within a change */
void db_tx_put(struct db_tx *tx, struct db_cf *cf, struct str key, struct str value);
void db_tx_delete(struct db_tx *tx, struct db_cf *cf, struct str key);

/* Write or delete one row as a change of its own. */
int db_put(struct db *db, struct db_cf *cf, struct str key, struct str value, enum db_durability d,
           struct err *err) MUST_CHECK;
int db_delete(struct db *db, struct db_cf *cf, struct str key, enum db_durability d,
              struct err *err) MUST_CHECK;

/* Deletes every row in [from, to) at once; the cost does not depend on the number of rows. It is
 * not part of a change, so it is only for ranges that nothing can reach any more (the row that led
 * to them was deleted). Durable. */
int db_delete_range(struct db *db, struct db_cf *cf, struct str from, struct str to,
                    struct err *err) MUST_CHECK;

/* Whether writing has ended. ERR_UNAVAILABLE, with the reason: a write or sync has failed for a
 * reason other than a full disk. db_apply() then returns the same error for every change that would
 * write. Reads go on. Never waits. */
int db_failed(const struct db *db, struct err *err) MUST_CHECK;
/* Checks whether the disk accepts writes. If it does (0), opening the database anew is worth a
 * try. */
int db_try_disk(const struct db *db, struct err *err) MUST_CHECK;

/* --- keeping --- */

/* Makes a complete copy of the present state in the folder `path`, which must not exist; by hard
 * links where possible. Writes go on meanwhile. To restore, start weir on the copy. */
int db_checkpoint(struct db *db, const char *path, struct err *err) MUST_CHECK;

struct db_stats {
    uint64_t changes; /* committed */
    uint64_t groups;  /* batches written */
    uint64_t syncs;
    uint64_t failed;       /* changes undone because they returned an error */
    uint64_t memory_bytes; /* cache, memtables, table readers */
    uint64_t disk_bytes;   /* table files; the log comes on top, at most 4 x memtable_bytes */
};
void db_stats(struct db *db, struct db_stats *out);

#endif
