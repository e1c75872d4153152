/* Types and functions that the files of db/ share. Invariants are numbered in docs/db.md. */
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
    struct gaps *gaps; /* the cache of gaps; NULL unless `skips` */
    rocksdb_options_t *options;
    rocksdb_column_family_handle_t *handle; /* NULL until the family is opened */
};

struct db_view {
    struct db *db;
    /* The change that this view belongs to, whose pending state is read first; else NULL. */
    struct db_tx *tx;
    rocksdb_readoptions_t *read;        /* borrowed from the db unless there is a snapshot */
    const rocksdb_snapshot_t *snapshot; /* NULL unless made by db_snapshot() */
    /* rows_now() when the snapshot was taken: tells whether it may use cached rows */
    uint64_t rows_now;
};

/* A caller that waits in db_apply(). It is on the caller's stack, so it must not be used any more
 * once `wake` is posted. */
struct waiter {
    struct list node;
    db_change_fn *fn;
    void *ctx;
    struct err *err;
    int result;
    bool urgent; /* may use the reserve */
    bool ran;
    bool answered; /* the caller's own thread set the result, so `wake` is not posted */
    sem_t wake;
    struct waiter *wakes[2]; /* the waiters that this one wakes when it is woken, or NULL */
};

enum { FILTER_BITS = 16 * 1024 };

/* Sets of keys, with one bit for a key's hash: the answer "no" is certain, "yes" may be wrong. */
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
    size_t slot; /* the batch's number, for gaps_write() */
    rocksdb_writebatch_wi_t *rows;
    size_t count;
    /* Bytes written since the last reset, also by changes that were undone. */
    size_t bytes;
    size_t undone;        /* rows that RocksDB indexed again because a change was undone */
    VEC(uint64_t) hashes; /* rows_hash() of every key written, undone or not */
    bool read_all;        /* a change of the batch read a range */
    uint64_t filters[FILTER_COUNT][FILTER_BITS / 64];
    bool filled[FILTER_COUNT]; /* the filter has a bit set */

    /* The members below are guarded by the lock "db.group". */
    /* A list of struct waiter: changes that are answered when the batch is written. */
    struct list members;
    struct waiter *waker; /* the member that wakes the next one that joins (wake_by()) */
    size_t member_count, succeeded;
};

/* How much of the disk is free, checked from time to time. Used by the runner and the writer. */
struct space {
    uint64_t reserve; /* bytes; while less is free, only urgent writes are accepted */
    /* Monotonic time of the last check, if it found at least the reserve free; 0: less was free. */
    _Atomic(uint64_t) roomy_ns;
    _Atomic(uint64_t) written; /* bytes written since that check */
    _Atomic(bool) ballast;     /* the ballast file was made, or making it failed */
    /* Used by the writer: bytes written since headroom_keep() last checked. */
    uint64_t unlooked;
    /* Used by the writer: bytes written since all memtables were flushed. */
    uint64_t unshrunk;
    /* Used by the writer: bytes of the headroom used since the disk last had room. */
    uint64_t spent;
};

struct group {
    struct mutex lock; /* class "db.group"; guards the members above `stop` */
    /* Signalled when the db is closing and no thread runs or writes any more. */
    struct cond idle;
    /* Signalled when the open batch has `expected` members, or a volatile change waits. */
    struct cond gathered;
    /* Signalled when the runner has given a batch, or its role, to the writer. */
    struct cond given;
    struct list waiting; /* list of struct waiter: durable changes in the order of arrival */
    struct list fast;    /* list of struct waiter: volatile changes in the order of arrival */
    bool running;        /* a thread (the runner) runs changes into the open batch */
    /* A thread has the writer's role, and owns the members from `stop` on. */
    bool writing;
    bool wanted;  /* the writer waits for the runner */
    bool pending; /* the sealed batch is not in RocksDB yet, so changes must read it too */
    bool closing;
    /* The writer waits until the open batch has so many members; 0: it does not wait. */
    size_t expected;
    struct batch *open, *sealed, *spare;
    bool stop;       /* the writer thread ends when `hand_over` is posted next */
    sem_t hand_over; /* posted when the writer thread shall take the writer's role, or end */
    struct thread writer;

    size_t taken;     /* how many members the last written batch had */
    uint64_t took_ns; /* how long the write of that batch took, with the sync */
    struct batch slots[GAPS_BATCHES];
    struct space space;
    rocksdb_writeoptions_t *durable, *fast_write; /* with and without sync */
    /* Identifies the thread that is running a change; NULL: none. */
    _Atomic(const void *) runner;

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
    /* The next in the list of databases that failure_abandon() was called for. */
    struct db *abandoned;
    rocksdb_t *rocks;
    rocksdb_options_t *options;
    size_t memtable_bytes; /* all write buffers together */
    rocksdb_cache_t *cache;
    struct rows *rows; /* cache of rows of the latest state */
    /* The `cf_asked` families that were asked for, then other families found in the folder. */
    struct db_cf *cfs;
    size_t cf_count, cf_asked;
    bool scarce; /* the disk had little room when the database was opened */
    /* Options of reads without a snapshot. Never changed after the open, so all threads share
     * them. */
    rocksdb_readoptions_t *read;
    struct db_view latest;
    struct group group;
};

/* A change that is being run. It reads from `into`, then `below`, then the database; it writes to
 * `into`. */
struct db_tx {
    struct db *db;
    struct db_view view;
    int64_t now_ms;
    /* `into` is the batch that the change runs into. `below` is the batch before it that is not in
     * RocksDB yet; NULL: there is none */
    struct batch *into, *below;
    size_t bytes;     /* bytes written by this change */
    size_t iterators; /* number of open iterators */
    bool urgent;      /* may use the reserve */
    bool wrote;
    bool saw_into, saw_below; /* the change may have read a row of that batch */
    bool crossed_below;       /* the change wrote a key that `below` has read or written */
    bool too_large;
};

/* --- options.c --- */

/* Fills db->cache and db->options, and every family's options. */
void options_build(struct db *db, const struct db_options *o);
void options_release(struct db *db);

/* --- error.c --- */

/* Translates RocksDB's message into a code, and frees the message. The error's text is "<what>
 * <path>: <message>". */
int error_take(struct err *err, char *message, const char *what, const char *path);

/* --- failure.c --- */

/* As error_take(), for an error of a write. If RocksDB accepts no more writes after it, the error
 * is noted in db->failure. */
int failure_take(struct db *db, struct err *err, char *message, const char *what);
/* Called instead of a close for a database that has failed and that nobody uses any more. */
void failure_abandon(struct db *db);

/* --- db.c --- */

/* Durably writes the file that says which format the folder has. */
int format_write(const char *folder, struct err *err) MUST_CHECK;

/* --- batch.c --- */

void batch_init(struct batch *b);
void batch_release(struct batch *b);
void batch_reset(struct batch *b);
bool batch_full(const struct batch *b);
/* Writes the batch to RocksDB. Called by the writer. */
int batch_write(struct db *db, struct batch *b, enum db_durability d, struct err *err) MUST_CHECK;

/* Called when the batch is written or has failed: its keys are not pending any more (gaps.h). */
void batch_settled(struct db *db, const struct batch *b);

/* Runs the change `fn`. Afterwards its rows are in tx->into, or undone if it failed. */
int tx_run(struct db_tx *tx, db_change_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* Returns the pending batches that may have the key (tx_look_all(): any key), and records that the
 * change has looked there. */
enum { TX_INTO = 1, TX_BELOW = 2 };
unsigned tx_look(struct db_tx *tx, struct str key);
unsigned tx_look_all(struct db_tx *tx);
/* Whether a change of tx->into may have deleted the key. */
bool tx_may_have_deleted(const struct db_tx *tx, struct str key);

/* --- group.c --- */

int group_init(struct db *db, uint64_t reserve_bytes, struct err *err) MUST_CHECK;
void group_release(struct db *db); /* waits for all changes that were handed in */

/* --- wake.c --- */

/* Adds `w` to the tree of waiters that wake each other. `*waker` is the waiter on the same list
 * that wakes the next one added; NULL: `w` is the first. */
void wake_by(struct waiter **waker, struct waiter *w);
/* Wakes all waiters on the list, and empties the list. Only the first is woken here; each waiter
 * that wakes up wakes the next ones, as wake_by() arranged. `self` is the calling thread's own
 * waiter, or NULL. If it is the first on the list, it is marked as answered, and this call wakes
 * the next ones. If it is further back on the list, the thread has to call wake_await(). */
void wake_tree(struct list *done, struct waiter *self);
void wake_await(struct waiter *self);

/* --- keep.c --- */

/* Bytes of rows that are only in memory and in the log, not yet in table files. */
uint64_t keep_unwritten(struct db *db);

/* --- headroom.c --- */

/* Returns the bytes of all log files; *last is the number of the newest. */
uint64_t headroom_logs(const struct db *db, uint64_t *last);
/* Renews the headroom. Called by the writer after each write, with the number of bytes written. */
void headroom_keep(struct db *db, size_t written);
/* Called by the writer when the disk is full: uses `bytes` of the headroom. False: the headroom is
 * used up. */
bool headroom_spend(struct db *db, size_t bytes);

/* --- space.c --- */

/* Checks the free space before a change that is not urgent. Called by the runner. ERR_NO_SPACE:
 * less than the reserve is free. */
int space_admit(struct db *db, struct err *err) MUST_CHECK;
/* Checks the free space before a write. Called by the writer. ERR_NO_SPACE: a write of `bytes`
 * would leave too little room for RocksDB itself. For durable writes the ballast is removed
 * first. */
int space_check(struct db *db, size_t bytes, enum db_durability d, struct err *err) MUST_CHECK;
/* Checks the free space before RocksDB is opened. ERR_NO_SPACE: there is too little to open it. */
int space_to_open(struct db *db, struct err *err) MUST_CHECK;
/* Whether the disk has room to write so many bytes to table files before the close. */
bool space_to_flush(struct db *db, uint64_t bytes);

#endif
