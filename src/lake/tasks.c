/* Adds and runs the lake's tasks. */
#include "lake/tasks.h"
#include "lake/actions.h"
#include "lake/delete.h"
#include "lake/gc.h"
#include "lake/import.h"
#include "lake/lake_int.h"
#include "lake/refs_task.h"
#include "lake/room.h"

enum {
    /* Longest try of a task that works on a whole repository. A try of an import, a dump or a
     * restore begins from nothing, and so does the marking of a collection. With the queue's own
     * limit, TASK_TIMEOUT_S, work that needs longer than that would never end. */
    TASK_TRY_S = 30 * S_PER_DAY,
    /* delay before a task runs again, because another process does the same work or too many hooks
     * run */
    TASK_AGAIN_S = 10,
    KEEPER_EVERY_MS = 10 * MS_PER_S,
    KEEPER_RETRY_MS = 30 * MS_PER_S,
};

/* --- adding --- */

/* Adds a task, unless the queue has the same task already. */
static int task_add_once(struct queue *q, const char *type, struct str id, struct str payload,
                         struct err *err)
{
    struct task t = {.type = str_z(type),
                     .id = id,
                     .payload = payload,
                     .queue = STR(LAKE_QUEUE),
                     .timeout_s = TASK_TRY_S};
    int code = queue_add(q, &t, 0, err);

    return code == ERR_EXISTS ? 0 : code;
}

int lake_task_add_delete(struct queue *q, struct err *err)
{
    return task_add_once(q, LAKE_TASK_DELETE, STR(LAKE_TASK_DELETE), STR("to-delete"), err);
}

/* Adds a task of a repository. `thing` is the id of the import, dump or restore, or is empty. */
static int task_add_repo(struct queue *q, const char *type, const struct lake_repo *r,
                         struct str thing, struct err *err)
{
    struct buf id = {0}, payload = {0};

    buf_appendf(&id, "%s:" STR_FMT ":" STR_FMT, type, STR_ARG(r->partition), STR_ARG(thing));
    buf_appendf(&payload, STR_FMT "\n" STR_FMT "\n" STR_FMT, STR_ARG(r->id), STR_ARG(r->partition),
                STR_ARG(thing));
    int code = task_add_once(q, type, buf_str(&id), buf_str(&payload), err);
    buf_release(&id);
    buf_release(&payload);
    return code;
}

int lake_task_add_gc(struct queue *q, const struct lake_repo *r, struct err *err)
{
    return task_add_repo(q, LAKE_TASK_GC, r, STR_EMPTY, err);
}

int lake_task_add_import(struct queue *q, const struct lake_repo *r, struct str id, struct err *err)
{
    return task_add_repo(q, LAKE_TASK_IMPORT, r, id, err);
}

int lake_task_add_refs(struct queue *q, const struct lake_repo *r, struct str id, struct err *err)
{
    return task_add_repo(q, LAKE_TASK_REFS, r, id, err);
}

int lake_task_add_hooks(struct queue *q, struct str payload, struct err *err)
{
    struct task t = {.type = STR(LAKE_TASK_HOOKS), .payload = payload, .queue = STR(LAKE_QUEUE)};

    return queue_add(q, &t, 0, err);
}

/* --- running --- */

static struct lake *lake_task_lake(const struct task_run *run)
{
    const struct lake_tasks *t = run->ctx;

    return t->lake;
}

static bool lake_task_ended(void *ctx)
{
    return task_ended(ctx);
}

/* Finds the repository that the task's payload names. ERR_NOT_FOUND: the repository was deleted, or
 * was deleted and made again. */
static int lake_task_repo(struct task_run *run, struct lake_repo *out, struct str *thing,
                          struct err *err)
{
    struct str id, partition, rest;

    if (!str_cut(run->task->payload, '\n', &id, &rest) || !str_cut(rest, '\n', &partition, thing))
        return err_set(err, ERR_INVALID, "the payload names no repository");
    int code = lake_repo_get(lake_task_lake(run), run->arena, id, out, err);
    return code == 0 && !str_eq(out->partition, partition) ? ERR_NOT_FOUND : code;
}

/* Translates the code of the work into a result for the queue's worker. */
static int lake_task_result(struct task_run *run, int code)
{
    if (code != ERR_BUSY && code != ERR_CANCELED)
        return code;
    run->put_back_s = TASK_AGAIN_S;
    return ERR_AGAIN;
}

static int lake_task_delete(struct task_run *run, struct err *err)
{
    return lake_task_result(run, lake_delete_work(lake_task_lake(run), lake_task_ended, run, err));
}

/* --- collections --- */

void lake_tasks_init(struct lake_tasks *t, struct lake *l, struct lake_actions *actions)
{
    *t = (struct lake_tasks){.lake = l, .actions = actions};
    mutex_init(&t->lock, "lake.tasks");
}

void lake_tasks_release(struct lake_tasks *t)
{
    if (t->lake)
        mutex_release(&t->lock);
    *t = (struct lake_tasks){0};
}

struct lake_gc_stats lake_tasks_gc_stats(struct lake_tasks *t)
{
    struct lake_gc_stats stats = {0};

    if (!t->lake)
        return stats;
    mutex_lock(&t->lock);
    stats = t->gc;
    mutex_unlock(&t->lock);
    return stats;
}

static void gc_stats_begin(struct lake_tasks *t)
{
    mutex_lock(&t->lock);
    t->gc.running++;
    mutex_unlock(&t->lock);
}

/* Adds the results of a run to the counts. A run that is not finished adds nothing yet; its task is
 * put back into the queue. */
static void gc_stats_end(struct lake_tasks *t, const struct lake_gc_report *report, int code)
{
    bool is_done = code == 0 && report->stage == LAKE_GC_DONE;
    bool removes = is_done && !report->mark_only;

    mutex_lock(&t->lock);
    t->gc.running--;
    t->gc.runs += is_done;
    t->gc.refused += code == ERR_IN_USE;
    t->gc.failures += code < 0 && code != ERR_BUSY && code != ERR_CANCELED;
    t->gc.bodies += removes ? report->bodies_removed : 0;
    t->gc.nodes += removes ? report->nodes_removed : 0;
    t->gc.uploads += removes ? report->uploads_aborted : 0;
    t->gc.bytes += removes ? report->bodies_dead_bytes + report->nodes_dead_bytes : 0;
    mutex_unlock(&t->lock);
}

static int lake_task_collect(struct task_run *run, const struct lake_repo *repo, struct err *err)
{
    struct lake_tasks *t = run->ctx;
    struct lake_gc_report report = {0};
    struct err ignored = {0};

    gc_stats_begin(t);
    int code = lake_gc_work(t->lake, repo, lake_task_ended, run, err);
    if (code == 0 && lake_gc_report(t->lake, run->arena, repo, &report, &ignored) < 0)
        report = (struct lake_gc_report){0};
    gc_stats_end(t, &report, code);
    if (code != ERR_IN_USE)
        return code;
    log_error(t->lake->o.log, "lake.gc_refused", log_s("repository", repo->id),
              log_z("error", err->text));
    return 0; /* if the task were tried again, it would be refused again */
}

static int lake_task_gc(struct task_run *run, struct err *err)
{
    struct lake_repo repo;
    struct str none;
    int code = lake_task_repo(run, &repo, &none, err);

    if (code == ERR_NOT_FOUND)
        return 0;
    if (code == 0)
        code = lake_task_collect(run, &repo, err);
    return lake_task_result(run, code);
}

/* --- other work --- */

/* Runs a task that also has a record in the repository's partition. */
static int lake_task_recorded(struct task_run *run,
                              int (*work)(struct lake *l, const struct lake_repo *r, struct str id,
                                          bool (*ended)(void *ctx), void *ctx, struct err *err),
                              struct err *err)
{
    struct lake_repo repo;
    struct str id;
    int code = lake_task_repo(run, &repo, &id, err);

    if (code == ERR_NOT_FOUND)
        return 0;
    if (code == 0)
        code = work(lake_task_lake(run), &repo, id, lake_task_ended, run, err);
    return lake_task_result(run, code);
}

static int lake_task_import(struct task_run *run, struct err *err)
{
    return lake_task_recorded(run, lake_import_work, err);
}

static int lake_task_refs(struct task_run *run, struct err *err)
{
    return lake_task_recorded(run, lake_refs_task_work, err);
}

static int lake_task_hooks(struct task_run *run, struct err *err)
{
    const struct lake_tasks *t = run->ctx;

    return lake_task_result(run, lake_actions_work(t->actions, t->lake, run->task->payload, err));
}

static const struct task_handler lake_handlers[] = {
    {.type = LAKE_TASK_DELETE, .fn = lake_task_delete},
    {.type = LAKE_TASK_GC, .fn = lake_task_gc},
    {.type = LAKE_TASK_IMPORT, .fn = lake_task_import},
    {.type = LAKE_TASK_HOOKS, .fn = lake_task_hooks},
    {.type = LAKE_TASK_REFS, .fn = lake_task_refs},
};

void lake_tasks_list(struct lake_tasks *t, room_tasks *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(lake_handlers); i++) {
        struct task_handler handler = lake_handlers[i];
        handler.ctx = t;
        vec_push(out, handler);
    }
}

/* --- looking for lost work --- */

static int keeper_begin_gc(void *ctx, const struct lake_repo *r, struct err *err)
{
    struct lake_keeper *k = ctx;

    return lake_task_add_gc(k->queue, r, err);
}

static struct loop_sleep lake_keeper_step(void *ctx)
{
    struct lake_keeper *k = ctx;
    struct lake_gc_round_options round = {k->gc_every_ms, keeper_begin_gc, k};
    struct err err = {0};
    bool has = false;
    uint64_t most_ms = k->lake->o.drop_again_ms, wait_ms = KEEPER_EVERY_MS;
    int code = lake_delete_is_due(k->lake, &has, &err);

    if (code == 0 && has)
        code = lake_task_add_delete(k->queue, &err);
    if (code == 0 && k->gc_every_ms)
        code = lake_gc_round(k->lake, &round, &wait_ms, &err);
    /* The rows of a deleted repository are purged a second time after drop_again_ms. The keeper
     * wakes in time for that. */
    most_ms = most_ms < KEEPER_EVERY_MS ? most_ms : KEEPER_EVERY_MS;
    if (code == 0)
        return loop_sleep_ms(wait_ms < most_ms ? wait_ms : most_ms);
    log_warn(k->lake->o.log, "lake.keeper", log_z("error", err.text));
    return loop_retry_ms(KEEPER_RETRY_MS);
}

int lake_keeper_start(struct lake_keeper *k, struct lake *l, struct queue *q, uint64_t gc_every_ms,
                      struct err *err)
{
    *k = (struct lake_keeper){.lake = l, .queue = q, .gc_every_ms = gc_every_ms};
    return loop_start(
        &k->loop, &(struct loop_options){.name = "lake-keeper", .step = lake_keeper_step, .ctx = k},
        err);
}

void lake_keeper_stop(struct lake_keeper *k)
{
    loop_stop(&k->loop);
}
