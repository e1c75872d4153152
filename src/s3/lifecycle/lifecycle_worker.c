/* The worker: decides when buckets are swept, and how fast. */
#include "s3/lifecycle/lifecycle_worker.h"
#include "object/overlay.h"

#include "base/clock.h"
#include "os/loop.h"

#include <stdlib.h>

enum {
    SHARE = 4,               /* the worker is busy 1/SHARE of the time (docs/lifecycle.md, C6) */
    KEEP_EVERY = 8,          /* the progress is stored after this many pages */
    LOOK_MS = MS_PER_MINUTE, /* the longest wait, because the wall clock may jump meanwhile */
};

struct lifecycle_worker {
    struct lifecycle_worker_options o;
    int64_t day_ms, interval_ms;
    struct notify *notify;
    /* lifecycle_slot() of the last sweep; 0: there was none. Only the loop uses this member. */
    int64_t slot_done;
    struct loop loop;
    struct mutex lock; /* lock class "lifecycle"; guards the members below */
    struct lifecycle_stats stats;
};

static loop_step_fn lifecycle_step;

int lifecycle_worker_start(struct lifecycle_worker **out, const struct lifecycle_worker_options *o,
                           struct err *err)
{
    struct lifecycle_worker *w = xcalloc(1, sizeof(*w));
    int code;

    w->o = *o;
    w->notify = o->notify;
    w->day_ms = o->day_ms ? o->day_ms : MS_PER_DAY;
    w->interval_ms = o->interval_ms            ? o->interval_ms
                     : w->day_ms == MS_PER_DAY ? w->day_ms
                     : w->day_ms > 1           ? w->day_ms / 2
                                               : 1;
    mutex_init(&w->lock, "lifecycle");
    code = loop_start(&w->loop, &(struct loop_options){"lifecycle", lifecycle_step, w}, err);
    if (code < 0) {
        lifecycle_worker_stop(w);
        return code;
    }
    *out = w;
    return 0;
}

void lifecycle_worker_stop(struct lifecycle_worker *w)
{
    if (!w)
        return;
    loop_stop(&w->loop);
    mutex_release(&w->lock);
    free(w);
}

void lifecycle_worker_stats(struct lifecycle_worker *w, struct lifecycle_stats *out)
{
    mutex_lock(&w->lock);
    *out = w->stats;
    mutex_unlock(&w->lock);
}

int64_t lifecycle_slot(int64_t now_ms, int64_t interval_ms)
{
    return now_ms - now_ms % interval_ms;
}

/* --- one bucket --- */

static void add_counts(struct lifecycle_worker *w, const struct lifecycle_counts *before,
                       const struct lifecycle_counts *now)
{
    struct lifecycle_counts more = *now;

#define X(name, help) more.name -= before->name;
    LIFECYCLE_COUNTS(X)
#undef X
    mutex_lock(&w->lock);
    lifecycle_counts_add(&w->stats.counts, &more);
    mutex_unlock(&w->lock);
}

/* Sweeps one page, then waits three times as long as that took (docs/lifecycle.md, C6). */
static int one_page(struct lifecycle_worker *w, struct lifecycle_sweep *s, struct err *err)
{
    struct lifecycle_counts before = s->counts;
    uint64_t began = clock_mono_ns();
    int code = lifecycle_sweep_page(s, clock_wall_ms(), err);

    add_counts(w, &before, &s->counts);
    loop_pause(&w->loop, (SHARE - 1) * (clock_mono_ns() - began));
    return code;
}

static int progress_keep(struct lifecycle_progress *p, const struct lifecycle_sweep *s,
                         struct err *err)
{
    p->done = s->done;
    p->uploads = s->uploads;
    p->cursor = s->done || s->uploads ? STR_EMPTY : buf_str(&s->whole);
    p->counts = s->counts;
    if (s->done) {
        p->finished_ms = clock_wall_ms();
        p->last = s->counts;
    }
    return lifecycle_progress_keep(p, s->b, err);
}

static bool worker_may_sweep(const struct lifecycle_worker *w, const struct bucket *b)
{
    return !loop_is_stopping(&w->loop) &&
           !(w->o.rests && w->o.rests(w->o.ctx, bucket_home(b), b->name));
}

/* Sweeps the bucket from where the progress `p` stands to the bucket's end, or until the worker
 * must stop. */
static int worker_sweep_bucket(struct lifecycle_worker *w, struct bucket *b,
                               struct lifecycle_progress *p, struct err *err)
{
    struct lifecycle_sweep s;
    struct err second = {0};
    int code = 0;

    lifecycle_sweep_init(&s, b, w->day_ms, p);
    s.stop = &w->loop.stop;
    s.notify = w->notify;
    for (unsigned pages = 1; code == 0 && !s.done && worker_may_sweep(w, b); pages++) {
        code = one_page(w, &s, err);
        if (code == 0 && !s.done && pages % KEEP_EVERY == 0)
            code = progress_keep(p, &s, err);
    }
    /* The progress is stored after a failure too (docs/lifecycle.md, C4). */
    int kept = progress_keep(p, &s, code < 0 ? &second : err);
    mutex_lock(&w->lock);
    w->stats.buckets += s.done;
    mutex_unlock(&w->lock);
    p->cursor = STR_EMPTY; /* the string was in the sweep, which is released next */
    lifecycle_sweep_release(&s);
    return code < 0 ? code : kept;
}

static int sweep_bucket(struct lifecycle_worker *w, struct bucket *b, int64_t slot, struct err *err)
{
    struct lifecycle_progress p = {0};
    struct arena a = ARENA_INIT(0);
    struct str text;
    int code = b->ops->get_document(b, &a, "lifecycle", &text, err);

    if (code == 0)
        code = lifecycle_progress_read(&p, b, &a, err);
    /* A sweep that began in an earlier interval is completed first: since then no sweep has
     * examined the keys behind its cursor. */
    while (code == 0 && worker_may_sweep(w, b) && !(p.done && p.slot_ms == slot)) {
        if (p.done || p.slot_ms == 0 || p.slot_ms > slot)
            p.slot_ms = slot;
        code = worker_sweep_bucket(w, b, &p, err);
    }
    arena_release(&a);
    return code == ERR_NOT_FOUND || code == ERR_NO_BUCKET ? 0 : code;
}

/* --- all buckets --- */

static void sweep_named(struct lifecycle_worker *w, struct storage *s, struct str name,
                        int64_t slot)
{
    struct bucket *b = NULL;
    struct err err = {0};
    int code = storage_open_bucket(&b, s, STR_EMPTY, name, &err);

    if (code == ERR_NO_BUCKET)
        return;
    if (code == 0) {
        code = sweep_bucket(w, b, slot, &err);
        b->ops->unref(b);
    }
    if (code == 0)
        return;
    mutex_lock(&w->lock);
    w->stats.failures++;
    mutex_unlock(&w->lock);
    log_warn(w->o.log, "lifecycle.failed", log_s("bucket", name), log_s("storage", s->name),
             log_z("error", err_name(code)), log_z("text", err.text));
}

static void sweep_storage(struct lifecycle_worker *w, struct storage *s, int64_t slot)
{
    struct arena a = ARENA_INIT(0);
    struct buf after = BUF_INIT(0);
    struct bucket_info *list = NULL;
    size_t count;
    struct err err = {0};
    int code;

    do {
        count = 0;
        arena_reset(&a);
        code = storage_list_buckets(s, &a, STR_EMPTY, buf_str(&after), OBJECT_LIST_MAX, &list,
                                    &count, &err);
        for (size_t i = 0; code == 0 && i < count && !loop_is_stopping(&w->loop); i++)
            sweep_named(w, s, list[i].name, slot);
        if (code == 0 && count) {
            buf_reset(&after);
            buf_append_str(&after, list[count - 1].name);
        }
    } while (code == 0 && count == OBJECT_LIST_MAX && !loop_is_stopping(&w->loop));
    if (code < 0)
        log_warn(w->o.log, "lifecycle.failed", log_s("storage", s->name),
                 log_z("error", err_name(code)), log_z("text", err.text));
    buf_release(&after);
    arena_release(&a);
}

static void worker_sweep_all(struct lifecycle_worker *w, int64_t slot)
{
    struct storage *storages[ROUTES_STORAGES_MAX];
    size_t n = routes_storages(w->o.routes, storages, ROUTES_STORAGES_MAX);
    uint64_t began = clock_mono_ms();

    mutex_lock(&w->lock);
    w->stats.running = 1;
    mutex_unlock(&w->lock);
    for (size_t i = 0; i < n && !loop_is_stopping(&w->loop); i++)
        if (!storage_can(storages[i], STORAGE_FORWARDS))
            sweep_storage(w, storages[i], slot);
    mutex_lock(&w->lock);
    w->stats.running = 0;
    w->stats.sweeps += !loop_is_stopping(&w->loop);
    w->stats.last_ms = (uint64_t)clock_wall_ms();
    w->stats.last_took_ms = clock_mono_ms() - began;
    mutex_unlock(&w->lock);
}

static struct loop_sleep lifecycle_step(void *ctx)
{
    struct lifecycle_worker *w = ctx;
    int64_t now = clock_wall_ms(), slot = lifecycle_slot(now, w->interval_ms);

    if (slot != w->slot_done) {
        worker_sweep_all(w, slot);
        w->slot_done = slot;
        return loop_again();
    }
    int64_t left = slot + w->interval_ms - now;
    return loop_sleep_ms((uint64_t)(left < LOOK_MS ? left : LOOK_MS));
}
