/* The tracker's threads: the clock, which also cleans and never waits, and the follower, which may
 * wait. */
#include "base/clock.h"
#include "os/file.h"
#include "swarm/tracker_int.h"

#include <libgen.h>

enum {
    TICK_MS = 100,
    ROUND_TICKS = 600,            /* time in which cleaning visits all torrents */
    LOOKED_AT = 64,               /* torrents that a call of swarms_clean() visits, about */
    ROUND_CALLS = 1024,           /* calls of a round, at least */
    CLEAN_MAX_NS = 2 * NS_PER_MS, /* of cleaning in a tick, at most */
    COUNT_TICKS = 50,             /* between two counts of the torrents */
    RETRY_MS = 1000,
    REAP_MS = 2000,
    REAP_LIMIT = 100,
    REAP_ROUNDS = 100,
    /* The clock begins far above 0, so that subtracting an age never goes below 0. */
    FIRST_SECOND = 1 << 24
};

void tracker_tick(struct tracker *t)
{
    uint32_t now = FIRST_SECOND + (uint32_t)(clock_mono_ms() / MS_PER_S);

    atomic_store_explicit(&t->now_s, now, memory_order_relaxed);
}

/* --- time and cleaning --- */

static void clean_some(struct tracker *t, uint64_t calls)
{
    uint64_t until = clock_mono_ns() + CLEAN_MAX_NS;

    for (uint64_t i = 0; i < calls; i++) {
        swarms_clean(t->swarms, tracker_now(t));
        if (i % 16 == 15 && clock_mono_ns() > until)
            return;
    }
}

static bool wait_tick(struct tracker *t)
{
    struct lists *l = &t->lists;
    uint64_t until = clock_mono_ns() + TICK_MS * NS_PER_MS;
    bool stop;

    mutex_lock(&l->lock);
    while (!l->stop && cond_wait_until(&l->end, &l->lock, until))
        ;
    stop = l->stop;
    mutex_unlock(&l->lock);
    return !stop;
}

static void keep_time(void *ctx)
{
    struct tracker *t = ctx;
    struct swarms_stats stats = {0};

    for (uint64_t tick = 0; wait_tick(t); tick++) {
        tracker_tick(t);
        if (!t->swarms)
            continue;
        if (tick % COUNT_TICKS == 0)
            swarms_stats(t->swarms, &stats);
        clean_some(t, (stats.torrents / LOOKED_AT + ROUND_CALLS) / ROUND_TICKS + 1);
    }
}

/* --- what may wait --- */

/* Any number of trackers may do so at the same time. */
static void reap_peers(struct tracker *t)
{
    const struct tracker_options *o = tracker_settings(t);
    struct err err = {0};
    size_t gone = REAP_LIMIT;

    for (int i = 0; i < REAP_ROUNDS && gone == REAP_LIMIT; i++) {
        int code = cache_reap(t->cache, o->peer_timeout_s, REAP_LIMIT, &gone, &err);
        if (code < 0) {
            log_warn(t->log, "tracker.not_reaped", log_z("code", err_name(code)),
                     log_z("error", err.text));
            return;
        }
        atomic_fetch_add_explicit(&t->reaped, gone, memory_order_relaxed);
    }
}

static int make_folder(const char *path, struct err *err)
{
    char *copy = xstrdup(path);
    int code = dir_make(dirname(copy), 0700, err);

    free(copy);
    return code;
}

void tracker_save(struct tracker *t)
{
    const struct tracker_options *o = tracker_settings(t);
    struct err err = {0};
    int code;

    if (!t->swarms || o->share || !o->snapshot_path)
        return;
    code = make_folder(o->snapshot_path, &err);
    if (code == 0)
        code = swarms_save(t->swarms, o->snapshot_path, tracker_now(t), &err);
    if (code < 0)
        log_error(t->log, "tracker.not_saved", log_z("code", err_name(code)),
                  log_z("error", err.text));
}

/* When the follower's regular jobs are due. */
struct due {
    uint64_t reap_ms, save_ms, retry_ms; /* by clock_mono_ms(); UINT64_MAX: never */
};

static uint64_t first_of(const struct due *d)
{
    uint64_t first = d->reap_ms < d->save_ms ? d->reap_ms : d->save_ms;

    return d->retry_ms < first ? d->retry_ms : first;
}

/* False: the follower must end. */
static bool wait_work(struct tracker *t, const struct due *d)
{
    struct lists *l = &t->lists;
    uint64_t first = first_of(d), until = first == UINT64_MAX ? first : first * NS_PER_MS;
    bool stop,
        waits = d->retry_ms != UINT64_MAX; /* news must not shorten the pause before a retry */

    mutex_lock(&l->lock);
    while (!l->stop && (waits || !(l->all_stale || l->clients_stale || l->changed.len)))
        if (!cond_wait_until(&l->wake, &l->lock, until))
            break;
    stop = l->stop;
    mutex_unlock(&l->lock);
    return !stop;
}

static void tracker_follow(void *ctx)
{
    struct tracker *t = ctx;
    const struct tracker_options *o = tracker_settings(t);
    uint64_t now = clock_mono_ms();
    bool reaps = !t->swarms || t->share, saves = t->swarms && !t->share && o->snapshot_path;
    struct due due = {
        .reap_ms = reaps ? now + REAP_MS : UINT64_MAX,
        .save_ms = saves ? now + o->snapshot_ms : UINT64_MAX,
        .retry_ms = UINT64_MAX,
    };

    while (wait_work(t, &due)) {
        now = clock_mono_ms();
        if (due.retry_ms == UINT64_MAX || now >= due.retry_ms)
            due.retry_ms = lists_follow(t) ? UINT64_MAX : now + RETRY_MS;
        if (now >= due.reap_ms) {
            reap_peers(t);
            due.reap_ms = clock_mono_ms() + REAP_MS;
        }
        if (now >= due.save_ms) {
            tracker_save(t);
            due.save_ms = clock_mono_ms() + o->snapshot_ms;
        }
    }
}

int tracker_threads_start(struct tracker *t, struct err *err)
{
    int code = thread_start(&t->clock, "swarm-clock", 0, keep_time, t, err);

    return code < 0 ? code : thread_start(&t->follower, "swarm-follow", 0, tracker_follow, t, err);
}

void tracker_threads_stop(struct tracker *t)
{
    mutex_lock(&t->lists.lock);
    t->lists.stop = true;
    cond_broadcast(&t->lists.wake);
    cond_broadcast(&t->lists.end);
    mutex_unlock(&t->lists.lock);
    thread_join(&t->clock);
    thread_join(&t->follower);
}
