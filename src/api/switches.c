/* Switches: which there are, where they are, and the calls that plan and give them up. */
#include "api/owners.h"
#include "api/replications.h"
#include "base/clock.h"
#include "coord/switch.h"
#include "replica/cron.h"
#include "replica/switch/switch.h"
#include "replica/tap/tap.h"

enum {
    TTL_MS = MS_PER_HOUR,                 /* of uploads, unless told */
    DURATION_MAX_MS = 1000 * 1000 * 1000, /* some days */
    LAG_MAX = 1000 * 1000 * 1000,
    UPLOADS_SHOWN = 100,
};

/* --- writing --- */

static void write_time(struct json_out *w, const char *name, int64_t ms)
{
    char text[CLOCK_ISO_LEN + 1] = "";

    if (ms)
        clock_iso(ms, text);
    json_out_member_str(w, name, str_z(text));
}

static const char *state_of(const struct bucket_switch *s)
{
    return s->aborted_ms ? "going_back" : switch_status_names[s->status];
}

static void write_names(struct json_out *w, struct api *api, struct arena *a,
                        const struct bucket_switch *s)
{
    struct user user = {0};
    struct buf id = {0};

    if (users_by_id(api->o.users, a, s->id.user, &user, NULL) < 0)
        user.name = STR_EMPTY;
    store_key_part(&id, s->id.user);
    buf_append_char(&id, ':');
    store_key_part(&id, s->id.bucket);
    json_out_member_str(w, "id", buf_str(&id));
    json_out_member_str(w, "replication", s->name);
    json_out_member_str(w, "user", user.name);
    json_out_member_str(w, "user_id", s->id.user);
    json_out_member_str(w, "bucket", s->id.bucket);
    json_out_member_str(w, "from", s->id.from);
    json_out_member_str(w, "to", s->id.to);
    buf_release(&id);
}

static void write_options(struct json_out *w, const struct switch_options *o)
{
    bool downtime = o->multipart_ttl_ns == 0 || o->uploads_ttl_ns > 0;
    int64_t ttl_ns = downtime ? o->uploads_ttl_ns : o->multipart_ttl_ns;

    json_out_member_bool(w, "downtime", downtime);
    json_out_member_i64(w, "multipart_ttl_ms", ttl_ns / NS_PER_MS);
    json_out_member_bool(w, "on_init_done", o->on_init_done);
    json_out_member_str(w, "cron", o->cron);
    write_time(w, "start_at", o->start_at_ms);
    json_out_member_i64(w, "max_duration_ms", o->max_duration_ns / NS_PER_MS);
    json_out_member_i64(w, "max_event_lag", o->max_event_lag);
    json_out_member_bool(w, "skip_check", o->skip_check);
    json_out_member_bool(w, "continue", o->continue_replication);
}

/* What has not gone over to the side that the route leads or will lead to. */
static int64_t lag_of(struct api *api, struct arena *a, const struct bucket_switch *s)
{
    struct replication_status status = {0};
    struct replication_look look;
    int64_t lag = 0;

    if (api_look_begin(&look, api, a, NULL) == 0 &&
        api_look(&look, &s->id, &status, &lag, NULL) < 0)
        lag = 0;
    api_look_end(&look);
    return lag;
}

/* Who began it: a user of weir's, or a name of the storage's own. */
static void write_upload(struct json_out *w, struct api *api, struct arena *a,
                         const struct upload_info *u)
{
    struct str by = u->initiator.len ? u->initiator : u->meta.owner;

    json_out_open(w, '{');
    json_out_member_str(w, "key", u->key);
    json_out_member_str(w, "upload_id", u->id);
    write_time(w, "initiated", u->started_ms);
    json_out_member_str(w, "initiator", by.len ? api_user_name(api, a, by) : by);
    json_out_close(w, '}');
}

/* Open on the storage that is left: what clients would have to begin anew, or is waited for. Of one
 * that is done nobody waits any more. null: the storage cannot be asked. */
static void write_uploads(struct json_out *w, struct api *api, struct arena *a,
                          const struct bucket_switch *s)
{
    struct storage *from = routes_storage(api->o.routes, s->id.from);
    struct upload_list open = {0};
    bool known = s->status == SWITCH_DONE ||
                 (from && taps_owns(api->taps, from) &&
                  switch_uploads(from, a, s->id.user, s->id.bucket, &open, NULL) == 0);

    json_out_key(w, "uploads");
    if (known)
        json_out_u64(w, open.count);
    else
        json_out_null(w);
    json_out_key(w, "open_uploads");
    json_out_open(w, '[');
    for (size_t i = 0; i < open.count && i < UPLOADS_SHOWN; i++)
        write_upload(w, api, a, &open.uploads[i]);
    json_out_close(w, ']');
}

/* How long uploads are still waited for; null: it does not wait for any now. */
static void write_until(struct json_out *w, const struct bucket_switch *s)
{
    int64_t until = switch_uploads_until(s), left = until - clock_wall_ms();

    write_time(w, "waits_until", until);
    json_out_key(w, "waits_left_ms");
    if (until)
        json_out_i64(w, left > 0 ? left : 0);
    else
        json_out_null(w);
}

/* What its task last found that it has to wait for; empty: it runs, or has nothing left to do. */
static struct str waits_for(struct api *api, struct arena *a, const struct bucket_switch *s)
{
    struct replication_id id = s->id;
    struct task_info info = {0};

    if (s->aborted_ms) { /* its task is of the way that it went at first */
        id.from = s->id.to;
        id.to = s->id.from;
    }
    struct task t = switch_task(a, &id, switch_is_live(s));
    if (s->status == SWITCH_DONE || queue_task(api->o.queue, a, t.queue, t.id, &info, NULL) < 0)
        return STR_EMPTY;
    return info.task.error;
}

static int write_switch(struct json_out *w, struct api *api, struct arena *a,
                        const struct bucket_switch *s, bool whole, struct err *err)
{
    struct str *lines = NULL;
    size_t count = 0;
    int code =
        switch_history(api->o.replications, a, s->id.user, s->id.bucket, &lines, &count, err);

    if (code < 0)
        return code;
    write_names(w, api, a, s);
    json_out_member_str(w, "state", str_z(state_of(s)));
    write_options(w, &s->o);
    write_time(w, "created", s->created_ms);
    write_time(w, "started", s->started_ms);
    write_time(w, "done", s->done_ms);
    write_time(w, "aborted", s->aborted_ms);
    json_out_member_i64(w, "lag", lag_of(api, a, s));
    json_out_member_str(w, "last", count ? lines[count - 1] : STR_EMPTY);
    if (!whole)
        return 0;
    write_uploads(w, api, a, s);
    write_until(w, s);
    json_out_member_str(w, "waits_for", waits_for(api, a, s));
    json_out_key(w, "history");
    json_out_open(w, '[');
    for (size_t i = 0; i < count; i++)
        json_out_str(w, lines[i]);
    json_out_close(w, ']');
    return 0;
}

/* --- looking --- */

static bool passes(struct str wanted, struct str value)
{
    return !wanted.len || str_eq(wanted, value);
}

static int write_list(struct json_out *w, struct http_request *req, struct api *api,
                      struct err *err)
{
    struct arena *a = http_request_arena(req);
    struct bucket_switch *list = NULL;
    struct str user = {0}, bucket = {0};
    struct user known;
    size_t count = 0;
    int code = api_query(req, "user", &user, err);

    if (code == 0)
        code = api_query(req, "bucket", &bucket, err);
    if (code == 0 && user.len) {
        code = users_by_name(api->o.users, a, user, &known, err);
        user = code == 0 ? known.id : user;
    }
    if (code == 0)
        code = switch_list(api->o.replications, a, &list, &count, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        if (!passes(user, list[i].id.user) || !passes(bucket, list[i].id.bucket))
            continue;
        json_out_open(w, '{');
        code = write_switch(w, api, a, &list[i], false, err);
        json_out_close(w, '}');
    }
    return code;
}

int api_get_switches(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api_json j;
    struct err err = {0};

    (void)params;
    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = api_replications_on(ctx, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "switches");
    json_out_open(&j.w, '[');
    if (code == 0)
        code = write_list(&j.w, req, ctx, &err);
    json_out_close(&j.w, ']');
    if (code == 0)
        return api_json_send(req, 200, &j);
    api_json_drop(&j);
    return api_send_failure(req, code, &err);
}

static int unescaped(struct arena *a, struct str part, struct str *out)
{
    struct buf text = {0};
    int code = store_key_unescape(&text, part);

    *out = arena_str(a, buf_str(&text));
    buf_release(&text);
    return code;
}

/* "<user id>:<bucket>", escaped. */
static int read_id(struct api *api, struct http_request *req, const struct route_params *params,
                   struct str *user, struct str *bucket, struct err *err)
{
    struct arena *a = http_request_arena(req);
    struct str text = route_param(params, "id"), one, two;
    int code = api_replications_on(api, err);

    if (code < 0)
        return code;
    if (!str_cut(text, ':', &one, &two) || unescaped(a, one, user) < 0 ||
        unescaped(a, two, bucket) < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no switch " STR_FMT, STR_ARG(text));
    return 0;
}

int api_get_switch(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct arena *a = http_request_arena(req);
    struct bucket_switch s = {0};
    struct str user, bucket;
    struct api_json j;
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = read_id(api, req, params, &user, &bucket, &err);
    if (code == 0)
        code = switch_read(api->o.replications, a, user, bucket, &s, &err);
    api_json_begin(&j);
    if (code == 0)
        code = write_switch(&j.w, api, a, &s, true, &err);
    if (code == 0)
        return api_json_send(req, 200, &j);
    api_json_drop(&j);
    return api_send_failure(req, code, &err);
}

/* --- planning --- */

static int read_number(const json_t *object, const char *name, int64_t max, int64_t *out,
                       struct err *err)
{
    const json_t *value = json_object_get(object, name);

    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > max)
        return err_set(err, ERR_INVALID, "%s is a number from 0 to %lld", name, (long long)max);
    *out = json_integer_value(value);
    return 0;
}

static int read_bools(const json_t *object, struct switch_options *o, bool *downtime,
                      struct err *err)
{
    struct {
        const char *name;
        bool *to;
    } rows[] = {{"downtime", downtime},
                {"on_init_done", &o->on_init_done},
                {"skip_check", &o->skip_check},
                {"continue", &o->continue_replication}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const json_t *value = json_object_get(object, rows[i].name);
        if (value && !json_is_boolean(value))
            return err_set(err, ERR_INVALID, "%s is true or false", rows[i].name);
        if (value)
            *rows[i].to = json_is_true(value);
    }
    return 0;
}

/* It must be to come, so that nothing begins by a slip. */
static int read_times(const json_t *object, struct arena *a, struct switch_options *o,
                      struct err *err)
{
    struct str start_at = json_get_str(object, "start_at", STR_EMPTY);
    struct cron cron;
    int64_t next;
    int code = 0;

    o->cron = arena_str(a, json_get_str(object, "cron", STR_EMPTY));
    if (start_at.len && clock_parse_iso(start_at, &o->start_at_ms) < 0)
        return err_set(err, ERR_INVALID,
                       "start_at is a time such as 2026-01-31T03:00:00Z, not '" STR_FMT "'",
                       STR_ARG(start_at));
    if (start_at.len && o->start_at_ms <= clock_wall_ms())
        return err_set(err, ERR_INVALID, "start_at is over");
    if (o->cron.len)
        code = cron_parse(&cron, o->cron, err);
    if (code == 0 && o->cron.len && cron_next(&cron, clock_wall_ms(), &next) < 0)
        code = err_set(err, ERR_INVALID, "the time of the cron line never comes");
    return code;
}

static int read_options(const json_t *object, struct arena *a, struct switch_options *o,
                        struct err *err)
{
    static const char *const strings[] = {"replication", "start_at", "cron", NULL};
    bool downtime = false;
    int64_t ttl_ms = -1, duration_ms = 0;
    int code = api_check_strings(object, strings, err);

    if (code == 0)
        code = read_bools(object, o, &downtime, err);
    if (code == 0)
        code = read_times(object, a, o, err);
    if (code == 0)
        code = read_number(object, "multipart_ttl_ms", DURATION_MAX_MS, &ttl_ms, err);
    if (code == 0)
        code = read_number(object, "max_duration_ms", DURATION_MAX_MS, &duration_ms, err);
    if (code == 0)
        code = read_number(object, "max_event_lag", LAG_MAX, &o->max_event_lag, err);
    if (code == 0 && !downtime && ttl_ms == 0)
        code = err_set(err, ERR_INVALID, "multipart_ttl_ms is more than 0 without downtime");
    o->max_duration_ns = duration_ms * NS_PER_MS;
    if (ttl_ms < 0) /* S11 */
        ttl_ms = duration_ms && duration_ms < TTL_MS ? duration_ms : TTL_MS;
    *(downtime ? &o->uploads_ttl_ns : &o->multipart_ttl_ns) = ttl_ms * NS_PER_MS;
    return code;
}

static int plan(struct api *api, struct arena *a, struct str name, const struct switch_options *o,
                struct bucket_switch *out, struct err *err)
{
    struct replication p = {0};
    int code = api_find_replication(api, a, name, &p, err);

    if (code < 0)
        return code;
    struct task t = switch_task(a, &p.id, o->multipart_ttl_ns > 0);
    code = arena_error(a);
    if (code < 0)
        return err_code(err, code);
    code = switch_plan(api->o.replications, &p.id, o, &t, routes_main_name(api->o.routes), err);
    return code < 0 ? code : switch_read(api->o.replications, a, p.id.user, p.id.bucket, out, err);
}

int api_post_switch(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct arena *a = http_request_arena(req);
    struct switch_options o = {0};
    struct bucket_switch s = {0};
    struct str name = STR_EMPTY;
    struct api_json j;
    struct err err = {0};
    json_t *object = NULL;
    int code;

    (void)params;
    if (!api_read_json(req, &object, &code))
        return code;
    code = read_options(object, a, &o, &err);
    if (code == 0)
        name = arena_str(a, json_get_str(object, "replication", STR_EMPTY));
    json_decref(object);
    if (code == 0)
        code = plan(ctx, a, name, &o, &s, &err);
    api_json_begin(&j);
    if (code == 0)
        code = write_switch(&j.w, ctx, a, &s, true, &err);
    if (code < 0) {
        api_json_drop(&j);
        return api_send_failure(req, code, &err);
    }
    log_info(http_request_log(req), "switch.planned", log_s("replication", s.name));
    return api_json_send(req, 201, &j);
}

/* --- changing --- */

static int set_ttl(struct api_call *c, struct err *err)
{
    struct str user, bucket;
    int64_t ttl_ms = -1;
    int code = read_id(c->api, c->req, c->params, &user, &bucket, err);

    if (code == 0)
        code = read_number(c->body, "multipart_ttl_ms", DURATION_MAX_MS, &ttl_ms, err);
    if (code == 0 && ttl_ms < 0)
        code = err_set(err, ERR_INVALID, "multipart_ttl_ms is what can be changed: name it");
    if (code == 0)
        code = switch_set_ttl(c->api->o.replications, user, bucket, ttl_ms * NS_PER_MS, err);
    if (code == 0)
        log_info(http_request_log(c->req), "switch.changed",
                 log_s("switch", route_param(c->params, "id")), log_i("multipart_ttl_ms", ttl_ms));
    return code;
}

API_ROUTE(api_put_switch, set_ttl, 204, .takes_body = true)

int api_delete_switch(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct str user, bucket;
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = read_id(api, req, params, &user, &bucket, &err);
    if (code == 0)
        code = switch_abort(api->o.replications, user, bucket, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "switch.given_up", log_s("switch", route_param(params, "id")));
    return api_send_done(req);
}
