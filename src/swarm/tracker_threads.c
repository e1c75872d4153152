/* The tracker's threads. The clock keeps the time, cleans memory and never waits for the store. The
 * follower may wait for the store. */
#include "base/clock.h"
#include "os/file.h"
#include "swarm/tracker_int.h"

#include <libgen.h>

enum {
    TICK_MS = 100,
    ROUND_TICKS = 600,  /* a round: ticks (TICK_MS) in which cleaning visits all torrents once */
    LOOKED_AT = 64,     /* about how many torrents one call of swarms_clean() visits */
    ROUND_CALLS = 1024, /* least number of calls of swarms_clean() in a round */
    CLEAN_MAX_NS = 2 * NS_PER_MS, /* longest time that cleaning takes in one tick */
    COUNT_TICKS = 50,             /* ticks between two counts of the torrents */
    RETRY_MS = 1000,
    REAP_MS = 2000,
    REAP_LIMIT = 100,
    REAP_ROUNDS = 100,
    /* The tracker's clock starts far above 0, so that subtracting an age never goes below 0. */
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

static struct loop_sleep clock_step(void *ctx)
{
    struct tracker *t = ctx;

    tracker_tick(t);
    if (t->swarms) {
        if (t->ticks++ % COUNT_TICKS == 0)
            swarms_stats(t->swarms, &t->counts_seen);
        clean_some(t, (t->counts_seen.torrents / LOOKED_AT + ROUND_CALLS) / ROUND_TICKS + 1);
    }
    return loop_sleep_ms(TICK_MS);
}

/* --- the follower --- */

/* Removes old peers from the store. Several trackers may do so at the same time. */
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

static uint64_t first_of(const struct tracker_due *d)
{
    uint64_t first = d->reap_ms < d->save_ms ? d->reap_ms : d->save_ms;

    return d->retry_ms < first ? d->retry_ms : first;
}

/* Returns how long the follower sleeps. A change of the lists ends the sleep, but not while the
 * follower waits for a retry. */
static struct loop_sleep follower_sleep(const struct tracker_due *d)
{
    uint64_t first = first_of(d), now = clock_mono_ms();

    if (first == UINT64_MAX)
        return loop_until_woken();
    uint64_t ms = first > now ? first - now : 0;
    return d->retry_ms == UINT64_MAX ? loop_sleep_ms(ms) : loop_retry_ms(ms);
}

static void follower_begin(struct tracker *t)
{
    const struct tracker_options *o = tracker_settings(t);
    uint64_t now = clock_mono_ms();
    bool reaps = !t->swarms || t->share, saves = t->swarms && !t->share && o->snapshot_path;

    t->due = (struct tracker_due){
        .reap_ms = reaps ? now + REAP_MS : UINT64_MAX,
        .save_ms = saves ? now + o->snapshot_ms : UINT64_MAX,
        .retry_ms = UINT64_MAX,
    };
}

static struct loop_sleep follower_step(void *ctx)
{
    struct tracker *t = ctx;
    struct tracker_due *due = &t->due;
    uint64_t now = clock_mono_ms();

    if (due->retry_ms == UINT64_MAX || now >= due->retry_ms)
        due->retry_ms = lists_follow(t) ? UINT64_MAX : now + RETRY_MS;
    if (now >= due->reap_ms) {
        reap_peers(t);
        due->reap_ms = clock_mono_ms() + REAP_MS;
    }
    if (now >= due->save_ms) {
        tracker_save(t);
        due->save_ms = clock_mono_ms() + tracker_settings(t)->snapshot_ms;
    }
    return follower_sleep(due);
}

int tracker_threads_start(struct tracker *t, struct err *err)
{
    int code = loop_start(
        &t->clock,
        &(struct loop_options){
            .name = "swarm-clock", .step = clock_step, .ctx = t, .first = loop_sleep_ms(TICK_MS)},
        err);

    follower_begin(t);
    if (code == 0)
        code =
            loop_start(&t->follower, &(struct loop_options){"swarm-follow", follower_step, t}, err);
    return code;
}

void tracker_threads_stop(struct tracker *t)
{
    loop_ask_stop(&t->follower);
    loop_stop(&t->clock);
    loop_stop(&t->follower);
}
