/* A thread that looks for lost tasks, for switches without a task, and for version vectors that
 * nobody needs. */
#include "replica/keeper.h"
#include "base/clock.h"
#include "coord/switch.h"
#include "os/loop.h"
#include "replica/first.h"
#include "replica/switch/switch.h"

#include <stdlib.h>

enum { SHARE = 100 /* the keeper works at most 1/SHARE of the time */ };

struct keeper {
    struct keeper_options o;
    struct loop loop;
    /* The last round failed, and that was logged. Used by the loop alone. */
    bool failed;
};

/* --- tasks that are missing --- */

struct asked {
    const struct keeper_options *o;
    bool (*ended)(void *ctx);
    void *ctx;
};

static void gap_told(void *ctx, const struct replication_gap *gap)
{
    const struct asked *a = ctx;
    const char *event = gap->outcome == 0 ? "replication.begun_anew" : "replication.tasks_missing";

    if (gap->outcome == 0 && gap->copies < 0)
        event = "replication.recounted";
    if (gap->outcome ==
        ERR_NOT_FOUND) /* the replication has changed meanwhile; the next round checks it */
        return;
    log_warn(a->o->log, event, log_s("user", gap->id.user), log_s("bucket", gap->id.bucket),
             log_s("from", gap->id.from), log_s("to", gap->id.to), log_i("copies", gap->copies),
             log_i("listings", gap->listings), log_i("changes", gap->events));
}

static bool gap_ended(void *ctx)
{
    const struct asked *a = ctx;

    return a->ended(a->ctx);
}

static int recount(struct asked *a, struct err *err)
{
    const struct replication_recount r = {.idle_ms = (int64_t)a->o->interval_ms,
                                          .first = first_task_resync,
                                          .told = gap_told,
                                          .ended = gap_ended,
                                          .ctx = a};
    size_t looked = 0;

    return replication_recount(a->o->replications, &r, &looked, err);
}

/* --- switches --- */

static bool needs_task(const struct bucket_switch *s)
{
    if (s->status == SWITCH_ERROR || s->status == SWITCH_SKIPPED)
        return s->o.cron.len > 0;
    return s->status != SWITCH_DONE;
}

/* Queues the task of a switch. A task that exists already stays as it is. */
static int add_switch_task(const struct keeper_options *o, struct arena *a,
                           const struct bucket_switch *s, struct err *err)
{
    struct replication_id id = s->id;

    if (s->aborted_ms) {
        id.from = s->id.to;
        id.to = s->id.from;
    }
    struct task t = switch_task(a, &id, switch_is_live(s));
    int code = arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : queue_add(o->queue, &t, 0, err);
    if (code == 0)
        log_warn(o->log, "switch.task_missing", log_s("bucket", s->id.bucket),
                 log_s("from", s->id.from), log_s("to", s->id.to));
    return code == ERR_EXISTS ? 0 : code;
}

static int keep_switches(const struct keeper_options *o, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct bucket_switch *list = NULL;
    size_t count = 0;
    int code = switch_list(o->replications, &a, &list, &count, err);

    for (size_t i = 0; i < count && code == 0; i++)
        if (needs_task(&list[i]))
            code = add_switch_task(o, &a, &list[i], err);
    arena_release(&a);
    return code;
}

/* --- a round --- */

static int keeper_forget(struct asked *a, struct err *err)
{
    size_t count = 0;
    int code = replication_forget_unused(a->o->replications, gap_ended, a, &count, err);

    if (count)
        log_info(a->o->log, "replica.vectors_forgotten", log_u("buckets", count));
    return code;
}

int keeper_run(const struct keeper_options *o, bool (*ended)(void *ctx), void *ctx, struct err *err)
{
    struct asked a = {o, ended, ctx};
    struct lock *lock = NULL;
    int code = lock_take(&lock, o->locks, STR("w:keeper"), err);

    if (code == 0)
        code = recount(&a, err);
    if (code == 0)
        code = keep_switches(o, err);
    if (code == 0)
        code = keeper_forget(&a, err);
    lock_release(lock);
    return code;
}

/* --- the thread --- */

static bool is_stopped(void *ctx)
{
    struct keeper *k = ctx;

    return loop_is_stopping(&k->loop);
}

static struct loop_sleep keeper_step(void *ctx)
{
    struct keeper *k = ctx;
    uint64_t began_ms = clock_mono_ms();
    struct err err = {0};
    int code = keeper_run(&k->o, is_stopped, k, &err);

    if (code < 0 && code != ERR_BUSY && code != ERR_SHUTDOWN && !k->failed)
        log_warn(k->o.log, "replica.not_kept", log_z("error", err.text));
    k->failed = code < 0 && code != ERR_BUSY;
    uint64_t rest_ms = SHARE * (clock_mono_ms() - began_ms);
    return loop_sleep_ms(k->o.interval_ms > rest_ms ? k->o.interval_ms : rest_ms);
}

int keeper_start(struct keeper **out, const struct keeper_options *o, struct err *err)
{
    struct keeper *k = xcalloc(1, sizeof(*k));

    k->o = *o;
    int code = loop_start(&k->loop,
                          &(struct loop_options){.name = "keeper",
                                                 .step = keeper_step,
                                                 .ctx = k,
                                                 .first = loop_sleep_ms(o->interval_ms)},
                          err);
    if (code < 0) {
        free(k);
        return code;
    }
    *out = k;
    return 0;
}

void keeper_stop(struct keeper *k)
{
    if (!k)
        return;
    loop_stop(&k->loop);
    free(k);
}
