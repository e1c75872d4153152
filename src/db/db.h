/* The embedded database: one RocksDB per data folder, one write-ahead log, one fsync for many.
 * docs/db.md has the mechanism, its invariants and the crash points.
 *
 * Reading: through a view. A view is a consistent picture: either a snapshot (any thread, never
 * blocks, never waits for writers) or the pending state inside a change. The same reading code
 * serves both.
 *
 * Writing: hand in a change. A change is a function that reads through the pending state and puts
 * and deletes. One thread at a time (a caller, or the writer thread) runs those that wait, one
 * after another, each seeing those before it; another appends what was run as one batch to the log,
 * syncs once, and wakes the callers. Never two changes at a time, so a change is atomic and
 * isolated without locks. A change that returns an error is undone alone. A change must be short,
 * must not block, and must not call db_apply.
 *
 * Keys and values are byte strings; keys order bytewise. Owner: struct db is shared by all threads;
 * a view, an iterator and a tx belong to one thread. */
#ifndef DB_DB_H
#define DB_DB_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"

struct db;
struct db_cf;   /* a column family: one use's own key space; borrowed from the db */
struct db_view; /* every read names one: a snapshot, the latest state, or a pending state */
struct db_tx;   /* a change under way */
struct db_iter;

/* True when the row has expired: from then on compaction may drop it at any moment. Readers must
 * treat an expired row as absent themselves. Compaction threads call this. */
typedef bool db_expired_fn(struct str key, struct str value, int64_t now_wall_ms);

struct db_cf_spec {
    const char *name;
    db_expired_fn *expired; /* NULL: nothing expires */
    bool skips;             /* keep what db_iter_skip() found, for later calls */
};

/* Called once when the disk has failed, by a thread in the middle of a write: from then on no write
 * is accepted until the database is opened anew. It must neither block nor call the database. */
typedef void db_failed_fn(void *ctx);

struct db_options {
    const char *path;             /* created, with mode 0700, if absent */
    const struct db_cf_spec *cfs; /* families to open or create; others found stay untouched */
    size_t cf_count;
    size_t cache_bytes;    /* of the block cache; the row cache takes as much again, skips a 16th of
                              it; 0: 64 MiB */
    size_t memtable_bytes; /* all write buffers together; 0: 16 MiB */
    size_t reserve_bytes;  /* writes are refused while less than this is free on the disk; 0: 64
                              MiB. Ballast of half that size is kept for urgent writes */
    const struct log *log; /* NULL: silent */
    db_failed_fn *failed;  /* may be NULL */
    void *failed_ctx;
};

/* ERR_IN_USE: another process has it. ERR_VERSION: written by a newer weir. ERR_CORRUPT. */
int db_open(struct db **out, const struct db_options *o, struct err *err) MUST_CHECK;
/* Waits for the changes that were handed in. Every view and iterator must be closed before. The
 * folder of a database that has failed (db_failed()) stays locked until the process ends. */
void db_close(struct db *db);

/* BUG_ON when the name was not in db_options.cfs. */
struct db_cf *db_cf(struct db *db, const char *name);

/* --- reading --- */

int db_snapshot(struct db_view **out, struct db *db, struct err *err) MUST_CHECK;
void db_snapshot_free(struct db_view *view);

/* The latest state without holding a snapshot: each db_get sees the newest committed row. For reads
 * of a single row; borrowed, lives as long as the db. */
struct db_view *db_latest(struct db *db);

/* Appends the value to *out. ERR_NOT_FOUND. */
int db_get(struct db_view *view, struct db_cf *cf, struct str key, struct buf *out,
           struct err *err) MUST_CHECK;

/* Rows in key order within [from, to); an empty `to` means to the end of the family. The iterator
 * starts before the first row (or, in reverse, behind the last). In a tx it sees the pending state
 * as of its opening; open a new one after writing. */
struct db_range {
    struct str from, to; /* borrowed until db_iter_close */
    bool reverse;
    bool skips; /* makes db_iter_skip() fast on this iterator */
};
int db_iter_open(struct db_iter **out, struct db_view *view, struct db_cf *cf,
                 const struct db_range *r, struct err *err) MUST_CHECK;
/* ERR_END past the last. key and value are borrowed until the next call on the iterator. */
int db_iter_next(struct db_iter *it, struct str *key, struct str *value,
                 struct err *err) MUST_CHECK;
/* Go to the first row at or behind `key` (reverse: at or before), inside the range; db_iter_next
 * returns it. */
void db_iter_seek(struct db_iter *it, struct str key);
/* As db_iter_seek(), and gives the key of that row (ERR_END: there is none). In a family that
 * skips, the key is often known without reading files. It is then the key as of now, not as of the
 * iterator's opening: rows written or deleted since then may be found or skipped. db_iter_next()
 * still returns the row as it was at the opening, or the first one behind it. Not in reverse, and
 * not for rows that expire. */
int db_iter_skip(struct db_iter *it, struct str from, struct str *key, struct err *err) MUST_CHECK;
void db_iter_close(struct db_iter *it); /* NULL is fine */

/* The smallest key greater than every key with this prefix, appended to *out; leaves it empty when
 * there is none (all bytes 0xff), which as a range end means "to the end". */
void db_prefix_end(struct str prefix, struct buf *out);

/* --- writing --- */

enum db_durability {
    DB_DURABLE,  /* db_apply() returns when the change is on disk */
    DB_VOLATILE, /* db_apply() returns when the change is visible; a crash of the machine may lose
                    it. For locks and leases. It may use the reserve, as DB_URGENT */
    DB_URGENT,   /* durable, and may use the reserve: for changes that make room, and those that a
                    start or a stop cannot do without */
};

/* Return 0 to commit, or an error to undo this change alone (the caller of db_apply gets it). */
typedef int db_change_fn(struct db_tx *tx, void *ctx, struct err *err);

/* Runs `fn`, maybe on another thread; returns its result once committed. ERR_TOO_LARGE past 64 MiB.
 * ERR_NO_SPACE: nothing of it is there, reads go on, a later write may succeed once there is room
 * again. ERR_IO: the disk failed while it was written; it may be there after the next start.
 * ERR_UNAVAILABLE: the disk failed before (db_failed()). ERR_SHUTDOWN after db_close began. */
int db_apply(struct db *db, enum db_durability d, db_change_fn *fn, void *ctx,
             struct err *err) MUST_CHECK;

struct db_view *
db_tx_view(struct db_tx *tx);           /* borrowed: the pending state, this change's writes too */
int64_t db_tx_now_ms(struct db_tx *tx); /* wall clock, the same for the whole change */
void db_tx_put(struct db_tx *tx, struct db_cf *cf, struct str key, struct str value);
void db_tx_delete(struct db_tx *tx, struct db_cf *cf, struct str key);

/* Conveniences for one row. */
int db_put(struct db *db, struct db_cf *cf, struct str key, struct str value, enum db_durability d,
           struct err *err) MUST_CHECK;
int db_delete(struct db *db, struct db_cf *cf, struct str key, enum db_durability d,
              struct err *err) MUST_CHECK;

/* Drops every row in [from, to) at once; the cost does not depend on how many there are. It is not
 * part of a change, so it is for ranges that nothing can reach any more (the row that led to them
 * is gone). Durable. */
int db_delete_range(struct db *db, struct db_cf *cf, struct str from, struct str to,
                    struct err *err) MUST_CHECK;

/* ERR_UNAVAILABLE, with the reason, once a write or sync has failed for anything but a full disk;
 * db_apply() says the same to every change that would write. Reads go on. Never waits. */
int db_failed(const struct db *db, struct err *err) MUST_CHECK;
/* Whether the disk takes writes: if so, opening the database anew is worth a try. */
int db_try_disk(const struct db *db, struct err *err) MUST_CHECK;

/* --- keeping --- */

/* A complete copy as of now in `path` (must not exist), by hard links where possible; writes go on
 * meanwhile. Starting on the copy is the restore. */
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
