/* Group commit by a leader: the caller that finds nobody writing runs every change that waits,
 * writes and syncs once, hands the lead to the first that came meanwhile, and wakes its followers.
 * docs/db.md has the invariants (W1 to W9) and why this is not a thread of its own. */
#include "db/db_int.h"

#include "base/clock.h"
#include "base/hash.h"

enum {
    GROUP_MAX_CHANGES = 1024,          /* bounds how long a leader works for others */
    BATCH_MAX_BYTES = 4 * 1024 * 1024, /* the rest of the group makes another batch */
    BATCH_MAX_UNDONE = 64 * 1024,      /* rows: undoing a change indexes the whole batch anew */
    BATCH_KEEP_BYTES = 256 * 1024,     /* a batch that grew past it gives its memory back */
    GATHER_SHARE = 8,                  /* of the time that the last sync took */
    GATHER_MIN_NS = 100 * 1000,        /* less cannot be slept exactly */
    CHANGE_MAX_BYTES = 64 * 1024 * 1024,
    ROW_OVERHEAD_BYTES = 16, /* about what a row takes in the log beside key and value */
};

/* A caller asleep in db_apply; lives on its stack, gone as soon as `wake` is posted. */
struct waiter {
    struct list node;
    db_change_fn *fn;
    void *ctx;
    struct err *err;
    enum db_durability durability;
    int result;
    sem_t wake;
    struct waiter *wakes[2]; /* whom to wake in turn, or NULL */
};

static int batch_write(struct db *db, enum db_durability d, struct err *err);
static void batch_reset(struct batch *b);
static void bump(_Atomic(uint64_t) *counter, uint64_t by);

static void sem_wait_always(sem_t *s)
{
    while (sem_wait(s) != 0)
        ;
}

static void wake_next(const struct waiter *w)
{
    for (size_t i = 0; i < ARRAY_SIZE(w->wakes); i++)
        if (w->wakes[i])
            sem_post(&w->wakes[i]->wake);
}

/* Run one change. True when its caller need not wait for the disk: it neither wrote nor saw what is
 * not there yet (W5). */
static bool run_change(struct db *db, struct waiter *w)
{
    struct group *g = &db->group;
    struct db_tx tx = {.db = db, .now_ms = clock_wall_ms()};

    tx.view = (struct db_view){.db = db, .tx = &tx, .read = db->read};
    atomic_store_explicit(&g->runner, (const void *)pthread_self(), memory_order_relaxed);
    w->result = w->fn(&tx, w->ctx, w->err);
    atomic_store_explicit(&g->runner, NULL, memory_order_relaxed);
    BUG_ON(tx.iterators > 0);
    if (w->result == 0 && tx.too_large)
        w->result = err_set(w->err, ERR_TOO_LARGE, "one change may not write more than %d MiB",
                            (int)(CHANGE_MAX_BYTES / MIB));
    if (w->result != 0)
        bump(&g->failed, 1);
    if (w->result != 0 && tx.wrote) {
        char *message = NULL;
        rocksdb_writebatch_wi_rollback_to_save_point(g->batch.rows, &message);
        BUG_ON(message);
        g->batch.count = (size_t)rocksdb_writebatch_wi_count(g->batch.rows);
        g->batch.undone += g->batch.count;
        tx.wrote = false;
    }
    if (tx.wrote || tx.saw_pending)
        return false;
    bump(&g->changes, w->result == 0);
    return true;
}

static bool batch_full(const struct batch *b)
{
    return b->bytes >= BATCH_MAX_BYTES || b->undone >= BATCH_MAX_UNDONE;
}

/* Waking is what costs with many callers, so it is shared: each that wakes wakes two more, in the
 * shape of a heap over the list. `self` is awake already. */
static void wake_all(struct list *done, struct waiter *self)
{
    struct waiter root = {0}, *parent = &root;

    list_init(&root.node);
    list_splice(&root.node, done);
    list_each_safe (&root.node, struct waiter, node, w) {
        if (w == self) {
            list_remove(&w->node);
        } else if (!parent->wakes[0]) {
            parent->wakes[0] = w;
        } else {
            parent->wakes[1] = w;
            parent = list_entry(parent->node.next, struct waiter, node);
        }
    }
    wake_next(&root);
}

/* All or nothing for those that share the batch, also for one that failed by itself: what it saw
 * has not come to be (W4). */
static void commit(struct db *db, struct list *members, enum db_durability d)
{
    struct err err = {0};
    int result = batch_write(db, d, &err);

    list_each (members, struct waiter, node, w) {
        if (result != 0) {
            w->result = result;
            err_set(w->err, result, "%s", err.text);
        }
        bump(&db->group.changes, w->result == 0);
    }
    if (db->group.batch.bytes > 0)
        batch_reset(&db->group.batch);
    for (size_t i = 0; i < db->cf_asked; i++)
        if (db->cfs[i].gaps)
            gaps_settled(db->cfs[i].gaps);
}

/* Run the waiters in `in`, one batch or more. */
static void run_list(struct db *db, struct list *in, enum db_durability d, struct waiter *self)
{
    struct list done, settled;

    list_init(&done);
    list_init(&settled);
    while (!list_empty(in)) {
        while (!list_empty(in) && !batch_full(&db->group.batch)) {
            struct waiter *w = list_entry(list_shift(in), struct waiter, node);
            list_push(run_change(db, w) ? &settled : &done, &w->node);
        }
        wake_all(&settled, self);
        commit(db, &done, d);
        wake_all(&done, self);
    }
}

/* Lead one group; false when nobody waits any more and the lead was laid down. Volatile changes go
 * first, as a batch of their own: they need not wait for the sync, and no reader sees a durable row
 * before it is on disk (W3). */
static bool lead(struct db *db, struct waiter *self)
{
    struct group *g = &db->group;
    struct list fast, durable;
    bool more;

    list_init(&fast);
    list_init(&durable);
    mutex_lock(&g->lock);
    for (g->taken = 0; g->taken < GROUP_MAX_CHANGES && !list_empty(&g->waiting); g->taken++) {
        struct waiter *w = list_entry(list_shift(&g->waiting), struct waiter, node);
        list_push(w->durability == DB_VOLATILE ? &fast : &durable, &w->node);
        g->waiting_count--;
    }
    g->hurry = false;
    mutex_unlock(&g->lock);

    run_list(db, &fast, DB_VOLATILE, self);
    uint64_t began = clock_mono_ns();
    run_list(db, &durable, DB_DURABLE, self);
    g->took_ns = clock_mono_ns() - began;

    mutex_lock(&g->lock);
    g->leading = more = !list_empty(&g->waiting);
    if (!more && g->closing)
        cond_signal(&g->idle);
    mutex_unlock(&g->lock);
    return more;
}

/* With a slow disk it pays to wait a little for those just woken to come back: otherwise the
 * callers fall into two halves that take turns, with half the changes for each sync (W9). */
static void gather(struct group *g)
{
    uint64_t patience_ns = g->took_ns / GATHER_SHARE;

    if (patience_ns < GATHER_MIN_NS)
        return;
    uint64_t deadline = clock_mono_ns() + patience_ns;
    mutex_lock(&g->lock);
    g->expected = size_min(g->taken + g->waiting_count, GROUP_MAX_CHANGES);
    while (g->waiting_count < g->expected && !g->hurry)
        if (!cond_wait_until(&g->gathered, &g->lock, deadline))
            break;
    g->expected = 0;
    mutex_unlock(&g->lock);
}

/* Takes the lead over while there is more to do than one caller should do for the others. */
static void writer_main(void *ctx)
{
    struct db *db = ctx;

    for (;;) {
        sem_wait_always(&db->group.hand_over);
        if (db->group.stop)
            return;
        while (lead(db, NULL))
            gather(&db->group);
    }
}

int db_apply(struct db *db, enum db_durability d, db_change_fn *fn, void *ctx, struct err *err)
{
    struct group *g = &db->group;
    struct waiter self = {.fn = fn, .ctx = ctx, .err = err, .durability = d};
    bool leads;

    BUG_ON(atomic_load_explicit(&g->runner, memory_order_relaxed) == (const void *)pthread_self());
    sem_init(&self.wake, 0, 0);
    mutex_lock(&g->lock);
    if (g->closing) {
        mutex_unlock(&g->lock);
        return err_set(err, ERR_SHUTDOWN, "the database is closing");
    }
    list_push(&g->waiting, &self.node);
    g->hurry = g->hurry || d == DB_VOLATILE;
    if (++g->waiting_count == g->expected || g->hurry)
        cond_signal(&g->gathered);
    leads = !g->leading;
    g->leading = true;
    mutex_unlock(&g->lock);

    if (!leads) {
        sem_wait_always(&self.wake);
        wake_next(&self);
    } else if (lead(db, &self)) {
        sem_post(&g->hand_over);
    }
    sem_destroy(&self.wake);
    return self.result;
}

struct db_view *db_tx_view(struct db_tx *tx)
{
    return &tx->view;
}

int64_t db_tx_now_ms(struct db_tx *tx)
{
    return tx->now_ms;
}

static uint64_t *key_word(struct batch *b, struct str key, uint64_t *bit)
{
    uint64_t h = hash_xxh3(key, 0) % GROUP_KEY_BITS;
    *bit = (uint64_t)1 << (h % 64);
    return &b->keys[h / 64];
}

/* Notes a write of this change; false when it may not be made. */
static bool tx_write(struct db_tx *tx, struct db_cf *cf, struct str key, size_t bytes)
{
    struct batch *b = &tx->db->group.batch;
    uint64_t bit;

    if (tx->too_large || bytes > CHANGE_MAX_BYTES - tx->bytes) {
        tx->too_large = true;
        return false;
    }
    if (!tx->wrote)
        rocksdb_writebatch_wi_set_save_point(b->rows);
    tx->wrote = true;
    tx->bytes += bytes;
    b->bytes += bytes + ROW_OVERHEAD_BYTES;
    b->count++;
    *key_word(b, key, &bit) |= bit;
    vec_push(&b->hashes, rows_hash(tx->db->rows, cf, key));
    return true;
}

void db_tx_put(struct db_tx *tx, struct db_cf *cf, struct str key, struct str value)
{
    if (!tx_write(tx, cf, key, key.len + value.len))
        return;
    if (cf->gaps)
        gaps_write(cf->gaps, key, GAPS_PUT);
    rocksdb_writebatch_wi_put_cf(tx->db->group.batch.rows, cf->handle, key.p, key.len, value.p,
                                 value.len);
}

void db_tx_delete(struct db_tx *tx, struct db_cf *cf, struct str key)
{
    if (!tx_write(tx, cf, key, key.len))
        return;
    if (cf->gaps)
        gaps_write(cf->gaps, key, GAPS_DELETE);
    rocksdb_writebatch_wi_delete_cf(tx->db->group.batch.rows, cf->handle, key.p, key.len);
}

bool tx_may_hold(struct db_tx *tx, struct str key)
{
    struct batch *b = &tx->db->group.batch;
    uint64_t bit;

    if (b->count == 0 || !(*key_word(b, key, &bit) & bit))
        return false;
    tx->saw_pending = true;
    return true;
}

bool tx_may_hold_any(struct db_tx *tx)
{
    if (tx->db->group.batch.count == 0)
        return false;
    tx->saw_pending = true;
    return true;
}

static int batch_write(struct db *db, enum db_durability d, struct err *err)
{
    struct group *g = &db->group;
    char *message = NULL;

    if (g->batch.count == 0)
        return 0;
    int code = space_check(db, g->batch.bytes, err);
    if (code != 0)
        return code;
    rows_write_begin(db->rows, g->batch.hashes.items, g->batch.hashes.len);
    rocksdb_write_writebatch_wi(db->rocks, d == DB_DURABLE ? g->durable : g->fast, g->batch.rows,
                                &message);
    rows_write_end(db->rows, g->batch.hashes.items, g->batch.hashes.len);
    if (message)
        return error_take(err, message, "writing to", db->path);
    bump(&g->groups, 1);
    bump(&g->syncs, d == DB_DURABLE);
    return 0;
}

static void batch_reset(struct batch *b)
{
    if (b->bytes > BATCH_KEEP_BYTES) {
        rocksdb_writebatch_wi_destroy(b->rows);
        b->rows = NULL;
        vec_release(&b->hashes);
    }
    if (!b->rows)
        b->rows = rocksdb_writebatch_wi_create(0, 1);
    else
        rocksdb_writebatch_wi_clear(b->rows);
    b->count = b->bytes = b->undone = b->hashes.len = 0;
    memset(b->keys, 0, sizeof(b->keys));
}

/* Only the leader writes them, so no locked addition. */
static void bump(_Atomic(uint64_t) *counter, uint64_t by)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, now + by, memory_order_relaxed);
}

int group_init(struct db *db, uint64_t reserve_bytes, struct err *err)
{
    struct group *g = &db->group;

    mutex_init(&g->lock, "db.group");
    cond_init(&g->idle);
    cond_init(&g->gathered);
    list_init(&g->waiting);
    g->space.reserve = reserve_bytes;
    g->fast = rocksdb_writeoptions_create();
    g->durable = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(g->durable, 1);
    batch_reset(&g->batch);
    sem_init(&g->hand_over, 0, 0);
    return thread_start(&g->writer, "db-writer", 0, writer_main, db, err);
}

void group_release(struct db *db)
{
    struct group *g = &db->group;

    mutex_lock(&g->lock);
    g->closing = true;
    while (g->leading)
        cond_wait(&g->idle, &g->lock);
    BUG_ON(!list_empty(&g->waiting));
    g->stop = true;
    mutex_unlock(&g->lock);
    sem_post(&g->hand_over);
    thread_join(&g->writer);
    sem_destroy(&g->hand_over);
    rocksdb_writebatch_wi_destroy(g->batch.rows);
    vec_release(&g->batch.hashes);
    rocksdb_writeoptions_destroy(g->fast);
    rocksdb_writeoptions_destroy(g->durable);
    cond_release(&g->gathered);
    cond_release(&g->idle);
    mutex_release(&g->lock);
}

struct row {
    struct db_cf *cf;
    struct str key, value;
};

static int put_row(struct db_tx *tx, void *ctx, struct err *err)
{
    const struct row *row = ctx;
    db_tx_put(tx, row->cf, row->key, row->value);
    return 0;
}

static int delete_row(struct db_tx *tx, void *ctx, struct err *err)
{
    const struct row *row = ctx;
    db_tx_delete(tx, row->cf, row->key);
    return 0;
}

int db_put(struct db *db, struct db_cf *cf, struct str key, struct str value, enum db_durability d,
           struct err *err)
{
    return db_apply(db, d, put_row, &(struct row){cf, key, value}, err);
}

int db_delete(struct db *db, struct db_cf *cf, struct str key, enum db_durability d,
              struct err *err)
{
    return db_apply(db, d, delete_row, &(struct row){cf, key, STR_EMPTY}, err);
}
