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

int api_get_queues(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct queue_stats *list;
    struct api_json j;
    struct err err = {0};
    size_t count;

    (void)params;
    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = queue_list(api->o.queue, http_request_arena(req), &list, &count, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "queues");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < count; i++)
        write_queue(&j.w, &list[i]);
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

/* One that workers take from has no rows before its first task. ERR_NOT_FOUND. */
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
    for (size_t i = 0; i < queue_weight_count; i++)
        if (str_eq(str_z(queue_weights[i].name), name))
            return 0;
    return err_set(err, ERR_NOT_FOUND, "there is no queue " STR_FMT, STR_ARG(name));
}

static int pause_queue(struct http_request *req, struct api *api, struct str name, bool paused)
{
    struct queue_stats q;
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = find_queue(api, http_request_arena(req), name, &q, &err);
    if (code == 0)
        code = queue_pause(api->o.queue, name, paused, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), paused ? "queue.paused" : "queue.resumed",
             log_s("queue", name));
    return api_send_done(req);
}

int api_put_pause_queue(struct http_request *req, const struct route_params *params, void *ctx)
{
    return pause_queue(req, ctx, route_param(params, "queue"), true);
}

int api_put_resume_queue(struct http_request *req, const struct route_params *params, void *ctx)
{
    return pause_queue(req, ctx, route_param(params, "queue"), false);
}

/* --- tasks --- */

static void write_time(struct json_out *w, const char *name, int64_t seconds)
{
    char text[CLOCK_ISO_LEN + 1] = "";

    if (seconds > 0)
        clock_iso(seconds * 1000, text);
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
                        info->due_s ? info->due_s - clock_wall_ms() / 1000 : (int64_t)0);
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

int api_get_tasks(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct tasks_wanted want = {.queue = route_param(params, "queue")};
    struct arena a = ARENA_INIT(ARENA_MAX);
    struct api_json j;
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = read_wanted(req, &want, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "tasks");
    json_out_open(&j.w, '[');
    if (code == 0)
        code = write_tasks(ctx, &a, want, &j.w, &err);
    json_out_close(&j.w, ']');
    if (code == 0)
        code = buf_error(&j.body);
    arena_release(&a);
    if (code == 0)
        return api_json_send(req, 200, &j);
    api_json_drop(&j);
    return api_send_failure(req, code, &err);
}

int api_get_task(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct task_info info;
    struct api_json j;
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = queue_task(api->o.queue, http_request_arena(req), route_param(params, "queue"),
                          route_param(params, "id"), &info, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    write_task(&j.w, &info);
    return api_json_send(req, 200, &j);
}

static int finish(struct http_request *req, const struct route_params *params, const char *event,
                  int code, const struct err *err)
{
    if (code < 0)
        return api_send_failure(req, code, err);
    log_info(http_request_log(req), event, log_s("queue", route_param(params, "queue")),
             log_s("id", route_param(params, "id")));
    return api_send_done(req);
}

int api_delete_task(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code =
        queue_delete(api->o.queue, route_param(params, "queue"), route_param(params, "id"), &err);
    return finish(req, params, "task.deleted", code, &err);
}

int api_post_run_task(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct err err = {0};
    json_t *object = NULL;
    int code;

    if (!api_read_json(req, &object, &code))
        return code;
    json_decref(object);
    code =
        queue_run_now(api->o.queue, route_param(params, "queue"), route_param(params, "id"), &err);
    return finish(req, params, "task.run", code, &err);
}

static int cancel(struct api *api, struct arena *a, struct str queue, struct str id,
                  struct err *err)
{
    struct task_info info;
    int code = queue_task(api->o.queue, a, queue, id, &info, err);

    if (code == 0 && info.state != TASK_ACTIVE)
        code = err_set(err, ERR_CONFLICT, "task " STR_FMT " is not running but %s: delete it",
                       STR_ARG(id), task_state_names[info.state]);
    return code < 0 ? code : queue_cancel(api->o.queue, id, err);
}

int api_post_cancel_task(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct err err = {0};
    json_t *object = NULL;
    int code;

    if (!api_read_json(req, &object, &code))
        return code;
    json_decref(object);
    code = cancel(ctx, http_request_arena(req), route_param(params, "queue"),
                  route_param(params, "id"), &err);
    return finish(req, params, "task.cancelled", code, &err);
}
