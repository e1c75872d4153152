/* What the files of db/ share. Invariants are numbered in docs/db.md. */
#ifndef DB_DB_INT_H
#define DB_DB_INT_H

#include "base/vec.h"
#include "db/db.h"
#include "db/gaps.h"
#include "db/rows.h"
#include "os/thread.h"

#include <rocksdb/c.h>
#include <semaphore.h>

enum { GROUP_KEY_BITS = 16 * 1024 };

struct db_cf {
    char *name;
    db_expired_fn *expired;
    bool skips;
    struct gaps *gaps; /* NULL unless it skips */
    rocksdb_options_t *options;
    rocksdb_column_family_handle_t *handle; /* NULL until opened */
};

struct db_view {
    struct db *db;
    struct db_tx *tx;                   /* inside a change: its pending state comes first */
    rocksdb_readoptions_t *read;        /* the db's own unless there is a snapshot */
    const rocksdb_snapshot_t *snapshot; /* NULL but for db_snapshot */
    uint64_t rows_now;                  /* of a snapshot: when cached rows are its own too */
};

/* The pending state: what the changes of the running group have written so far. Belongs to the
 * thread that leads. */
struct batch {
    rocksdb_writebatch_wi_t *rows;
    size_t count;
    size_t bytes;                       /* written since the last reset, undone or not */
    size_t undone;                      /* rows that rollbacks had to index again */
    VEC(uint64_t) hashes;               /* rows_hash() of every key written, undone or not */
    uint64_t keys[GROUP_KEY_BITS / 64]; /* bit of a key's hash: the key may be among the rows */
};

/* A look at the free space, good for a while. */
struct space {
    uint64_t reserve; /* bytes: with less free, writes are refused */
    uint64_t checked_ns;
    size_t written; /* bytes since then */
};

struct group {
    struct mutex lock;    /* guards what is above `stop`; class "db.group" */
    struct cond idle;     /* the last leader left */
    struct cond gathered; /* `expected` wait, or `hurry` */
    struct list waiting;  /* struct waiter, in the order of arrival */
    size_t waiting_count;
    bool hurry;      /* a volatile change waits */
    size_t expected; /* how many the writer thread waits for; 0: it does not */
    bool leading;    /* somebody leads, and owns what follows the lock's share */
    bool closing;
    bool stop;       /* told to the writer thread by hand_over */
    sem_t hand_over; /* the lead goes to the writer thread */
    struct thread writer;

    size_t taken;     /* changes of the last group */
    uint64_t took_ns; /* its durable part, with the sync */
    struct batch batch;
    struct space space;
    rocksdb_writeoptions_t *durable, *fast; /* with and without sync */
    _Atomic(const void *) runner;           /* the thread inside a change, or NULL */

    _Atomic(uint64_t) changes, groups, syncs, failed;
};

struct db {
    char *path;
    const struct log *log;
    rocksdb_t *rocks;
    rocksdb_options_t *options;
    rocksdb_cache_t *cache;
    struct rows *rows; /* of the latest state */
    struct db_cf *cfs; /* those asked for, then the others that were found */
    size_t cf_count, cf_asked;
    rocksdb_readoptions_t *read; /* no snapshot; never changed after open, so shared */
    struct db_view latest;
    struct group group;
};

struct db_tx {
    struct db *db;
    struct db_view view;
    int64_t now_ms;
    size_t bytes;     /* written by this change */
    size_t iterators; /* open */
    bool wrote;
    bool saw_pending; /* read what may not be on disk yet */
    bool too_large;
};

/* --- options.c --- */

/* Fill db->cache and db->options, and every family's options. */
void options_build(struct db *db, const struct db_options *o);
void options_release(struct db *db);

/* --- error.c --- */

/* Take RocksDB's message (freed) and translate it; the text becomes "<what> <path>: <message>". */
int error_take(struct err *err, char *message, const char *what, const char *path);

/* --- db.c --- */

/* The file that says which format the folder has; durable. */
int format_write(const char *folder, struct err *err) MUST_CHECK;

/* --- group.c --- */

int group_init(struct db *db, uint64_t reserve_bytes, struct err *err) MUST_CHECK;
void group_release(struct db *db); /* waits for all that was handed in */

/* Whether the pending rows may hold the key, or any row at all; "yes" marks the change as having
 * seen them. */
bool tx_may_hold(struct db_tx *tx, struct str key);
bool tx_may_hold_any(struct db_tx *tx);

/* --- keep.c --- */

/* By the leader. ERR_NO_SPACE when less than the reserve is free. */
int space_check(struct db *db, size_t bytes, struct err *err) MUST_CHECK;

#endif
