/* The queues of background work, and their tasks. */
#include "api/api_int.h"
#include "base/clock.h"
#include "coord/worker.h"

enum {
    PAGE_DEFAULT = 100,
    PAGE_MAX = 1000,
    SKIP_MAX = INT32_MAX,
    ARENA_MAX = 128 * 1024 * 1024, /* a page of the largest payloads */
};

static api_fn get_queues, pause_queue, resume_queue, get_tasks, get_task, delete_task, run_task,
    cancel_task;

API_ROUTE(api_get_queues, get_queues, 200, .waits = true, .list = "queues")
API_ROUTE(api_put_pause_queue, pause_queue, 204, .waits = true)
API_ROUTE(api_put_resume_queue, resume_queue, 204, .waits = true)
API_ROUTE(api_get_tasks, get_tasks, 200, .waits = true, .list = "tasks")
API_ROUTE(api_get_task, get_task, 200, .waits = true)
API_ROUTE(api_delete_task, delete_task, 204, .waits = true)
API_ROUTE(api_post_run_task, run_task, 204, .takes_body = true)
API_ROUTE(api_post_cancel_task, cancel_task, 204, .takes_body = true)

/* --- queues --- */

static void write_queue(struct json_out *w, const struct queue_stats *q)
{
    json_out_open(w, '{');
    json_out_member_str(w, "name", q->name);
    json_out_member_bool(w, "paused", q->paused);
    for (int i = 0; i < TASK_STATES; i++)
        json_out_member_u64(w, task_state_names[i], q->size[i]);
    json_out_member_u64(w, "processed", q->processed);
    json_out_member_u64(w, "failed", q->failed);
    json_out_member_u64(w, "processed_today", q->processed_today);
    json_out_member_u64(w, "failed_today", q->failed_today);
    json_out_member_i64(w, "latency_ms", q->latency_ms);
    json_out_close(w, '}');
}

static int get_queues(struct api_call *c, struct err *err)
{
    struct queue_stats *list;
    size_t count;
    int code = queue_list(c->api->o.queue, http_request_arena(c->req), &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        write_queue(c->w, &list[i]);
    return code;
}

/* A queue that workers take from but that never had a task has no rows in the store: its numbers
 * are 0. ERR_NOT_FOUND. */
static int find_queue(struct api *api, struct arena *a, struct str name, struct queue_stats *out,
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

static int set_paused(struct api_call *c, bool paused, struct err *err)
{
    struct str name = route_param(c->params, "queue");
    struct queue_stats q;
    int code = find_queue(c->api, http_request_arena(c->req), name, &q, err);

    if (code == 0)
        code = queue_pause(c->api->o.queue, name, paused, err);
    if (code == 0)
        log_info(http_request_log(c->req), paused ? "queue.paused" : "queue.resumed",
                 log_s("queue", name));
    return code;
}

static int pause_queue(struct api_call *c, struct err *err)
{
    return set_paused(c, true, err);
}

static int resume_queue(struct api_call *c, struct err *err)
{
    return set_paused(c, false, err);
}

/* --- tasks --- */

static void write_time(struct json_out *w, const char *name, int64_t seconds)
{
    char text[CLOCK_ISO_LEN + 1] = "";

    if (seconds > 0)
        clock_iso(seconds * MS_PER_S, text);
    json_out_member_str(w, name, str_z(text));
}

/* As the JSON that it is; what is none, as a string. */
static void write_payload(struct json_out *w, struct str payload)
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

static void write_task(struct json_out *w, const struct task_info *info)
{
    const struct task *t = &info->task;

    json_out_member_str(w, "queue", t->queue);
    json_out_member_str(w, "id", t->id);
    json_out_member_str(w, "type", t->type);
    json_out_member_str(w, "state", str_z(task_state_names[info->state]));
    json_out_member_i64(w, "tries", t->retried);
    json_out_member_i64(w, "max_tries", t->retry_max);
    json_out_member_str(w, "error", t->error);
    write_time(w, "failed_at", t->last_failed_s);
    write_time(w, "due", info->due_s);
    json_out_member_i64(w, "due_in_s",
                        info->due_s ? info->due_s - clock_wall_ms() / MS_PER_S : (int64_t)0);
    write_payload(w, t->payload);
}

struct tasks_wanted {
    struct str queue;
    int state; /* enum task_state; TASK_STATES: all */
    size_t skip, limit;
};

static int read_wanted(struct http_request *req, struct tasks_wanted *out, struct err *err)
{
    struct str state;
    int code = api_query(req, "state", &state, err);

    if (code == 0)
        code = api_query_number(req, "skip", 0, SKIP_MAX, &out->skip, err);
    if (code == 0)
        code = api_query_number(req, "limit", PAGE_DEFAULT, PAGE_MAX, &out->limit, err);
    if (code < 0)
        return code;
    for (out->state = 0; out->state < TASK_STATES; out->state++)
        if (str_eq(state, str_z(task_state_names[out->state])))
            return 0;
    if (state.len)
        return err_set(err, ERR_INVALID,
                       "state is pending, active, scheduled, retry, archived or completed, "
                       "not '" STR_FMT "'",
                       STR_ARG(state));
    return 0;
}

/* State after state; tasks that move meanwhile may be missed or seen twice. */
static int write_tasks(struct api *api, struct arena *a, struct tasks_wanted want,
                       struct json_out *w, struct err *err)
{
    struct queue_stats q;
    int code = find_queue(api, a, want.queue, &q, err);

    for (int i = 0; code == 0 && i < TASK_STATES; i++) {
        struct queue_page page = {want.queue, (enum task_state)i, want.skip, want.limit};
        struct task_info *list = NULL;
        size_t count = 0;
        if ((want.state != TASK_STATES && want.state != i) || want.limit == 0)
            continue;
        if (want.skip >= q.size[i]) {
            want.skip -= q.size[i];
            continue;
        }
        code = queue_tasks(api->o.queue, a, &page, &list, &count, err);
        for (size_t k = 0; code == 0 && k < count; k++) {
            json_out_open(w, '{');
            write_task(w, &list[k]);
            json_out_close(w, '}');
        }
        want.skip = 0;
        want.limit -= size_min(count, want.limit);
    }
    return code;
}

static int get_tasks(struct api_call *c, struct err *err)
{
    struct tasks_wanted want = {.queue = route_param(c->params, "queue")};
    struct arena a = ARENA_INIT(ARENA_MAX);
    int code = read_wanted(c->req, &want, err);

    if (code == 0)
        code = write_tasks(c->api, &a, want, c->w, err);
    if (code == 0)
        code = buf_error(c->w->out);
    arena_release(&a);
    return code;
}

static int get_task(struct api_call *c, struct err *err)
{
    struct task_info info;
    int code =
        queue_task(c->api->o.queue, http_request_arena(c->req), route_param(c->params, "queue"),
                   route_param(c->params, "id"), &info, err);

    if (code == 0)
        write_task(c->w, &info);
    return code;
}

/* Returns the code, and logs what was done. */
static int done(struct api_call *c, const char *event, int code)
{
    if (code == 0)
        log_info(http_request_log(c->req), event, log_s("queue", route_param(c->params, "queue")),
                 log_s("id", route_param(c->params, "id")));
    return code;
}

static int delete_task(struct api_call *c, struct err *err)
{
    return done(c, "task.deleted",
                queue_delete(c->api->o.queue, route_param(c->params, "queue"),
                             route_param(c->params, "id"), err));
}

static int run_task(struct api_call *c, struct err *err)
{
    return done(c, "task.run",
                queue_run_now(c->api->o.queue, route_param(c->params, "queue"),
                              route_param(c->params, "id"), err));
}

static int cancel_task(struct api_call *c, struct err *err)
{
    struct str id = route_param(c->params, "id");
    struct task_info info;
    int code = queue_task(c->api->o.queue, http_request_arena(c->req),
                          route_param(c->params, "queue"), id, &info, err);

    if (code == 0 && info.state != TASK_ACTIVE)
        code = err_set(err, ERR_CONFLICT, "task " STR_FMT " is not running but %s: delete it",
                       STR_ARG(id), task_state_names[info.state]);
    if (code == 0)
        code = queue_cancel(c->api->o.queue, id, err);
    return done(c, "task.cancelled", code);
}
