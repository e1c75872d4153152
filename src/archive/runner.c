/* Threads that claim accounts and sync them (archive/runner.h; docs/archive.md, U1 to U4). */
#include "archive/runner_int.h"

#include "base/clock.h"

#include <stdlib.h>

enum {
    RUNNER_ARENA_MAX = 64 * 1024 * 1024,
    RUNNER_WAIT_MAX_MS = 30 * MS_PER_S, /* the schedule is asked at least this often */
    RUNNER_DOWN_MS = MS_PER_S,          /* pause after the store or the sets could not be read */
    RUNNER_WATCH_MS = 200,
};

static thread_fn runner_work;
static store_message_fn runner_hear;

/* --- life --- */

static int runner_start_threads(struct runner *r, struct err *err)
{
    int code = loop_start(
        &r->watch, &(struct loop_options){.name = "archive-watch", .step = runner_watch, .ctx = r},
        err);

    if (code == 0)
        code = loop_start(
            &r->keep,
            &(struct loop_options){.name = "archive-keeper", .step = runner_keep, .ctx = r}, err);
    if (code == 0)
        code = store_subscribe(&r->news, r->o.app, SCHEDULE_NEWS, runner_hear, r, err);
    for (size_t i = 0; code == 0 && i < r->seat_count; i++) {
        struct runner_seat *seat = &r->seats[i];
        mutex_lock(&r->lock);
        r->running++;
        mutex_unlock(&r->lock);
        seat->runner = r;
        code = thread_start(&seat->thread, "archive-runner", 0, runner_work, seat, err);
        if (code < 0) {
            mutex_lock(&r->lock);
            r->running--;
            mutex_unlock(&r->lock);
        }
    }
    return code;
}

int runner_start(struct runner **out, const struct runner_options *o, struct err *err)
{
    size_t threads = o->keeps_only ? 0 : o->threads ? o->threads : RUNNER_THREADS;
    struct runner *r = xcalloc(1, sizeof(*r) + threads * sizeof(r->seats[0]));

    BUG_ON(threads > RUNNER_THREADS_MAX);
    r->o = *o;
    r->seat_count = threads;
    r->numbers.threads = threads;
    runner_change(r, o->resync_after_ms);
    mutex_init(&r->lock, "runner");
    cond_init(&r->changed);
    int code = runner_start_threads(r, err);
    if (code < 0) {
        runner_stop(r, UINT64_MAX);
        return code;
    }
    *out = r;
    return 0;
}

/* Waits until all threads have ended. Returns false if the deadline passes first. */
static bool runner_wait_ended(struct runner *r, uint64_t deadline_ns)
{
    bool in_time = true;

    mutex_lock(&r->lock);
    while (r->running > 0 && in_time)
        in_time = cond_wait_until(&r->changed, &r->lock, deadline_ns);
    in_time = r->running == 0;
    mutex_unlock(&r->lock);
    return in_time;
}

bool runner_stop(struct runner *r, uint64_t deadline_ns)
{
    if (!r)
        return true;
    atomic_store(&r->stopping, true);
    loop_ask_stop(&r->keep);
    for (size_t i = 0; i < r->seat_count; i++)
        atomic_store(&r->seats[i].cancel, true);
    mutex_lock(&r->lock);
    cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
    if (!runner_wait_ended(r, deadline_ns))
        return false;
    for (size_t i = 0; i < r->seat_count; i++)
        thread_join(&r->seats[i].thread);
    store_unsubscribe(r->news);
    loop_stop(&r->keep);
    loop_stop(&r->watch);
    cond_release(&r->changed);
    mutex_release(&r->lock);
    free(r);
    return true;
}

void runner_change(struct runner *r, uint64_t resync_after_ms)
{
    atomic_store(&r->resync_after_ms, resync_after_ms ? resync_after_ms : SCHEDULE_RESYNC_MS);
}

void runner_kick(struct runner *r)
{
    mutex_lock(&r->lock);
    r->kicks++;
    r->ask_ns = 0;
    cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
}

/* Called when another process has published news, and when a message may have been missed. */
static void runner_hear(void *ctx, struct str channel, struct str message)
{
    runner_kick(ctx);
}

void runner_numbers(struct runner *r, struct runner_numbers *out)
{
    mutex_lock(&r->lock);
    *out = r->numbers;
    mutex_unlock(&r->lock);
}

/* --- claiming --- */

/* Waits until this thread may ask the schedule for an account. *kicks is for runner_turn_end().
 * Returns false if weir stops. */
static bool runner_turn_begin(struct runner *r, uint64_t *kicks)
{
    mutex_lock(&r->lock);
    while (!atomic_load(&r->stopping)) {
        if (r->asking)
            cond_wait(&r->changed, &r->lock);
        else if (r->ask_ns > clock_mono_ns())
            cond_wait_until(&r->changed, &r->lock, r->ask_ns);
        else
            break;
    }
    bool mine = !atomic_load(&r->stopping);
    if (mine)
        r->asking = true;
    *kicks = r->kicks;
    mutex_unlock(&r->lock);
    return mine;
}

/* Lets the next thread ask the schedule: after `wait_ms`, or at once if there was news since the
 * turn began. */
static void runner_turn_end(struct runner *r, uint64_t kicks, uint64_t wait_ms)
{
    mutex_lock(&r->lock);
    r->asking = false;
    r->ask_ns = r->kicks == kicks ? clock_mono_ns() + wait_ms * NS_PER_MS : 0;
    cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
}

/* Asks the schedule for an account. Returns whether it gave one. If not, *wait_ms is the time after
 * which to ask again. */
static bool runner_claim(struct runner *r, struct arena *a, struct schedule_claim *out,
                         uint64_t *wait_ms)
{
    struct schedule_ask ask = {.resync_after_ms = atomic_load(&r->resync_after_ms)};
    struct schedule_set *sets = NULL;
    uint64_t retry_ms = UINT64_MAX;
    struct err err = {0};
    size_t count = 0;
    int code = r->o.sets(r->o.ctx, a, &sets, &ask.set_count, &retry_ms, &err);

    ask.sets = sets;
    *wait_ms = RUNNER_DOWN_MS;
    if (code == 0)
        code = schedule_claim(r->o.schedule, a, &ask, out, &count, wait_ms, &err);
    mutex_lock(&r->lock);
    r->numbers.claims += count;
    r->numbers.claim_errors += code < 0;
    mutex_unlock(&r->lock);
    if (code < 0) {
        log_warn(r->o.log, "archive.claim", log_z("error", err.text));
        *wait_ms = RUNNER_DOWN_MS;
    }
    if (*wait_ms > retry_ms)
        *wait_ms = retry_ms;
    if (*wait_ms > RUNNER_WAIT_MAX_MS)
        *wait_ms = RUNNER_WAIT_MAX_MS;
    return code == 0 && count == 1;
}

/* --- syncing --- */

static void seat_begin(struct runner_seat *seat, const struct lock *lock)
{
    struct runner *r = seat->runner;

    mutex_lock(&r->lock);
    atomic_store(&seat->cancel, atomic_load(&r->stopping));
    seat->lock = lock;
    r->numbers.busy++;
    mutex_unlock(&r->lock);
}

static void seat_end(struct runner_seat *seat)
{
    mutex_lock(&seat->runner->lock);
    seat->lock = NULL;
    mutex_unlock(&seat->runner->lock);
}

static void seat_count(struct runner_seat *seat, enum runner_outcome outcome, bool lost)
{
    struct runner *r = seat->runner;

    mutex_lock(&r->lock);
    r->numbers.busy--;
    r->numbers.ended[outcome]++;
    r->numbers.lost += lost;
    mutex_unlock(&r->lock);
}

static int seat_end_claim(struct runner_job *job, enum runner_outcome outcome, struct err *err)
{
    switch (outcome) {
    case RUNNER_FULL:
        return schedule_end_full(job->claim, err);
    case RUNNER_FAILED:
        return schedule_end_failed(job->claim, job->hold_ms, err);
    default:
        return schedule_end_back(job->claim, err);
    }
}

/* Syncs the claimed account and ends the claim. If the lock was lost, the sync counts as put back
 * whatever its outcome is, because the next holder of the lock syncs the account again (U3). */
static void seat_sync(struct runner_seat *seat, struct arena *a, struct schedule_claim *claim)
{
    struct runner *r = seat->runner;
    struct runner_job job = {.claim = claim, .arena = a, .cancel = &seat->cancel};
    struct err err = {0};

    seat_begin(seat, claim->lock);
    enum runner_outcome outcome = r->o.sync(r->o.ctx, &job);
    seat_end(seat);
    int code = seat_end_claim(&job, outcome, &err);
    if (code < 0)
        log_warn(r->o.log, "archive.claim_end", log_s("account", claim->member),
                 log_z("error", err.text));
    seat_count(seat, code < 0 ? RUNNER_BACK : outcome, code == ERR_BUSY);
}

static void runner_work(void *ctx)
{
    struct runner_seat *seat = ctx;
    struct runner *r = seat->runner;
    struct arena a = ARENA_INIT(RUNNER_ARENA_MAX);
    uint64_t kicks;

    while (runner_turn_begin(r, &kicks)) {
        struct schedule_claim claim;
        uint64_t wait_ms = 0;
        bool claimed = runner_claim(r, &a, &claim, &wait_ms);
        runner_turn_end(r, kicks, claimed ? 0 : wait_ms);
        if (claimed)
            seat_sync(seat, &a, &claim);
        arena_reset(&a);
    }
    arena_release(&a);
    mutex_lock(&r->lock);
    r->running--;
    cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
}

struct loop_sleep runner_watch(void *ctx)
{
    struct runner *r = ctx;

    mutex_lock(&r->lock);
    for (size_t i = 0; i < r->seat_count; i++)
        if (r->seats[i].lock && !lock_held(r->seats[i].lock))
            atomic_store(&r->seats[i].cancel, true);
    mutex_unlock(&r->lock);
    return loop_sleep_ms(RUNNER_WATCH_MS);
}
