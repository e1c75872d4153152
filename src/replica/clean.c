/* Deletes what the store knows about a replication's destination: numbers in version vectors,
 * cursors of listings, tasks. */
#include "replica/clean.h"
#include "base/json.h"
#include "replica/first.h"
#include "replica/tasks/tasks.h"

enum { SCAN_PAGE = 500, SCAN_ARENA_MAX = 64 * 1024 * 1024 };

struct cleaning {
    const struct cleaner *c;
    struct task_run *run;
    struct replication_id id;
};

static int check_ended(const struct cleaning *x, struct err *err)
{
    return task_ended(x->run) ? err_set(err, ERR_SHUTDOWN, "broken off") : 0;
}

/* Sets *out to whether the destination is also the source of a replication, as it is after a
 * switch. Then its numbers in the version vectors are valid, and stay. */
static int is_source(const struct cleaning *x, bool *out, struct err *err)
{
    const struct replication_id *id = &x->id;
    const struct replication *const *list;
    struct replication_view *view = NULL;
    int code = replications_view(x->c->replications, &view, err);

    if (code == 0)
        *out = replication_view_from(view, id->to, id->to_bucket.len ? id->to_bucket : id->bucket,
                                     &list) > 0;
    replication_view_unref(view);
    return code;
}

static int strip_vectors(struct cleaning *x, struct err *err)
{
    const struct place place = {x->id.to, x->id.to_bucket};
    uint64_t cursor = 0;
    bool source = false;
    int code = is_source(x, &source, err);

    if (code < 0 || source)
        return code;
    do {
        code = version_strip(x->c->app, x->id.bucket, &place, &cursor, err);
        if (code == 0)
            code = check_ended(x, err);
    } while (code == 0 && cursor != 0);
    return code;
}

int clean_vectors(const struct cleaner *c, struct task_run *run, const struct replication_id *id,
                  struct err *err)
{
    struct cleaning x = {.c = c, .run = run, .id = *id};

    return strip_vectors(&x, err);
}

static int drop_cursors(struct cleaning *x, struct err *err)
{
    uint64_t at = 0;
    int code;

    do {
        code = replication_clean(x->c->replications, &x->id, &at, err);
        if (code == 0)
            code = check_ended(x, err);
    } while (code == 0 && at != 0);
    return code;
}

/* --- tasks of the replication --- */

static bool task_is_of(const struct task *t, const struct replication_id *id)
{
    struct replication_id other;
    json_t *payload = NULL;
    bool same = json_read(&payload, t->payload, NULL) == 0 && task_payload_id(&other, payload) &&
                first_same(&other, id);

    json_decref(payload);
    return same;
}

/* Deletes those tasks of one page that belong to the replication. Adds the number of the other
 * tasks, which stay in the queue, to page->skip, so that the next page begins after them. *more is
 * set to whether there may be more pages. */
static int drop_page(struct cleaning *x, struct queue_page *page, bool *more, struct err *err)
{
    struct arena a = ARENA_INIT(SCAN_ARENA_MAX);
    struct task_info *list = NULL;
    size_t count = 0;
    int code = queue_tasks(x->c->queue, &a, page, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        if (!task_is_of(&list[i].task, &x->id)) {
            page->skip++;
            continue;
        }
        code = queue_delete(x->c->queue, page->queue, list[i].task.id, err);
        /* The task has changed its state meanwhile. */
        if (code == ERR_NOT_FOUND || code == ERR_CONFLICT)
            code = 0;
    }
    *more = count > 0;
    arena_release(&a);
    return code < 0 ? code : check_ended(x, err);
}

static int drop_queue(struct cleaning *x, struct str queue, struct err *err)
{
    static const enum task_state states[] = {TASK_ARCHIVED, TASK_RETRY, TASK_SCHEDULED,
                                             TASK_COMPLETED};
    int code = 0;

    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(states); i++) {
        struct queue_page page = {queue, states[i], 0, SCAN_PAGE};
        bool more = true;
        while (code == 0 && more)
            code = drop_page(x, &page, &more, err);
    }
    return code;
}

/* Deletes the replication's tasks, except those that are pending or active. These end by themselves
 * when they find that the replication was removed. */
static int drop_tasks(struct cleaning *x, struct err *err)
{
    struct arena *a = x->run->arena;
    int code = drop_queue(x, STR("migrate_bucket_list_obj"), err);

    for (int i = 1; code == 0 && i <= PRIORITY_MAX + 1; i++) {
        code = drop_queue(x, arena_fmt(a, "events%d", i), err);
        if (code == 0)
            code = drop_queue(x, arena_fmt(a, "migrate_obj_copy%d", i), err);
    }
    return code;
}

/* --- the handlers --- */

static int resync_begin(struct cleaning *x, struct task_run *run, struct err *err)
{
    struct task_payload p;
    int code = task_payload_read(&p, run->arena, run->task->payload, PAYLOAD_BUCKET, err);

    *x = (struct cleaning){.c = run->ctx, .run = run, .id = p.id};
    return code;
}

int clean_handle(struct task_run *run, struct err *err)
{
    struct replication_status status;
    struct cleaning x;
    int code = resync_begin(&x, run, err);

    if (code == 0)
        code = strip_vectors(&x, err);
    if (code < 0)
        return code;
    code = replication_read(x.c->replications, run->arena, &x.id, &status, err);
    /* If the replication exists, it was made again, and the cursors and tasks belong to the new
     * replication. */
    if (code != ERR_NOT_FOUND)
        return code;
    code = drop_cursors(&x, err);
    return code < 0 ? code : drop_tasks(&x, err);
}

/* Sets *out to the replication's priority. ERR_NOT_FOUND: the replication was removed. */
static int resync_priority(const struct cleaning *x, int *out, struct err *err)
{
    const struct replication *const *all;
    struct replication_view *view = NULL;
    int code = replications_view(x->c->replications, &view, err);
    size_t count = code == 0 ? replication_view_all(view, &all) : 0;

    if (code == 0)
        code = ERR_NOT_FOUND;
    for (size_t i = 0; i < count && code == ERR_NOT_FOUND; i++)
        if (first_same(&all[i]->id, &x->id)) {
            *out = all[i]->priority;
            code = 0;
        }
    replication_view_unref(view);
    return code;
}

static int begin_again(struct cleaning *x, struct err *err)
{
    struct task next;
    int priority = 0;
    int code = resync_priority(x, &priority, err);

    if (code < 0)
        return code;
    next = tasks_first(x->run->arena, &x->id, priority);
    code = arena_error(x->run->arena);
    if (code == 0)
        code = replication_list(x->c->replications, &x->id, x->run->task, &next, err);
    if (code == 0)
        x->run->done = true;
    return code;
}

int resync_handle(struct task_run *run, struct err *err)
{
    struct cleaning x;
    int code = resync_begin(&x, run, err);

    if (code == 0)
        code = strip_vectors(&x, err);
    if (code == 0)
        code = drop_cursors(&x, err);
    if (code == 0)
        code = begin_again(&x, err);
    return code == ERR_NOT_FOUND ? 0 : code;
}
