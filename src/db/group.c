/* Group commit in two roles: the runner runs changes into the open batch, while the writer writes
 * and syncs the sealed batch. docs/db.md has the reasons and the invariants W1 to W11. */
#include "db/db_int.h"

#include "base/clock.h"

enum {
    /* The most changes that a caller runs in one turn, so that it does not work for other callers
     * too long. */
    RUN_MAX_CHANGES = 1024,
    /* The writer gathers changes for an eighth of the time that the last write took. */
    GATHER_SHARE = 8,
    /* The writer does not gather when the time would be shorter than this, because such short
     * sleeps are inexact. */
    GATHER_MIN_NS = 100 * NS_PER_US,
};

/* Which write the caller of a change has to wait for after the change has run. */
enum due {
    DUE_NOW,        /* no write: the change neither wrote rows nor saw pending rows (W6) */
    DUE_WITH_BELOW, /* the write of the batch below, because the change saw rows of that batch */
    /* The write of the open batch, because the change added rows to it or saw rows of it. */
    DUE_WITH_INTO,
};

static void sem_wait_always(sem_t *s)
{
    while (sem_wait(s) != 0)
        ;
}

static void count(_Atomic(uint64_t) *counter, size_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* Wakes the waiters on `done`, whose results are set. `self` is the calling thread's own waiter, or
 * NULL. */
static void group_answer(struct group *g, struct list *done, struct waiter *self)
{
    struct waiter *waker = NULL;
    size_t succeeded = 0;

    list_each_safe (done, struct waiter, node, w) {
        succeeded += w->result == 0;
        if (w == self) {
            list_remove(&w->node);
            w->answered = true;
        } else {
            wake_by(&waker, w);
        }
    }
    count(&g->changes, succeeded);
    wake_tree(done, self);
}

/* Gives a change the error of its batch. All changes of a batch fail together, even a change that
 * had already failed by itself, because the rows that it read were never committed (docs/db.md,
 * W5). */
static void waiter_fail(struct waiter *w, int result, const struct err *err)
{
    w->result = result;
    err_set(w->err, result, "%s", err->text);
}

static enum due run_change(struct db_tx *tx, struct waiter *w)
{
    tx->urgent = w->urgent;
    w->result = tx_run(tx, w->fn, w->ctx, w->err);
    w->ran = true;
    if (w->result != 0)
        count(&tx->db->group.failed, 1);
    if (tx->wrote || tx->saw_into)
        return DUE_WITH_INTO;
    return tx->saw_below ? DUE_WITH_BELOW : DUE_NOW;
}

/* Adds a member to the batch. The tree of waiters that wake each other is built as the batch grows,
 * so that the writer, for whom all wait, need not visit every member. */
static void batch_join(struct batch *b, struct waiter *w)
{
    list_push(&b->members, &w->node);
    b->member_count++;
    b->succeeded += w->result == 0;
    wake_by(&b->waker, w);
}

/* Seals the open batch and puts the spare batch in its place. The batch that was sealed before is
 * finished; it becomes the spare, and the writer will empty it (docs/db.md, W2). The runner calls
 * this, or the writer while the runner's role is free. */
static void group_seal(struct group *g)
{
    struct batch *done = g->sealed;

    BUG_ON(g->pending);
    g->sealed = g->open;
    g->open = g->spare;
    g->spare = done;
    g->pending = true;
}

/* Gives the open batch to the writer. The runner calls this when the writer waits. Returns false
 * when the writer needs the runner's role itself. */
static bool give_batch(struct group *g)
{
    if (g->pending || !list_empty(&g->fast))
        return false;
    if (g->open->member_count == 0)
        return true;
    group_seal(g);
    g->wanted = false;
    cond_signal(&g->given);
    return true;
}

/* Runs the waiting changes into the open batch. The runner calls this, with the lock. Changes that
 * need not wait for the disk are put on `settled`. A caller gives up the runner's role when the
 * batch with its own change is being written, because it may have other callers to wake
 * (docs/db.md, W10). */
static void run_waiting(struct db *db, struct list *settled, const struct waiter *self)
{
    struct group *g = &db->group;

    for (int n = 0; n < RUN_MAX_CHANGES; n++) {
        if (g->wanted && (!give_batch(g) || (g->pending && self && self->ran)))
            return;
        if (list_empty(&g->waiting) || batch_full(g->open))
            return;
        struct waiter *w = list_entry(list_shift(&g->waiting), struct waiter, node);
        struct db_tx tx = {.db = db, .into = g->open, .below = g->pending ? g->sealed : NULL};
        mutex_unlock(&g->lock);
        enum due due = run_change(&tx, w);
        mutex_lock(&g->lock);
        if (due == DUE_WITH_INTO)
            batch_join(tx.into, w);
        else if (due == DUE_WITH_BELOW && g->pending)
            batch_join(tx.below, w);
        else
            list_push(settled, &w->node);
    }
}

static bool more_to_write(const struct group *g)
{
    return g->pending || g->open->member_count > 0 || !list_empty(&g->waiting) ||
           !list_empty(&g->fast);
}

static void note_idle(struct group *g)
{
    if (g->closing && !g->writing && !g->running)
        cond_signal(&g->idle);
}

/* Whether the writer can stop waiting for further changes: enough changes came, or a volatile
 * change waits, or changes wait although the runner's role is free, because the open batch is
 * full. */
static bool group_gathered(const struct group *g)
{
    return g->open->member_count >= g->expected || !list_empty(&g->fast) ||
           (!g->running && !list_empty(&g->waiting));
}

/* Gives up the runner's role. The caller holds the lock. Returns true when the caller now has the
 * writer's role, which was free, and there is something to write. */
static bool leave_running(struct group *g)
{
    bool writes = !g->writing && more_to_write(g);

    g->running = false;
    g->writing = g->writing || writes;
    if (g->wanted)
        cond_signal(&g->given);
    if (g->expected > 0 && group_gathered(g))
        cond_signal(&g->gathered);
    note_idle(g);
    return writes;
}

/* Waits for the runner. The writer calls this, with the lock. Afterwards either the writer has the
 * runner's role too, or the runner has sealed a batch. */
static void want_running(struct group *g)
{
    g->wanted = true;
    while (g->running && g->wanted)
        cond_wait(&g->given, &g->lock);
    if (g->wanted)
        g->running = true;
    g->wanted = false;
}

/* Writes the rows of volatile changes without a sync, and answers their callers. Gives up the lock
 * meanwhile. */
static void write_fast(struct db *db, struct list *done, struct waiter *self)
{
    struct group *g = &db->group;
    struct err err = {0};

    mutex_unlock(&g->lock);
    int result = batch_write(db, g->spare, DB_VOLATILE, &err);
    list_each (&g->spare->members, struct waiter, node, w)
        if (result != 0)
            waiter_fail(w, result, &err);
    list_splice(done, &g->spare->members);
    batch_reset(g->spare);
    group_answer(g, done, self);
    mutex_lock(&g->lock);
}

/* Runs one volatile change into the spare batch; the change also reads the open batch. Returns true
 * when the change must be written after the open batch. */
static bool run_fast(struct db *db, struct list *done)
{
    struct group *g = &db->group;
    struct waiter *w = list_entry(list_shift(&g->fast), struct waiter, node);
    struct db_tx tx = {.db = db, .into = g->spare, .below = g->open->count > 0 ? g->open : NULL};

    mutex_unlock(&g->lock);
    enum due due = run_change(&tx, w);
    mutex_lock(&g->lock);
    if (due == DUE_WITH_INTO)
        batch_join(tx.into, w);
    else if (due == DUE_WITH_BELOW)
        batch_join(tx.below, w);
    else
        list_push(done, &w->node);
    return tx.wrote && (tx.saw_below || tx.crossed_below);
}

/* Runs the volatile changes and writes them at once, ahead of the open batch. The writer calls this
 * between two durable batches, with both roles and the lock. A change that must come after the open
 * batch stays in the spare batch, and so do the changes after it. The spare batch is then written
 * next after the open batch (docs/db.md, W4). */
static void run_fast_all(struct db *db, struct waiter *self)
{
    struct group *g = &db->group;
    struct list done;
    bool behind = false, alone = g->open->count == 0;

    list_init(&done);
    for (int n = 0; n < RUN_MAX_CHANGES; n++) {
        if (list_empty(&g->fast) || batch_full(g->spare))
            break;
        behind = run_fast(db, &done) || behind;
        if (!behind && !alone)
            write_fast(db, &done, self);
    }
    if (!behind && alone)
        write_fast(db, &done, self);
    group_answer(g, &done, self);
}

/* Waits a little until the callers that were just woken come back with new changes. With a slow
 * disk this pays: without it the callers would split into two halves that take turns, and each sync
 * would serve half the changes (docs/db.md, W11). */
static void group_gather(struct group *g)
{
    uint64_t deadline = clock_mono_ns() + g->took_ns / GATHER_SHARE;

    g->expected = g->taken + g->open->member_count;
    while (!group_gathered(g))
        if (!cond_wait_until(&g->gathered, &g->lock, deadline))
            break;
    g->expected = 0;
}

static bool slow_disk(const struct group *g)
{
    return g->took_ns / GATHER_SHARE >= GATHER_MIN_NS;
}

/* Writes volatile changes, then seals the open batch. The writer calls this, with the lock. A
 * caller that has its answer leaves the sealing to the writer thread, unless volatile changes must
 * come after the open batch. */
static void group_prepare(struct db *db, struct list *settled, struct waiter *self)
{
    struct group *g = &db->group;

    if (!self && slow_disk(g))
        group_gather(g);
    want_running(g);
    if (g->pending)
        return;
    if (!list_empty(&g->fast))
        run_fast_all(db, self);
    bool behind = g->spare->member_count > 0, leaves = self && self->answered;
    if (!behind && !leaves)
        run_waiting(db, settled, self);
    if (behind || (!leaves && g->open->member_count > 0))
        group_seal(g);
    leave_running(g);
}

/* Seals the batch whose changes ran during the write, if no change waits. This is done before the
 * callers are woken, because they would come back with new changes. So between two syncs there is
 * only the waking. */
static void seal_next(struct group *g)
{
    if (!g->running && list_empty(&g->fast) && list_empty(&g->waiting) &&
        g->open->member_count > 0 && !slow_disk(g))
        group_seal(g);
}

/* Gives the error to the changes of the sealed batch, whose write failed, and to the changes of the
 * open batch, which may have read rows of the sealed batch (docs/db.md, W5). The caller holds the
 * lock. The runner's role is free when this returns. */
static void fail_sealed(struct db *db, int result, const struct err *err)
{
    struct group *g = &db->group;
    struct batch *b = g->sealed;
    struct waiter *waker = NULL;

    want_running(g);
    list_splice(&b->members, &g->open->members);
    batch_settled(db, g->open);
    batch_reset(g->open);
    b->succeeded = 0;
    list_each (&b->members, struct waiter, node, w) {
        waiter_fail(w, result, err);
        wake_by(&waker, w);
    }
    leave_running(g);
}

static void write_sealed(struct db *db, struct waiter *self)
{
    struct group *g = &db->group;
    struct batch *b = g->sealed;
    struct err err = {0};
    struct list done;

    list_init(&done);
    batch_reset(g->spare);
    uint64_t began = clock_mono_ns();
    int result = batch_write(db, b, DB_DURABLE, &err);
    g->took_ns = clock_mono_ns() - began;

    mutex_lock(&g->lock);
    if (result != 0)
        fail_sealed(db, result, &err);
    g->pending = false;
    g->taken = b->member_count;
    list_splice(&done, &b->members);
    count(&g->changes, b->succeeded);
    if (!self)
        seal_next(g);
    mutex_unlock(&g->lock);
    wake_tree(&done, self);
}

/* Does one turn of the writer's work, in which at most one durable batch is written. Returns false
 * when no change waits any more; the writer's role is then given up. */
static bool write_turn(struct db *db, struct waiter *self)
{
    struct group *g = &db->group;
    struct list settled;
    bool more;

    list_init(&settled);
    mutex_lock(&g->lock);
    if (!g->pending)
        group_prepare(db, &settled, self);
    bool pending = g->pending;
    mutex_unlock(&g->lock);
    group_answer(g, &settled, self);
    if (pending && !(self && self->answered))
        write_sealed(db, self);
    mutex_lock(&g->lock);
    g->writing = more = more_to_write(g);
    note_idle(g);
    mutex_unlock(&g->lock);
    return more;
}

/* The writer thread. It takes the writer's role when there is more to do than one caller should do
 * for other callers. */
static void writer_main(void *ctx)
{
    struct db *db = ctx;

    for (;;) {
        sem_wait_always(&db->group.hand_over);
        if (db->group.stop)
            return;
        while (write_turn(db, NULL))
            ;
    }
}

/* Puts the change on its list. *runs and *writes say whether the caller now has the runner's or the
 * writer's role. */
static int hand_in(struct group *g, struct waiter *w, enum db_durability d, bool *runs,
                   bool *writes)
{
    mutex_lock(&g->lock);
    if (g->closing) {
        mutex_unlock(&g->lock);
        return ERR_SHUTDOWN;
    }
    if (d == DB_VOLATILE) {
        list_push(&g->fast, &w->node);
        *writes = !g->writing;
        g->writing = true;
        if (g->expected > 0)
            cond_signal(&g->gathered);
    } else {
        list_push(&g->waiting, &w->node);
        *runs = !g->running && !g->wanted;
        g->running = g->running || *runs;
    }
    mutex_unlock(&g->lock);
    return 0;
}

int db_apply(struct db *db, enum db_durability d, db_change_fn *fn, void *ctx, struct err *err)
{
    struct group *g = &db->group;
    struct waiter self = {.fn = fn, .ctx = ctx, .err = err, .urgent = d != DB_DURABLE};
    bool runs = false, writes = false;
    struct list settled;

    BUG_ON(atomic_load_explicit(&g->runner, memory_order_relaxed) == (const void *)pthread_self());
    sem_init(&self.wake, 0, 0);
    if (hand_in(g, &self, d, &runs, &writes) != 0)
        return err_set(err, ERR_SHUTDOWN, "the database is closing");
    if (runs) {
        list_init(&settled);
        mutex_lock(&g->lock);
        run_waiting(db, &settled, &self);
        writes = leave_running(g);
        mutex_unlock(&g->lock);
        group_answer(g, &settled, &self);
    }
    if (writes && (self.answered || write_turn(db, &self)))
        sem_post(&g->hand_over);
    if (!self.answered)
        wake_await(&self);
    sem_destroy(&self.wake);
    return self.result;
}

int group_init(struct db *db, uint64_t reserve_bytes, struct err *err)
{
    struct group *g = &db->group;

    mutex_init(&g->lock, "db.group");
    cond_init(&g->idle);
    cond_init(&g->gathered);
    cond_init(&g->given);
    list_init(&g->waiting);
    list_init(&g->fast);
    for (size_t i = 0; i < ARRAY_SIZE(g->slots); i++) {
        batch_init(&g->slots[i]);
        g->slots[i].slot = i;
    }
    g->open = &g->slots[0];
    g->sealed = &g->slots[1];
    g->spare = &g->slots[2];
    g->space.reserve = reserve_bytes;
    g->fast_write = rocksdb_writeoptions_create();
    g->durable = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(g->durable, 1);
    sem_init(&g->hand_over, 0, 0);
    return thread_start(&g->writer, "db-writer", 0, writer_main, db, err);
}

void group_release(struct db *db)
{
    struct group *g = &db->group;

    mutex_lock(&g->lock);
    g->closing = true;
    while (g->running || g->writing)
        cond_wait(&g->idle, &g->lock);
    BUG_ON(more_to_write(g));
    g->stop = true;
    mutex_unlock(&g->lock);
    sem_post(&g->hand_over);
    thread_join(&g->writer);
    sem_destroy(&g->hand_over);
    for (size_t i = 0; i < ARRAY_SIZE(g->slots); i++)
        batch_release(&g->slots[i]);
    rocksdb_writeoptions_destroy(g->fast_write);
    rocksdb_writeoptions_destroy(g->durable);
    cond_release(&g->given);
    cond_release(&g->gathered);
    cond_release(&g->idle);
    mutex_release(&g->lock);
}
