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
    uint64_t rows_now;                  /* of a snapshot: its rows_now(), to use cached rows */
};

/* A caller in db_apply(). It lives on the caller's stack and is gone as soon as `wake` is posted.
 */
struct waiter {
    struct list node;
    db_change_fn *fn;
    void *ctx;
    struct err *err;
    int result;
    bool urgent; /* may use the reserve */
    bool ran;
    bool answered; /* its own thread answered it, without `wake` */
    sem_t wake;
    struct waiter *wakes[2]; /* the waiters that it wakes when it is woken, or NULL */
};

enum { FILTER_BITS = 16 * 1024 };

/* Sets of keys with one bit for a key's hash: "no" is certain, "yes" may be wrong. */
enum filter {
    FILTER_WRITTEN, /* keys that a change of the batch wrote, undone or not */
    FILTER_DELETED, /* keys that a change of the batch deleted, undone or not */
    FILTER_READ,    /* keys that a change of the batch looked up */
    FILTER_COUNT,
};

/* Rows that changes have written and that are not in RocksDB yet, and the callers that wait for
 * them. Rows and filters belong to the runner while the batch is open, and do not change once it is
 * sealed (W2). */
struct batch {
    size_t slot; /* its number, for gaps.h */
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
    struct waiter *waker; /* the member that can wake one more; wake_by() */
    size_t member_count, succeeded;
};

/* How much of the disk is free, checked from time to time. Used by the runner and the writer. */
struct space {
    uint64_t reserve;           /* bytes; while less is free, only urgent writes are accepted */
    _Atomic(uint64_t) roomy_ns; /* last time when more was free; 0: less was free */
    _Atomic(uint64_t) written;  /* bytes written since then */
    _Atomic(bool) ballast;      /* the ballast file was made, or making it failed */
    uint64_t unlooked;          /* the writer's: bytes written since headroom_keep() last looked */
    uint64_t unshrunk;          /* the writer's: bytes written since all memtables were flushed */
    uint64_t spent;             /* of the writer: bytes of the headroom used since there was room */
};

struct group {
    struct mutex lock;    /* class "db.group"; guards the members above `stop` */
    struct cond idle;     /* closing, and nobody runs or writes any more */
    struct cond gathered; /* the open batch has `expected` members, or a volatile change waits */
    struct cond given;    /* the runner has given a batch, or its role, to the writer */
    struct list waiting;  /* struct waiter: durable changes in the order of arrival */
    struct list fast;     /* struct waiter: volatile changes in the order of arrival */
    bool running;         /* somebody runs changes into the open batch */
    bool writing;         /* somebody has the writer's role, and owns the members from `stop` on */
    bool wanted;          /* the writer waits for the runner */
    bool pending;         /* the sealed batch is not in RocksDB yet: changes read through it */
    bool closing;
    size_t expected; /* how many the writer waits for in the open batch; 0: it does not */
    struct batch *open, *sealed, *spare;
    bool stop;       /* the writer thread ends at its next hand_over */
    sem_t hand_over; /* posted when the writer thread takes the writer's role, or is to end */
    struct thread writer;

    size_t taken;     /* members of the last batch */
    uint64_t took_ns; /* how long its write took, with the sync */
    struct batch slots[GAPS_BATCHES];
    struct space space;
    rocksdb_writeoptions_t *durable, *fast_write; /* with and without sync */
    _Atomic(const void *) runner;                 /* the thread inside a change, or NULL */

    _Atomic(uint64_t) changes, groups, syncs, failed;
};

enum { FAILURE_NONE, FAILURE_BEING_NOTED, FAILURE_NOTED };

/* Why no write is accepted any more; set once. */
struct failure {
    _Atomic(int) state;
    struct err why; /* does not change once `state` is FAILURE_NOTED */
};

struct db {
    char *path;
    const struct log *log;
    db_failed_fn *on_failure; /* may be NULL */
    void *failure_ctx;
    struct failure failure;
    struct db *abandoned; /* list of the databases that failure_abandon() was called for */
    rocksdb_t *rocks;
    rocksdb_options_t *options;
    size_t memtable_bytes; /* all write buffers together */
    rocksdb_cache_t *cache;
    struct rows *rows; /* cache of rows of the latest state */
    struct db_cf *cfs; /* families that were asked for, then the others that were found */
    size_t cf_count, cf_asked;
    bool scarce;                 /* the disk had little room when the database was opened */
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
    bool saw_into, saw_below; /* the change may have read a row of `into`, of `below` */
    bool crossed_below;       /* the change wrote a key that `below` has read or written */
    bool too_large;
};

/* --- options.c --- */

/* Fill db->cache and db->options, and every family's options. */
void options_build(struct db *db, const struct db_options *o);
void options_release(struct db *db);

/* --- error.c --- */

/* Translates RocksDB's message and frees it; the error's text is "<what> <path>: <message>". */
int error_take(struct err *err, char *message, const char *what, const char *path);

/* --- failure.c --- */

/* As error_take(), for a write. An error after which RocksDB accepts no more writes is noted in
 * db->failure. */
int failure_take(struct db *db, struct err *err, char *message, const char *what);
/* Called instead of a close for a database that has failed and that nobody uses any more. */
void failure_abandon(struct db *db);

/* --- db.c --- */

/* Writes the file that says which format the folder has; durable. */
int format_write(const char *folder, struct err *err) MUST_CHECK;

/* --- batch.c --- */

void batch_init(struct batch *b);
void batch_release(struct batch *b);
void batch_reset(struct batch *b);
bool batch_full(const struct batch *b);
/* Called by the writer. */
int batch_write(struct db *db, struct batch *b, enum db_durability d, struct err *err) MUST_CHECK;

/* Called when the batch is written or has failed (gaps.h). */
void batch_settled(struct db *db, const struct batch *b);

/* Runs the change `fn`; its rows are then in tx->into, or undone when it failed. */
int tx_run(struct db_tx *tx, db_change_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* In which pending batches the key may be; records that the change has looked there. */
enum { TX_INTO = 1, TX_BELOW = 2 };
unsigned tx_look(struct db_tx *tx, struct str key);
unsigned tx_look_all(struct db_tx *tx);
bool tx_may_have_deleted(const struct db_tx *tx, struct str key); /* in `into` */

/* --- group.c --- */

int group_init(struct db *db, uint64_t reserve_bytes, struct err *err) MUST_CHECK;
void group_release(struct db *db); /* waits for all that was handed in */

/* --- wake.c --- */

/* Adds `w` to the tree of waiters that wake each other. `*waker` is the waiter on the same list
 * that can wake one more; NULL: `w` is the first. */
void wake_by(struct waiter **waker, struct waiter *w);
/* Wakes all waiters on the list, and empties it. `self` is awake: if it is the first on the list it
 * is answered now, else it waits like the others. */
void wake_tree(struct list *done, struct waiter *self);
void wake_await(struct waiter *self);

/* --- keep.c --- */

/* Bytes of rows that are only in memory and in the log, not yet in table files. */
uint64_t keep_unwritten(struct db *db);

/* --- headroom.c --- */

/* Bytes of all logs; *last: the number of the last one. */
uint64_t headroom_logs(const struct db *db, uint64_t *last);
/* Called by the writer after each write; `written`: its bytes. */
void headroom_keep(struct db *db, size_t written);
/* Called by the writer when the disk is full: uses the headroom. False: the headroom is used up. */
bool headroom_spend(struct db *db, size_t bytes);

/* --- space.c --- */

/* Called by the runner before a change that is not urgent. ERR_NO_SPACE: less than the reserve is
 * free. */
int space_admit(struct db *db, struct err *err) MUST_CHECK;
/* Called by the writer. ERR_NO_SPACE: a write of `bytes` would leave too little room for RocksDB
 * itself; for durable writes the ballast is given up first. */
int space_check(struct db *db, size_t bytes, enum db_durability d, struct err *err) MUST_CHECK;
/* Before RocksDB is opened. ERR_NO_SPACE. */
int space_to_open(struct db *db, struct err *err) MUST_CHECK;
/* Whether the disk has room to write so many bytes out before the close. */
bool space_to_flush(struct db *db, uint64_t bytes);

#endif
