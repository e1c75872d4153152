/* API calls for the queues of background work and their tasks. */
#include "api/api_int.h"
#include "base/clock.h"
#include "coord/worker.h"

/* The limit on the arena, in bytes. It is enough for a page of tasks with the largest payloads. */
enum { ARENA_MAX = 128 * 1024 * 1024 };

static rest_fn queue_list_all, queue_set_paused, queue_set_resumed, task_list, task_show,
    task_delete, task_run, task_cancel;

static const struct rest_field queue_path[] = {{"queue", "The queue's name."}, {0}};
static const struct rest_field task_path[] = {
    {"queue", "The queue's name."}, {"id", "The task's id."}, {0}};

static const struct rest_field queue_items[] = {
    {"name", "The queue's name.", REST_AT(struct queue_stats, name)},
    {"paused", "Do workers leave its tasks alone?", REST_BOOLEAN,
     REST_AT(struct queue_stats, paused)},
    {"pending", "Tasks that wait for a worker.", REST_INTEGER,
     REST_AT(struct queue_stats, size[TASK_PENDING])},
    {"active", "Tasks that run.", REST_INTEGER, REST_AT(struct queue_stats, size[TASK_ACTIVE])},
    {"scheduled", "Tasks that wait for their time.", REST_INTEGER,
     REST_AT(struct queue_stats, size[TASK_SCHEDULED])},
    {"retry", "Tasks that failed and wait for their next try.", REST_INTEGER,
     REST_AT(struct queue_stats, size[TASK_RETRY])},
    {"archived", "Tasks that failed for good.", REST_INTEGER,
     REST_AT(struct queue_stats, size[TASK_ARCHIVED])},
    {"completed", "Tasks that are done and are still shown.", REST_INTEGER,
     REST_AT(struct queue_stats, size[TASK_COMPLETED])},
    {"processed", "Tasks that ran, in all.", REST_INTEGER, REST_AT(struct queue_stats, processed)},
    {"failed", "Those of them that failed.", REST_INTEGER, REST_AT(struct queue_stats, failed)},
    {"processed_today", "Tasks that ran since midnight UTC.", REST_INTEGER,
     REST_AT(struct queue_stats, processed_today)},
    {"failed_today", "Those of them that failed.", REST_INTEGER,
     REST_AT(struct queue_stats, failed_today)},
    {"latency_ms", "Age of the oldest pending task, in milliseconds; 0: there is none.",
     REST_INTEGER, REST_AT(struct queue_stats, latency_ms)},
    {0},
};

/* A task as it is shown. */
struct task_view {
    struct task_info info;
    const char *state;
    int64_t failed_ms, due_ms;
    int64_t due_in_s; /* 0 also when the task waits for no time */
};

static const struct rest_field task_fields[] = {
    {"queue", "The queue's name.", REST_AT(struct task_view, info.task.queue)},
    {"id", "The task's id.", REST_AT(struct task_view, info.task.id)},
    {"type", "The task's type.", REST_AT(struct task_view, info.task.type)},
    {"state", "Its state.", REST_AT(struct task_view, state)},
    {"tries", "How often the task was tried again.", REST_INTEGER,
     REST_AT(struct task_view, info.task.retried)},
    {"max_tries", "How often it is tried again at most.", REST_INTEGER,
     REST_AT(struct task_view, info.task.retry_max)},
    {"error", "Why its last try failed; empty: it did not.",
     REST_AT(struct task_view, info.task.error)},
    {"failed_at", "When its last try failed.", REST_TIME, REST_AT(struct task_view, failed_ms)},
    {"due", "When it runs, if it waits for a time.", REST_TIME, REST_AT(struct task_view, due_ms)},
    {"due_in_s", "Seconds until then; below 0: it is late.", REST_INTEGER,
     REST_AT(struct task_view, due_in_s)},
    {"payload", "The payload: JSON, or a string when it is not JSON.", REST_ANY,
     REST_AT(struct task_view, info.task.payload)},
    {0},
};

static const struct rest_row queue_rows[] = {
    {HTTP_GET, "/api/v1/queues", REST_ADMIN,
     "The queues of background work by name, with the number of tasks in each state.",
     queue_list_all, .list = "queues", .item = sizeof(struct queue_stats), .items = queue_items},
    {HTTP_PUT, "/api/v1/queues/{queue}/pause", REST_ADMIN,
     "Take no more tasks from the queue; tasks that run go on.", queue_set_paused, .status = 204,
     .in_path = queue_path},
    {HTTP_PUT, "/api/v1/queues/{queue}/resume", REST_ADMIN, "Take tasks from the queue again.",
     queue_set_resumed, .status = 204, .in_path = queue_path},
    {HTTP_GET, "/api/v1/queues/{queue}/tasks", REST_ADMIN,
     "Tasks of the queue, state by state. Tasks that move meanwhile may be missed or seen twice.",
     task_list, .in_path = queue_path,
     .query = REST_FIELDS({"state", "Only tasks in this state.",
                           .choices = REST_CHOICES("pending", "active", "scheduled", "retry",
                                                   "archived", "completed")}),
     .list = "tasks", .by_place = true, .page_usual = 100, .page_max = 1000,
     .item = sizeof(struct task_view), .items = task_fields},
    {HTTP_GET, "/api/v1/queues/{queue}/tasks/{id}", REST_ADMIN, "One task.", task_show,
     .in_path = task_path, .out = sizeof(struct task_view), .answer = task_fields},
    {HTTP_DELETE, "/api/v1/queues/{queue}/tasks/{id}", REST_ADMIN,
     "Remove a task that is not running.", task_delete, .status = 204, .in_path = task_path},
    {HTTP_POST, "/api/v1/queues/{queue}/tasks/{id}/run", REST_ADMIN,
     "Run the task now: one that waits for its time or its next try, or is archived or completed.",
     task_run, .status = 204, .in_path = task_path},
    {HTTP_POST, "/api/v1/queues/{queue}/tasks/{id}/cancel", REST_ADMIN,
     "Ask the worker that runs the task to give it up; the task is archived then.", task_cancel,
     .status = 204, .in_path = task_path},
};
const struct rest_table api_queue_rows = {REST_ROWS(queue_rows)};

/* --- queues --- */

/* Lists all queues. A queue without a name is left out; it can only come from another program on
 * the same Redis. */
static int queue_list_all(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct queue_stats *list;
    size_t count;
    int code = queue_list(api->o.queue, c->arena, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (list[i].name.len)
            rest_add(c, list[i].name, &list[i]);
    return code;
}

/* Gets the numbers of a queue. If workers take tasks from the queue but it never had a task, all
 * numbers are 0. ERR_NOT_FOUND: there is no such queue. */
static int queue_find(struct api *api, struct arena *a, struct str name, struct queue_stats *out,
                      struct err *err)
{
    struct queue_stats *list;
    size_t count;
    int code = queue_list(api->o.queue, a, &list, &count, err);

    if (code < 0)
        return code;
    *out = (struct queue_stats){.name = name};
    for (size_t i = 0; i < count; i++)
        if (str_eq(list[i].name, name)) {
            *out = list[i];
            return 0;
        }
    for (size_t i = 0; i < api->o.queue_count; i++)
        if (str_eq(str_z(api->o.queues[i].name), name))
            return 0;
    return err_set(err, ERR_NOT_FOUND, "there is no queue " STR_FMT, STR_ARG(name));
}

static int queue_pause_or_resume(struct rest_call *c, bool paused, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "queue");
    struct queue_stats q;
    int code = queue_find(api, c->arena, name, &q, err);

    if (code == 0)
        code = queue_pause(api->o.queue, name, paused, err);
    if (code == 0)
        log_info(http_request_log(c->req), paused ? "queue.paused" : "queue.resumed",
                 log_s("queue", name));
    return code;
}

static int queue_set_paused(struct rest_call *c, struct err *err)
{
    return queue_pause_or_resume(c, true, err);
}

static int queue_set_resumed(struct rest_call *c, struct err *err)
{
    return queue_pause_or_resume(c, false, err);
}

/* --- tasks --- */

static struct task_view task_view(const struct task_info *info)
{
    return (struct task_view){
        .info = *info,
        .state = task_state_names[info->state],
        .failed_ms = info->task.last_failed_s * MS_PER_S,
        .due_ms = info->due_s * MS_PER_S,
        .due_in_s = info->due_s ? info->due_s - clock_wall_ms() / MS_PER_S : 0,
    };
}

/* Returns the state in the query; TASK_STATES: any state. */
static int task_state_wanted(const struct rest_call *c)
{
    struct str name = rest_text(c, "state");
    int state = 0;

    while (state < TASK_STATES && !str_eq(name, str_z(task_state_names[state])))
        state++;
    return state;
}

/* Lists the tasks of one state, without the first `skip` tasks. The tasks live in the arena. */
static int task_list_state(struct rest_call *c, struct arena *a, enum task_state state, size_t skip,
                           struct err *err)
{
    struct api *api = c->ctx;
    struct queue_page page = {rest_text(c, "queue"), state, skip, rest_wanted(c)};
    struct task_info *list = NULL;
    size_t count = 0;
    int code = queue_tasks(api->o.queue, a, &page, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        struct task_view view = task_view(&list[i]);
        rest_add(c, STR_EMPTY, &view);
    }
    return code;
}

static int task_list(struct rest_call *c, struct err *err)
{
    int wanted = task_state_wanted(c);
    struct arena a = ARENA_INIT(ARENA_MAX);
    struct queue_stats q;
    int code = queue_find(c->ctx, c->arena, rest_text(c, "queue"), &q, err);
    size_t skip = rest_skip(c);

    for (int i = 0; code == 0 && i < TASK_STATES && !rest_full(c); i++) {
        if (wanted != TASK_STATES && wanted != i)
            continue;
        if (skip >= q.size[i]) {
            skip -= q.size[i];
            continue;
        }
        code = task_list_state(c, &a, (enum task_state)i, skip, err);
        skip = 0;
    }
    arena_release(&a);
    return code;
}

static int task_find(struct rest_call *c, struct task_info *out, struct err *err)
{
    struct api *api = c->ctx;

    return queue_task(api->o.queue, c->arena, rest_text(c, "queue"), rest_text(c, "id"), out, err);
}

static int task_show(struct rest_call *c, struct err *err)
{
    struct task_info info;
    int code = task_find(c, &info, err);

    if (code < 0)
        return code;
    struct task_view view = task_view(&info);
    return rest_give(c, &view);
}

/* Logs the event if `code` is 0. Returns `code`. */
static int task_done(struct rest_call *c, const char *event, int code)
{
    if (code == 0)
        log_info(http_request_log(c->req), event, log_s("queue", rest_text(c, "queue")),
                 log_s("id", rest_text(c, "id")));
    return code;
}

static int task_delete(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;

    return task_done(c, "task.deleted",
                     queue_delete(api->o.queue, rest_text(c, "queue"), rest_text(c, "id"), err));
}

static int task_run(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;

    return task_done(c, "task.run",
                     queue_run_now(api->o.queue, rest_text(c, "queue"), rest_text(c, "id"), err));
}

static int task_cancel(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str id = rest_text(c, "id");
    struct task_info info;
    int code = task_find(c, &info, err);

    if (code == 0 && info.state != TASK_ACTIVE)
        code = err_set(err, ERR_CONFLICT, "task " STR_FMT " is %s, not running; delete it instead",
                       STR_ARG(id), task_state_names[info.state]);
    if (code == 0)
        code = queue_cancel(api->o.queue, id, err);
    return task_done(c, "task.cancelled", code);
}
