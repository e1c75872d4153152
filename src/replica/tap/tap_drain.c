/* The thread of one local storage's tap. The storage writes a *row* for each change, in the
 * change's commit. The thread records the rows in the store, in order, and deletes them. The codes
 * E2, N3 and P3 are those of docs/replication.md. */
#include "base/clock.h"
#include "replica/tap/tap_int.h"

#include <stdlib.h>

enum {
    LINGER_MS = 20, /* ms to wait for more rows, which then go into the same record */
    LOOK_MS = 1000,
    RETRY_FIRST_MS = 50,
    RETRY_MAX_MS = 1000,
    SWITCH_WAIT_MS = 5000,
    DROP_MANY = 64,  /* a batch of this many rows or more is not deleted immediately */
    DROP_MAX = 8192, /* most recorded rows that are kept before they are deleted */
};

/* --- called by the storage during and after a commit --- */

/* Called inside the commit: refuses the change if the lease has ended (E2). */
static int tap_wants(void *ctx, const struct tapped *row, bool *out, struct err *err)
{
    const struct tap *tap = ctx;
    struct filtered what = {tap->storage->name, row->bucket, row->owner, row->changes};
    uint64_t lease;
    int code = lease_take(tap->taps->o.lease, &lease, err);

    *out = code == 0 && filter_has(&tap->taps->filter, &what);
    return code;
}

static void tap_committed(void *ctx, uint64_t number)
{
    struct tap *tap = ctx;
    uint64_t have = atomic_load(&tap->told);
    struct err err = {0};

    while (have < number && !atomic_compare_exchange_weak(&tap->told, &have, number))
        ;
    if (atomic_load(&tap->asleep)) {
        mutex_lock(&tap->lock);
        cond_signal(&tap->wake);
        mutex_unlock(&tap->lock);
    }
    if (atomic_load_explicit(&tap->taps->switching, memory_order_relaxed)) {
        uint64_t deadline = clock_mono_ns() + SWITCH_WAIT_MS * NS_PER_MS;
        int code = tap_wait(tap, number, deadline, &err);
        if (code < 0) /* the row is committed, and will be recorded later */
            log_warn(tap->taps->o.log, "replica.tap_slow", log_s("storage", tap->storage->name),
                     log_z("error", err.text));
    }
}

int tap_wait(struct tap *tap, uint64_t number, uint64_t deadline_ns, struct err *err)
{
    int code = 0;

    mutex_lock(&tap->lock);
    tap->waiters++;
    cond_signal(&tap->wake);
    while (tap->recorded < number && code == 0) {
        if (!atomic_load(&tap->ready) || tap->stop)
            code = err_set(err, ERR_UNAVAILABLE, "changes cannot be recorded at present");
        else if (!cond_wait_until(&tap->moved, &tap->lock, deadline_ns))
            code = err_set(err, ERR_TIMEOUT, "a change was not recorded in time");
    }
    if (tap->recorded >= number)
        code = 0;
    tap->waiters--;
    mutex_unlock(&tap->lock);
    return code;
}

/* --- recording --- */

/* Gathers the changes of the rows whose buckets are replicated now. Other buckets may have rows
 * because the filter sets bits without need. Their rows need not be recorded: if a replication of
 * the bucket is made later, its listing finds the object (P3). */
static int gather_rows(struct tap *tap, const struct tapped *rows, size_t count,
                       struct changes_out *out, struct err *err)
{
    struct str storage = tap->storage->name;
    struct replication_view *view = NULL;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        const struct tapped *row = &rows[i];
        if (row->changes & CHANGE_BUCKET_MADE) {
            code = changes_new_bucket(tap->taps, out->a, storage, row->bucket, row->owner, err);
            replication_view_unref(view); /* the new bucket's replications are in a newer view */
            view = NULL;
        }
        if (code == 0 && !view)
            code = replications_view(tap->taps->o.replications, &view, err);
        if (code == 0 && replication_view_any(view, storage, row->bucket))
            changes_add(out, row->changes, storage, row->bucket, row->key, row->number);
    }
    replication_view_unref(view);
    return code == 0 && arena_error(out->a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}

/* Records the rows. *none is set to true when there was nothing to record, because no row's bucket
 * is replicated or the storage has lost its name. */
static int record_rows(struct tap *tap, struct arena *a, const struct tapped *rows, size_t count,
                       bool *none, struct err *err)
{
    struct changes_out out = {0};
    int code = tap_name_check(tap, err);

    *none = true;
    if (code == ERR_CONFLICT) /* the storage's name belongs to another folder (N3) */
        return 0;
    if (code == 0 || code == ERR_NOT_FOUND)
        code = changes_out_init(&out, a, err);
    if (code == 0)
        code = gather_rows(tap, rows, count, &out, err);
    if (code == 0 && out.count)
        code = tap_name_take(tap, err);
    if (code < 0 || out.count == 0)
        return code == ERR_CONFLICT && tap_name_lost(tap) ? 0 : code;
    *none = false;
    return taps_record(tap->taps,
                       &(struct record){.changes = out.items,
                                        .count = out.count,
                                        .log = tap->storage->name,
                                        .log_last = rows[count - 1].number,
                                        .relaxed = true},
                       err);
}

static void set_recorded(struct tap *tap, uint64_t number, size_t count)
{
    atomic_fetch_add(&tap->taps->count_recorded, count);
    mutex_lock(&tap->lock);
    tap->recorded = number;
    cond_broadcast(&tap->moved);
    mutex_unlock(&tap->lock);
}

/* Stores whether recording works. Logs once when it begins to fail, and once when it works
 * again. */
static void set_ready(struct tap *tap, int code, const struct err *err)
{
    const struct log *log = tap->taps->o.log;
    bool ready = code == 0;

    if (atomic_exchange(&tap->ready, ready) == ready)
        return;
    if (ready)
        log_info(log, "replica.tap_recording", log_s("storage", tap->storage->name));
    else
        log_error(log, "replica.tap_stuck", log_s("storage", tap->storage->name),
                  log_z("error", err->text));
    mutex_lock(&tap->lock);
    cond_broadcast(&tap->moved);
    mutex_unlock(&tap->lock);
}

/* Sets how many rows the next batch has. If rows are too large to be recorded together, batches
 * become smaller, because otherwise all later rows would wait. */
static void set_batch(struct tap *tap, int code, size_t count)
{
    if (code == 0)
        tap->batch = size_min(2 * tap->batch, TAP_BATCH);
    else if ((code == ERR_NO_MEMORY || code == ERR_TOO_LARGE) && count > 1)
        tap->batch = count / 2;
}

/* Deletes rows that were recorded, up to tap->recorded. A delete costs as much as writing the row
 * did, so under load many rows are kept and deleted together later. `none` true: nothing was
 * recorded for these rows, so the store does not have their numbers, and they must be deleted
 * now. */
static void drop_rows(struct tap *tap, const struct tapped *rows, size_t count, bool none)
{
    bool many = (tap->undropped || count >= DROP_MANY) && !none;
    struct err err = {0};
    int code = 0;

    if (many)
        tap->undropped += count;
    else if (count)
        code = local_tap_drop(tap->storage, rows, count, &err);
    if (tap->undropped >= DROP_MAX || (tap->undropped && count == 0)) {
        code = local_tap_drop_until(tap->storage, tap->recorded, &err);
        tap->undropped = code < 0 ? tap->undropped : 0;
    }
    if (code < 0)
        log_warn(tap->taps->o.log, "replica.tap_rows_left", log_s("storage", tap->storage->name),
                 log_z("error", err.text));
}

/* Skips the rows that the last process recorded and did not delete. If the row of a new bucket were
 * recorded again, it would make replications that were removed since then. */
static int begin_behind_recorded(struct tap *tap, struct err *err)
{
    uint64_t last = 0;
    int code = tap_name_check(tap, err);

    if (code == 0)
        code = replication_recorded(tap->taps->o.replications, tap->storage->name, &last, err);
    else if (code == ERR_CONFLICT ||
             code == ERR_NOT_FOUND) /* the number in the store is another folder's */
        code = 0;
    if (code < 0)
        return code;
    mutex_lock(&tap->lock);
    tap->recorded = last;
    mutex_unlock(&tap->lock);
    tap->undropped = last > 0;
    tap->begun = true;
    return 0;
}

/* Records one batch of rows. *count is the number of rows; 0: there were none. */
static int drain_some(struct tap *tap, struct arena *a, size_t *count, struct err *err)
{
    struct tapped *rows = NULL;
    bool none = false;
    int code = tap->begun ? 0 : begin_behind_recorded(tap, err);

    if (code == 0)
        code = local_tap_read(tap->storage, a, tap->recorded, tap->batch, &rows, count, err);
    if (code == 0 && *count) {
        code = record_rows(tap, a, rows, *count, &none, err);
        set_batch(tap, code, *count);
        if (code == 0)
            set_recorded(tap, rows[*count - 1].number, *count);
    }
    if (code == 0)
        drop_rows(tap, rows, *count, none);
    return code;
}

static bool tap_is_stopping(struct tap *tap)
{
    mutex_lock(&tap->lock);
    bool stop = tap->stop;
    mutex_unlock(&tap->lock);
    return stop;
}

/* Sleeps until a row was committed, `ms` milliseconds at most. */
static void tap_sleep(struct tap *tap, uint64_t ms)
{
    uint64_t deadline = clock_mono_ns() + ms * NS_PER_MS;

    mutex_lock(&tap->lock);
    atomic_store(&tap->asleep,
                 /* set before `told` is read, while tap_committed() raises `told` before it reads
                  * `asleep`: so one of the two threads sees the other's change */
                 true);
    if (!tap->stop && atomic_load(&tap->told) <= tap->recorded)
        cond_wait_until(&tap->wake, &tap->lock, deadline);
    atomic_store(&tap->asleep, false);
    mutex_unlock(&tap->lock);
}

/* Waits a moment for rows of other writers, so that one record has more rows. Does not wait while a
 * caller waits for its row to be recorded. */
static void tap_linger(struct tap *tap)
{
    uint64_t deadline = clock_mono_ns() + LINGER_MS * NS_PER_MS;

    mutex_lock(&tap->lock);
    while (!tap->stop && tap->waiters == 0)
        if (!cond_wait_until(&tap->wake, &tap->lock, deadline))
            break;
    mutex_unlock(&tap->lock);
}

static void tap_back_off(struct tap *tap, uint64_t *delay_ms)
{
    uint64_t deadline = clock_mono_ns() + *delay_ms * NS_PER_MS;

    mutex_lock(&tap->lock);
    while (!tap->stop)
        if (!cond_wait_until(&tap->wake, &tap->lock, deadline))
            break;
    mutex_unlock(&tap->lock);
    *delay_ms = *delay_ms * 2 < RETRY_MAX_MS ? *delay_ms * 2 : RETRY_MAX_MS;
}

static void drain_main(void *ctx)
{
    struct tap *tap = ctx;
    struct arena a = ARENA_INIT(0);
    uint64_t delay_ms = RETRY_FIRST_MS;
    bool stop = false;

    for (;;) {
        struct err err = {0};
        size_t count = 0, asked = tap->batch;
        int code = drain_some(tap, &a, &count, &err);
        set_ready(tap, code, &err);
        if (code == 0 && count < asked)
            atomic_store(&tap->caught_up, true);
        arena_reset(&a);
        if (stop && (code < 0 || count == 0))
            break;
        stop = tap_is_stopping(tap); /* when stopping, one more round handles the present rows */
        if (stop)
            continue;
        if (code < 0) {
            tap_back_off(tap, &delay_ms);
            continue;
        }
        delay_ms = RETRY_FIRST_MS;
        if (count < asked) {
            tap_sleep(tap, LOOK_MS);
            tap_linger(tap);
        }
    }
    arena_release(&a);
}

/* --- starting and stopping --- */

int tap_start(struct tap **out, struct taps *t, struct storage *s, struct err *err)
{
    struct tap *tap = xcalloc(1, sizeof(*tap));

    *tap = (struct tap){
        .taps = t, .storage = s, .hooks = {tap_wants, tap_committed, tap}, .batch = TAP_BATCH};
    mutex_init(&tap->lock, "replica.tap");
    cond_init(&tap->wake);
    cond_init(&tap->moved);
    atomic_init(&tap->ready, true);
    int code = thread_start(&tap->thread, "tap", 0, drain_main, tap, err);
    if (code < 0) {
        tap_stop(tap);
        return code;
    }
    local_set_tap(s, &tap->hooks);
    *out = tap;
    return 0;
}

void tap_stop(struct tap *tap)
{
    mutex_lock(&tap->lock);
    tap->stop = true;
    cond_broadcast(&tap->wake);
    mutex_unlock(&tap->lock);
    thread_join(&tap->thread);
    local_set_tap(tap->storage, NULL);
    cond_release(&tap->wake);
    cond_release(&tap->moved);
    mutex_release(&tap->lock);
    free(tap);
}
