/* Types and functions that the files of db/ share. docs/db.md describes the two roles that threads
 * take: the *runner* runs the changes, and puts the rows that they write into the open batch; the
 * *writer* seals that batch, so that it does not change any more, and writes it to RocksDB. W1 to
 * W11 are invariants of that page. */
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
    bool skips, absent;
    struct gaps *gaps; /* the cache of gaps (gaps.h); NULL unless the family has `skips` */
    rocksdb_options_t *options;
    rocksdb_column_family_handle_t *handle; /* NULL until the family is opened */
};

struct db_view {
    struct db *db;
    /* The change that this view belongs to; its pending state is read first. NULL: no change. */
    struct db_tx *tx;
    rocksdb_readoptions_t *read;        /* borrowed from the db unless there is a snapshot */
    const rocksdb_snapshot_t *snapshot; /* NULL unless made by db_snapshot() */
    /* The value of rows_now() when the snapshot was taken. It tells whether reads of the snapshot
     * may use cached rows. */
    uint64_t rows_now;
};

/* A caller that waits in db_apply(), with its change. The struct is on the caller's stack, so it
 * must not be used any more once `wake` is posted. */
struct waiter {
    struct list node;
    db_change_fn *fn;
    void *ctx;
    struct err *err;
    int result;
    bool urgent; /* the change may use the reserved disk space */
    bool ran;
    bool answered; /* the caller's own thread set the result, so `wake` is not posted */
    sem_t wake;
    struct waiter *wakes[2]; /* the waiters that this waiter wakes once it is woken, or NULL */
};

enum { FILTER_BITS = 16 * 1024 };

/* Sets of keys that have one bit for a key's hash. The answer "the key is not in the set" is
 * certain; the answer "the key is in the set" may be wrong. */
enum filter {
    FILTER_WRITTEN, /* keys that changes of the batch wrote, even if undone */
    FILTER_DELETED, /* keys that changes of the batch deleted, even if undone */
    FILTER_READ,    /* keys that changes of the batch looked up */
    FILTER_COUNT,
};

/* Rows that changes have written and that are not in RocksDB yet, and the callers that wait for
 * them. Rows and filters belong to the runner while the batch is open, and do not change once the
 * batch is sealed (docs/db.md, W2). */
struct batch {
    size_t slot; /* the batch's number, for gaps_write() */
    rocksdb_writebatch_wi_t *rows;
    size_t count;
    /* Bytes written since the last reset, including those of changes that were undone. */
    size_t bytes;
    size_t undone;        /* rows that RocksDB indexed again because a change was undone */
    VEC(uint64_t) hashes; /* rows_hash() of every key written, even by undone changes */
    bool read_all;        /* a change of the batch read a range */
    uint64_t filters[FILTER_COUNT][FILTER_BITS / 64];
    bool filled[FILTER_COUNT]; /* whether the filter has any bit set */

    /* The members below are guarded by the lock "db.group". */
    /* A list of struct waiter: the changes whose callers get their answer when the batch is
     * written. */
    struct list members;
    struct waiter *waker; /* the member that will wake the next member to join (wake_by()) */
    size_t member_count, succeeded;
};

/* The free space on the disk, which is checked from time to time. The runner and the writer use
 * it. */
struct space {
    uint64_t reserve; /* bytes; while less is free, only urgent writes are accepted */
    /* The clock_mono_ns() time of the last check, or 0 when that check found less free than the
     * reserve. */
    _Atomic(uint64_t) roomy_ns;
    _Atomic(uint64_t) written; /* bytes written since the check of roomy_ns */
    _Atomic(bool) ballast;     /* the ballast file was made, or making it failed */
    /* Only the writer uses this: bytes written since headroom_keep() last checked. */
    uint64_t unlooked;
    /* Only the writer uses this: bytes written since all memtables were last written out. */
    uint64_t unshrunk;
    /* Only the writer uses this: bytes of the headroom (headroom.c) used since the disk last had
     * room. */
    uint64_t spent;
};

struct group {
    struct mutex lock; /* class "db.group"; guards the members above `stop` */
    /* Signalled when the db is closing and there is neither a runner nor a writer any more. */
    struct cond idle;
    /* Signalled when the writer can stop waiting for further changes (group_gathered()). */
    struct cond gathered;
    /* Signalled when the runner has given a batch, or the runner's role, to the writer. */
    struct cond given;
    struct list waiting; /* list of struct waiter: durable changes in the order of arrival */
    struct list fast;    /* list of struct waiter: volatile changes in the order of arrival */
    bool running;        /* a thread (the runner) runs changes into the open batch */
    /* A thread has the writer's role, and owns the members from `stop` on. */
    bool writing;
    bool wanted;  /* the writer waits for the runner to seal the open batch or give up its role */
    bool pending; /* the sealed batch is not in RocksDB yet, so changes must read it too */
    bool closing;
    /* The writer waits until the open batch has this many members; 0: it does not wait for members.
     */
    size_t expected;
    struct batch *open, *sealed, *spare;
    bool stop;       /* the writer thread ends when `hand_over` is posted the next time */
    sem_t hand_over; /* posted when the writer thread has to take the writer's role, or to end */
    struct thread writer;

    size_t taken;     /* how many members the last written batch had */
    uint64_t took_ns; /* how long writing and syncing the last batch took */
    struct batch slots[GAPS_BATCHES];
    struct space space;
    rocksdb_writeoptions_t *durable, *fast_write; /* with and without sync */
    /* pthread_self() of the thread that is running a change; NULL: no thread is. */
    _Atomic(const void *) runner;

    _Atomic(uint64_t) changes, groups, syncs, failed;
};

enum { FAILURE_NONE, FAILURE_BEING_NOTED, FAILURE_NOTED };

/* The reason why no write is accepted any more. It is set once. */
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
    /* The next database in the list of databases that failure_abandon() left open. */
    struct db *abandoned;
    rocksdb_t *rocks;
    rocksdb_options_t *options;
    size_t memtable_bytes; /* size of all write buffers together */
    rocksdb_cache_t *cache;
    struct rows *rows; /* cache of rows of the latest state */
    /* First the `cf_asked` families of db_options.cfs, then other families found in the folder. */
    struct db_cf *cfs;
    size_t cf_count, cf_asked;
    bool scarce; /* the disk had little room when the database was opened */
    /* Options of reads without a snapshot. They do not change after the open, so all threads share
     * them. */
    rocksdb_readoptions_t *read;
    struct db_view latest;
    struct group group;
};

/* A change that is running. It reads from `into`, then `below`, then the database; it writes to
 * `into`. */
struct db_tx {
    struct db *db;
    struct db_view view;
    int64_t now_ms;
    /* `into` is the batch that gets the change's rows. `below` is the batch before it that is not
     * in RocksDB yet; NULL: there is none. */
    struct batch *into, *below;
    size_t bytes;     /* bytes written by this change */
    size_t iterators; /* number of open iterators */
    bool urgent;      /* the change may use the reserved disk space */
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

/* Sets `err` from a message of RocksDB, frees the message and returns the error code. The text is
 * "<what> <path>: <message>". */
int error_take(struct err *err, char *message, const char *what, const char *path);

/* --- failure.c --- */

/* Like error_take(), for the error of a write. If RocksDB accepts no more writes after this error,
 * the error is stored in db->failure. */
int failure_take(struct db *db, struct err *err, char *message, const char *what);
/* Does not close a database that has failed, although nothing uses it any more. This function is
 * called instead of a close. */
void failure_abandon(struct db *db);

/* --- db.c --- */

/* Durably writes the file that says which format the folder has. */
int format_write(const char *folder, struct err *err) MUST_CHECK;

/* --- batch.c --- */

void batch_init(struct batch *b);
void batch_release(struct batch *b);
void batch_reset(struct batch *b);
bool batch_full(const struct batch *b);
/* Writes the batch to RocksDB. The writer calls this. */
int batch_write(struct db *db, struct batch *b, enum db_durability d, struct err *err) MUST_CHECK;

/* Tells the caches of gaps that the batch is written or has failed, so that its keys are not
 * pending any more (gaps.h). */
void batch_settled(struct db *db, const struct batch *b);

/* Runs the change `fn`. Afterwards its rows are in tx->into, or undone if it failed. */
int tx_run(struct db_tx *tx, db_change_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* These return which pending batches may have the key (tx_look_all(): any key), as bits TX_INTO and
 * TX_BELOW. They also record that the change has read from those batches. */
enum { TX_INTO = 1, TX_BELOW = 2 };
unsigned tx_look(struct db_tx *tx, struct str key);
unsigned tx_look_all(struct db_tx *tx);
/* Whether a change of tx->into may have deleted the key. */
bool tx_may_have_deleted(const struct db_tx *tx, struct str key);

/* --- group.c --- */

int group_init(struct db *db, uint64_t reserve_bytes, struct err *err) MUST_CHECK;
void group_release(struct db *db); /* waits for all changes that were passed to db_apply() */

/* --- wake.c --- */

/* Adds `w` to the tree of waiters that wake each other. *waker is the waiter on the same list that
 * will wake the next waiter added; NULL: `w` is the first. */
void wake_by(struct waiter **waker, struct waiter *w);
/* Wakes all waiters on the list, and empties the list. Only the first is woken here; each waiter
 * that wakes up wakes two more, as wake_by() arranged. `self` is the calling thread's own waiter,
 * or NULL. If `self` is the first on the list, it is marked as answered, and this call wakes the
 * next two. If `self` is further back on the list, the thread has to call wake_await(). */
void wake_tree(struct list *done, struct waiter *self);
void wake_await(struct waiter *self);

/* --- keep.c --- */

/* Returns the bytes of rows that are only in memory and in the log, not yet in table files. */
uint64_t keep_unwritten(struct db *db);

/* --- headroom.c --- */

/* Returns the size in bytes of all log files together. *last is the number of the newest log file.
 */
uint64_t headroom_logs(const struct db *db, uint64_t *last);
/* Renews the headroom (headroom.c). The writer calls this after each write, with the number of
 * bytes written. */
void headroom_keep(struct db *db, size_t written);
/* Uses `bytes` of the headroom. The writer calls this when the disk is full. Returns false when the
 * headroom is used up. */
bool headroom_spend(struct db *db, size_t bytes);

/* --- space.c --- */

/* Checks the free space for a change that is not urgent. The runner calls this. ERR_NO_SPACE: less
 * than the reserve is free. */
int space_admit(struct db *db, struct err *err) MUST_CHECK;
/* Checks the free space before a write. The writer calls this. ERR_NO_SPACE: a write of `bytes`
 * would leave too little room for RocksDB itself. For a durable write the ballast file is removed,
 * if necessary, before the write is refused. */
int space_check(struct db *db, size_t bytes, enum db_durability d, struct err *err) MUST_CHECK;
/* Checks the free space before RocksDB is opened. ERR_NO_SPACE: there is too little to open the
 * database. */
int space_to_open(struct db *db, struct err *err) MUST_CHECK;
/* Whether the disk has room to write `bytes` to table files before the close. */
bool space_to_flush(struct db *db, uint64_t bytes);

#endif
