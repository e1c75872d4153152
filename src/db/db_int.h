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

/* A caller in db_apply; lives on its stack, gone as soon as `wake` is posted. */
struct waiter {
    struct list node;
    db_change_fn *fn;
    void *ctx;
    struct err *err;
    int result;
    bool urgent; /* may use the reserve */
    bool ran;
    bool answered; /* by its own thread, without `wake` */
    sem_t wake;
    struct waiter *wakes[2]; /* whom to wake in turn, or NULL */
};

enum { FILTER_BITS = 16 * 1024 };

/* Sets of keys that may say yes too often, a bit for a key's hash. */
enum filter {
    FILTER_WRITTEN, /* by any change of the batch, undone or not */
    FILTER_DELETED, /* the same, deletes alone */
    FILTER_READ,    /* looked up by any change of the batch */
    FILTER_COUNT,
};

/* What changes have written and RocksDB has not: the rows, and who waits for them. Rows and filters
 * belong to the runner while the batch is open, and stand still once it is sealed (W2). */
struct batch {
    size_t slot; /* its number */
    rocksdb_writebatch_wi_t *rows;
    size_t count;
    size_t bytes;         /* written since the last reset, undone or not */
    size_t undone;        /* rows that rollbacks had to index again */
    VEC(uint64_t) hashes; /* rows_hash() of every key written, undone or not */
    bool read_all;        /* a change of it read a range */
    uint64_t filters[FILTER_COUNT][FILTER_BITS / 64];
    bool filled[FILTER_COUNT]; /* has a bit set */

    /* Guarded by "db.group". */
    struct list members;  /* struct waiter: answered with the write */
    struct waiter *waker; /* of the members, the one that has room for another to wake */
    size_t member_count, succeeded;
};

/* A look at the free space, good for a while. By the runner and the writer. */
struct space {
    uint64_t reserve;           /* bytes: with less free, writes are refused that are not urgent */
    _Atomic(uint64_t) roomy_ns; /* when more was free; 0: it was not */
    _Atomic(uint64_t) written;  /* bytes since then */
    _Atomic(bool) ballast;      /* taken on, or tried */
    uint64_t unlooked;          /* the writer's: bytes since the headroom was looked after */
    uint64_t unshrunk;          /* the writer's: bytes since all memtables were written out */
    uint64_t spent;             /* the writer's: bytes of the headroom since there was room */
};

struct group {
    struct mutex lock;    /* guards what is above `stop`; class "db.group" */
    struct cond idle;     /* closing, and nobody runs or writes any more */
    struct cond gathered; /* `expected` are in the open batch, or a volatile change waits */
    struct cond given;    /* the runner gave a batch or its role to the writer that wants it */
    struct list waiting;  /* struct waiter: durable changes in the order of arrival */
    struct list fast;     /* the same, volatile ones */
    bool running;         /* somebody runs changes into the open batch */
    bool writing;         /* somebody writes, and owns what follows the lock's share */
    bool wanted;          /* the writer waits for the runner */
    bool pending;         /* the sealed batch is not in RocksDB yet: changes read through it */
    bool closing;
    size_t expected; /* how many the writer waits for in the open batch; 0: it does not */
    struct batch *open, *sealed, *spare;
    bool stop;       /* told to the writer thread by hand_over */
    sem_t hand_over; /* the writer's role goes to the writer thread */
    struct thread writer;

    size_t taken;     /* members of the last batch */
    uint64_t took_ns; /* to write it, with the sync */
    struct batch slots[GAPS_BATCHES];
    struct space space;
    rocksdb_writeoptions_t *durable, *fast_write; /* with and without sync */
    _Atomic(const void *) runner;                 /* the thread inside a change, or NULL */

    _Atomic(uint64_t) changes, groups, syncs, failed;
};

enum { FAILURE_NONE, FAILURE_BEING_NOTED, FAILURE_NOTED };

/* Why no write is taken any more; set once. */
struct failure {
    _Atomic(int) state;
    struct err why; /* stands still once it is noted */
};

struct db {
    char *path;
    const struct log *log;
    db_failed_fn *on_failure; /* may be NULL */
    void *failure_ctx;
    struct failure failure;
    struct db *abandoned; /* the one before; failure.c */
    rocksdb_t *rocks;
    rocksdb_options_t *options;
    size_t memtable_bytes; /* all write buffers together */
    rocksdb_cache_t *cache;
    struct rows *rows; /* of the latest state */
    struct db_cf *cfs; /* those asked for, then the others that were found */
    size_t cf_count, cf_asked;
    bool scarce;                 /* room on the disk, when it was opened */
    rocksdb_readoptions_t *read; /* no snapshot; never changed after open, so shared */
    struct db_view latest;
    struct group group;
};

/* Reads go to `into`, then `below`, then the database; writes to `into`. */
struct db_tx {
    struct db *db;
    struct db_view view;
    int64_t now_ms;
    struct batch *into, *below; /* `below` is NULL when nothing is pending there */
    size_t bytes;               /* written by this change */
    size_t iterators;           /* open */
    bool urgent;                /* may use the reserve */
    bool wrote;
    bool saw_into, saw_below; /* read what may be a row of it */
    bool crossed_below;       /* wrote what `below` has read or written */
    bool too_large;
};

/* --- options.c --- */

/* Fill db->cache and db->options, and every family's options. */
void options_build(struct db *db, const struct db_options *o);
void options_release(struct db *db);

/* --- error.c --- */

/* Take RocksDB's message (freed) and translate it; the text becomes "<what> <path>: <message>". */
int error_take(struct err *err, char *message, const char *what, const char *path);

/* --- failure.c --- */

/* The same for a write; one that RocksDB does not come back from is noted. */
int failure_take(struct db *db, struct err *err, char *message, const char *what);
/* Instead of a close, with nobody using it any more. */
void failure_abandon(struct db *db);

/* --- db.c --- */

/* The file that says which format the folder has; durable. */
int format_write(const char *folder, struct err *err) MUST_CHECK;

/* --- batch.c --- */

void batch_init(struct batch *b);
void batch_release(struct batch *b);
void batch_reset(struct batch *b);
bool batch_full(const struct batch *b);
/* By the writer. */
int batch_write(struct db *db, struct batch *b, enum db_durability d, struct err *err) MUST_CHECK;

/* The batch is written, or never will be: gaps.h. */
void batch_settled(struct db *db, const struct batch *b);

/* Run `fn` with what was set in the tx; its rows are in tx->into, or undone when it failed. */
int tx_run(struct db_tx *tx, db_change_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* Where the key may be among the pending rows; notes that the change looked. */
enum { TX_INTO = 1, TX_BELOW = 2 };
unsigned tx_look(struct db_tx *tx, struct str key);
unsigned tx_look_all(struct db_tx *tx);
bool tx_may_have_deleted(const struct db_tx *tx, struct str key); /* in `into` */

/* --- group.c --- */

int group_init(struct db *db, uint64_t reserve_bytes, struct err *err) MUST_CHECK;
void group_release(struct db *db); /* waits for all that was handed in */

/* --- wake.c --- */

/* Hang `w` into the tree of those that wake each other. `*waker` is the one before it on the same
 * list that has room for another; NULL: `w` is the first. */
void wake_by(struct waiter **waker, struct waiter *w);
/* Wake all on the list, which is empty afterwards. `self` is awake: if it is the first it is
 * answered now, else it has to wait like the others. */
void wake_tree(struct list *done, struct waiter *self);
void wake_await(struct waiter *self);

/* --- keep.c --- */

/* Bytes of rows that are in memory and in the log alone. */
uint64_t keep_unwritten(struct db *db);

/* --- headroom.c --- */

/* Bytes of all logs; *last: the number of the last one. */
uint64_t headroom_logs(const struct db *db, uint64_t *last);
/* By the writer, after it has written so many bytes. */
void headroom_keep(struct db *db, size_t written);
/* By the writer, when the disk gives no more: takes what is kept for it. False: it is used up. */
bool headroom_spend(struct db *db, size_t bytes);

/* --- space.c --- */

/* By the runner, for a change that is not urgent. ERR_NO_SPACE when less than the reserve is free.
 */
int space_admit(struct db *db, struct err *err) MUST_CHECK;
/* By the writer. ERR_NO_SPACE when `bytes` would leave too little for RocksDB itself, for durable
 * ones without the ballast. */
int space_check(struct db *db, size_t bytes, enum db_durability d, struct err *err) MUST_CHECK;
/* Before RocksDB is opened. ERR_NO_SPACE. */
int space_to_open(struct db *db, struct err *err) MUST_CHECK;
/* Whether so much can be written out before it is closed. */
bool space_to_flush(struct db *db, uint64_t bytes);

#endif
