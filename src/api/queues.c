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
    {"name", "The queue's name."},
    {"paused", "Do workers leave its tasks alone?", REST_BOOLEAN},
    {"pending", "Tasks that wait for a worker.", REST_INTEGER},
    {"active", "Tasks that run.", REST_INTEGER},
    {"scheduled", "Tasks that wait for their time.", REST_INTEGER},
    {"retry", "Tasks that failed and wait for their next try.", REST_INTEGER},
    {"archived", "Tasks that failed for good.", REST_INTEGER},
    {"completed", "Tasks that are done and are still shown.", REST_INTEGER},
    {"processed", "Tasks that ran, in all.", REST_INTEGER},
    {"failed", "Those of them that failed.", REST_INTEGER},
    {"processed_today", "Tasks that ran since midnight UTC.", REST_INTEGER},
    {"failed_today", "Those of them that failed.", REST_INTEGER},
    {"latency_ms", "Age of the oldest pending task, in milliseconds; 0: there is none.",
     REST_INTEGER},
    {0},
};

static const struct rest_field task_fields[] = {
    {"queue", "The queue's name."},
    {"id", "The task's id."},
    {"type", "The task's type."},
    {"state", "Its state."},
    {"tries", "How often the task was tried again.", REST_INTEGER},
    {"max_tries", "How often it is tried again at most.", REST_INTEGER},
    {"error", "Why its last try failed; empty: it did not."},
    {"failed_at", "When its last try failed.", REST_TIME},
    {"due", "When it runs, if it waits for a time.", REST_TIME},
    {"due_in_s", "Seconds until then; below 0: it is late.", REST_INTEGER},
    {"payload", "The payload: JSON, or a string when it is not JSON.", REST_ANY},
    {0},
};

static const struct rest_row queue_rows[] = {
    {HTTP_GET, "/api/v1/queues", REST_ADMIN,
     "The queues of background work by name, with the number of tasks in each state.",
     queue_list_all, .list = "queues", .items = queue_items},
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
     .list = "tasks", .by_place = true, .page_usual = 100, .page_max = 1000, .items = task_fields},
    {HTTP_GET, "/api/v1/queues/{queue}/tasks/{id}", REST_ADMIN, "One task.", task_show,
     .in_path = task_path, .answer = task_fields},
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

static void queue_write(struct json_out *w, const struct queue_stats *q)
{
    json_out_member_str(w, "name", q->name);
    json_out_member_bool(w, "paused", q->paused);
    for (int i = 0; i < TASK_STATES; i++)
        json_out_member_u64(w, task_state_names[i], q->size[i]);
    json_out_member_u64(w, "processed", q->processed);
    json_out_member_u64(w, "failed", q->failed);
    json_out_member_u64(w, "processed_today", q->processed_today);
    json_out_member_u64(w, "failed_today", q->failed_today);
    json_out_member_i64(w, "latency_ms", q->latency_ms);
}

/* Lists all queues. A queue without a name is left out; it can only come from another program on
 * the same Redis. */
static int queue_list_all(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct queue_stats *list;
    size_t count;
    int code = queue_list(api->o.queue, c->arena, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (list[i].name.len && rest_item(c, list[i].name)) {
            queue_write(c->w, &list[i]);
            rest_item_end(c);
        }
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

/* Writes a task's payload; a payload that is not JSON becomes a string. */
static void task_write_payload(struct json_out *w, struct str payload)
{
    json_t *json = NULL;

    json_out_key(w, "payload");
    if (json_read(&json, payload, NULL) == 0) {
        json_out_raw(w, payload);
        json_decref(json);
    } else {
        json_out_str(w, payload);
    }
}

static void task_write(struct json_out *w, const struct task_info *info)
{
    const struct task *t = &info->task;

    json_out_member_str(w, "queue", t->queue);
    json_out_member_str(w, "id", t->id);
    json_out_member_str(w, "type", t->type);
    json_out_member_str(w, "state", str_z(task_state_names[info->state]));
    json_out_member_i64(w, "tries", t->retried);
    json_out_member_i64(w, "max_tries", t->retry_max);
    json_out_member_str(w, "error", t->error);
    rest_time(w, "failed_at", t->last_failed_s * MS_PER_S);
    rest_time(w, "due", info->due_s * MS_PER_S);
    json_out_member_i64(w, "due_in_s",
                        info->due_s ? info->due_s - clock_wall_ms() / MS_PER_S : (int64_t)0);
    task_write_payload(w, t->payload);
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

    for (size_t i = 0; code == 0 && i < count; i++)
        if (rest_item(c, STR_EMPTY)) {
            task_write(c->w, &list[i]);
            rest_item_end(c);
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

    if (code == 0)
        task_write(c->w, &info);
    return code;
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
