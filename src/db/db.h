/* The embedded database: one RocksDB per data folder, one write-ahead log, and one fsync for many
 * changes. docs/db.md has the mechanism, its invariants and the crash points.
 *
 * Reading: all reads go through a view. A view is a snapshot, the latest committed rows
 * (db_latest()), or the *pending state* inside a change, which also has the rows that changes have
 * written and that are not committed yet. The reading functions accept views of all kinds. Any
 * thread may take a snapshot, and reading from it never waits for writers.
 *
 * Writing: a caller passes a change to db_apply(). A change is a function that reads the pending
 * state and puts and deletes rows. One thread at a time (a caller, or the writer thread) runs the
 * waiting changes one after another; each change sees the writes of the changes before it. Then the
 * rows of all these changes are appended to the log as one batch, the log is synced once, and the
 * callers are woken. Two changes never run at the same time, so a change is atomic and isolated
 * without locks. A change that returns an error is undone alone. A change must be short, must not
 * block, and must not call db_apply().
 *
 * Keys and values are byte strings; keys are ordered bytewise. All threads share struct db; a view,
 * an iterator and a struct db_tx belong to one thread. */
#ifndef DB_DB_H
#define DB_DB_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"

struct db;
struct db_cf; /* a column family: a key space of its own for one use; borrowed from the db */
/* The state that a read sees: a snapshot, the latest committed rows, or a pending state. */
struct db_view;
struct db_tx; /* a change that is running */
struct db_iter;

/* Returns whether the row has expired. Compaction calls this and may drop an expired row at any
 * moment, so readers must treat such a row as absent themselves. The function runs on RocksDB's
 * threads. */
typedef bool db_expired_fn(struct str key, struct str value, int64_t now_wall_ms);

struct db_cf_spec {
    const char *name;
    db_expired_fn *expired; /* NULL: no row expires */
    /* db_iter_skip() caches the keys that it finds, for later calls (gaps.h). */
    bool skips;
    /* db_get() outside of changes also caches that there is no row of a key (rows.h). For families
     * in which absent rows are looked up again and again. */
    bool absent;
};

/* A function that is called once when the disk has failed, by a thread in the middle of a write.
 * From then on no write is accepted until the database is opened again. The function must neither
 * block nor call the database. */
typedef void db_failed_fn(void *ctx);

struct db_options {
    const char *path; /* the database's folder; created with mode 0700 if absent */
    /* Families to open or create. Other families in the folder are not touched. */
    const struct db_cf_spec *cfs;
    size_t cf_count;
    /* Size of RocksDB's block cache; 0: 64 MiB. The cache of rows gets the same size in addition,
     * and each family with `skips` gets a cache of gaps of 1/16 of that size. */
    size_t cache_bytes;
    size_t memtable_bytes; /* size of all write buffers together; 0: 16 MiB */
    /* While less than this is free on the disk, DB_DURABLE changes are refused; other changes may
     * use this reserve (enum db_durability). 0: 64 MiB. A ballast file of half that size is kept in
     * addition, for urgent writes. */
    size_t reserve_bytes;
    const struct log *log; /* NULL: no log lines */
    db_failed_fn *failed;  /* may be NULL */
    void *failed_ctx;
};

/* Opens the database, or creates it. ERR_IN_USE: another process has it open. ERR_VERSION: a newer
 * weir wrote it. ERR_CORRUPT: its files are damaged. */
int db_open(struct db **out, const struct db_options *o, struct err *err) MUST_CHECK;
/* Waits for the changes that were passed to db_apply(), then closes the database. The caller must
 * have closed every snapshot and iterator. A database that has failed (db_failed()) is left open,
 * and its folder stays locked until the process ends. */
void db_close(struct db *db);

/* Returns the family of that name, which must be in db_options.cfs (BUG_ON). */
struct db_cf *db_cf(struct db *db, const char *name);

/* --- reading --- */

int db_snapshot(struct db_view **out, struct db *db, struct err *err) MUST_CHECK;
void db_snapshot_free(struct db_view *view);

/* Returns a view of the latest state: each db_get() sees the newest committed row, and two reads
 * may see different states. The view is borrowed and lives as long as the db. */
struct db_view *db_latest(struct db *db);

/* Appends the row's value to *out. ERR_NOT_FOUND: there is no such row. */
int db_get(struct db_view *view, struct db_cf *cf, struct str key, struct buf *out,
           struct err *err) MUST_CHECK;

/* The rows within [from, to), in key order; an empty `to` means to the end of the family. An
 * iterator over the range starts before the first row or, in reverse, after the last row. In a
 * change it sees the pending state at the moment when it was opened; open a new iterator after
 * writing. */
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
/* Moves to the first row of the range whose key is `key` or greater; in reverse, to the last row
 * whose key is `key` or smaller. The next db_iter_next() returns that row. */
void db_iter_seek(struct db_iter *it, struct str key);
/* Like db_iter_seek(), but also sets *key to the key of that row. ERR_END: there is no such row.
 * Must not be used in reverse, or for rows that expire.
 *
 * In a family with `skips` the key is often found without reading files. Then it is the first key
 * at this moment, not at the moment when the iterator was opened: rows written since then may be
 * found, and rows deleted since then may be left out. The next db_iter_next() still returns a row
 * as it was when the iterator was opened: the row of *key if it existed then, else the first row
 * after it. */
int db_iter_skip(struct db_iter *it, struct str from, struct str *key, struct err *err) MUST_CHECK;
void db_iter_close(struct db_iter *it); /* `it` may be NULL */

/* Appends to *out the smallest key that is greater than every key with this prefix. Appends nothing
 * when there is no such key, because all bytes of the prefix are 0xff: an empty end of a range
 * means "to the end". */
void db_prefix_end(struct str prefix, struct buf *out);

/* --- writing --- */

enum db_durability {
    DB_DURABLE, /* db_apply() returns when the change is on disk */
    /* db_apply() returns when the change is visible; a crash of the machine may lose the change.
     * This is for locks and leases. Such a change may use the reserve, as with DB_URGENT. */
    DB_VOLATILE,
    /* As durable as DB_DURABLE, but the change may use the reserved disk space. This is for changes
     * that make room, and for changes without which weir cannot start or stop. */
    DB_URGENT,
};

/* The function of a change. It returns 0 to commit the change. When it returns an error, this
 * change alone is undone, and db_apply() returns that error. */
typedef int db_change_fn(struct db_tx *tx, void *ctx, struct err *err);

/* Runs the change `fn`, maybe on another thread, and returns its result once the change is
 * committed. ERR_TOO_LARGE: the change wrote more than 64 MiB. ERR_NO_SPACE: nothing was written;
 * reads go on, and a later write may succeed once there is room again. ERR_IO: the disk failed
 * during the write; the change may be there after the next start. ERR_UNAVAILABLE: the disk failed
 * earlier (db_failed()). ERR_SHUTDOWN: db_close() has begun. */
int db_apply(struct db *db, enum db_durability d, db_change_fn *fn, void *ctx,
             struct err *err) MUST_CHECK;

/* Returns a view of the pending state with this change's own writes. The view is borrowed. */
struct db_view *db_tx_view(struct db_tx *tx);
int64_t db_tx_now_ms(struct db_tx *tx); /* wall clock, constant within a change */
void db_tx_put(struct db_tx *tx, struct db_cf *cf, struct str key, struct str value);
void db_tx_delete(struct db_tx *tx, struct db_cf *cf, struct str key);

/* These write or delete one row as a change of its own. */
int db_put(struct db *db, struct db_cf *cf, struct str key, struct str value, enum db_durability d,
           struct err *err) MUST_CHECK;
int db_delete(struct db *db, struct db_cf *cf, struct str key, enum db_durability d,
              struct err *err) MUST_CHECK;

/* Deletes every row in [from, to) at once; the cost does not depend on the number of rows. The
 * deletion is not part of a change, so this function is only for rows that no reader looks for any
 * more, because the row that referred to them was deleted. The deletion is durable when this
 * returns. */
int db_delete_range(struct db *db, struct db_cf *cf, struct str from, struct str to,
                    struct err *err) MUST_CHECK;

/* Returns 0 as long as the database accepts writes. ERR_UNAVAILABLE, with the reason in `err`: a
 * write or sync has failed for a reason other than a full disk. db_apply() then returns the same
 * error for every change that would write, but reads still work. This function never waits. */
int db_failed(const struct db *db, struct err *err) MUST_CHECK;
/* Checks whether the disk accepts writes. 0: it does, so opening the database again may succeed. */
int db_try_disk(const struct db *db, struct err *err) MUST_CHECK;

/* --- keeping --- */

/* Makes a complete copy of the present state in the folder `path`, which must not exist. Files are
 * hard-linked where possible. Writes go on meanwhile. To restore, start weir on the copy. */
int db_checkpoint(struct db *db, const char *path, struct err *err) MUST_CHECK;

struct db_stats {
    uint64_t changes; /* changes committed */
    uint64_t groups;  /* batches written */
    uint64_t syncs;
    uint64_t failed;       /* changes undone because they returned an error */
    uint64_t memory_bytes; /* caches, memtables, table readers */
    uint64_t disk_bytes;   /* table files; the log adds at most 4 x memtable_bytes */
};
void db_stats(struct db *db, struct db_stats *out);

#endif
