/* Replications: which there are, how far they are, and what failed. */
#include "api/replications.h"
#include "base/clock.h"
#include "replica/first.h"

enum {
    SCAN_PAGE = 500,                   /* archived tasks looked at in one go */
    FAILED_MAX = 1000,                 /* shown of one replication */
    SCAN_ARENA_MAX = 64 * 1024 * 1024, /* of one page */
    NAME_MAX_BYTES = 16 * 1024,        /* of an id */
};

/* --- ids --- */

void replication_id_write(struct buf *out, const struct replication_id *id)
{
    const struct str parts[] = {id->user, id->bucket, id->from, id->to, id->to_bucket};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (i == ARRAY_SIZE(parts) - 1 && !parts[i].len)
            break;
        if (i)
            buf_append_char(out, ':');
        store_key_part(out, parts[i]);
    }
}

int replication_id_read(struct arena *a, struct str text, struct replication_id *out,
                        struct err *err)
{
    struct str *const parts[] = {&out->user, &out->bucket, &out->from, &out->to, &out->to_bucket};
    struct buf plain = BUF_INIT(NAME_MAX_BYTES);
    struct str rest = text, part;
    size_t count = 0;
    bool more = true;
    int code = 0;

    *out = (struct replication_id){0};
    for (; more && code == 0 && count < ARRAY_SIZE(parts); count++) {
        more = str_cut(rest, ':', &part, &rest);
        buf_reset(&plain);
        code = store_key_unescape(&plain, part);
        if (code == 0)
            *parts[count] = arena_str(a, buf_str(&plain));
    }
    buf_release(&plain);
    if (code < 0 || more || count < 4 || !out->user.len || !out->from.len || !out->to.len)
        return err_set(err, ERR_NOT_FOUND, "there is no replication " STR_FMT, STR_ARG(text));
    return 0;
}

/* --- writing --- */

static void write_time(struct json_out *w, const char *name, int64_t ms)
{
    char text[CLOCK_ISO_LEN + 1] = "";

    if (ms)
        clock_iso(ms, text);
    json_out_member_str(w, name, str_z(text));
}

/* B5: clients write to the source, and nobody to the destination. While a switch has blocked the
 * bucket (ERR_BUSY), nobody writes at all. */
static bool is_routed(struct api *api, const struct replication_id *id)
{
    struct storage *route = NULL;
    int code = route_storage(api->o.routes, id->user, id->bucket, &route, NULL);

    if (code == ERR_BUSY)
        return true;
    return code == 0 && str_eq(route->name, id->from) &&
           (id->to_bucket.len || route_is_copy(api->o.routes, id->to, id->bucket, id->user));
}

static const char *state_of(const struct replication_status *s, int64_t lag, bool routed)
{
    if (s->archived)
        return "archived";
    if (s->paused)
        return "paused";
    if (replication_init_done(s) && !routed)
        return "misrouted";
    if (replication_init_done(s))
        return lag > 0 ? "behind" : "in sync";
    return s->listing_started ? "copying" : "listing";
}

/* Of the initial copy, from its beginning on; a pause counts. `left_s` -1: cannot be told. */
struct pace {
    double objects, bytes; /* a second */
    int64_t left_s;
};

static struct pace pace_of(const struct replication_status *s, int64_t now_ms)
{
    int64_t began_ms = s->resynced_ms ? s->resynced_ms : s->created_ms;
    double seconds = (double)(now_ms - began_ms) / MS_PER_S;
    struct pace p = {.left_s = -1};

    if (replication_init_done(s) || s->archived || seconds <= 0)
        return p;
    p.objects = (double)(s->done + s->failed) / seconds;
    p.bytes = (double)s->bytes_done / seconds;
    if (!s->listing_started || p.objects <= 0)
        return p;
    double left = (double)(s->listed - s->done - s->failed) / p.objects;
    if (p.bytes > 0 && (double)(s->bytes_listed - s->bytes_done) / p.bytes > left)
        left = (double)(s->bytes_listed - s->bytes_done) / p.bytes;
    p.left_s = left > 0 ? (int64_t)(left + 0.5) : 0;
    return p;
}

static void write_status(struct json_out *w, const struct replication_status *s, int64_t lag,
                         bool routed)
{
    struct pace pace = pace_of(s, clock_wall_ms());

    json_out_member_str(w, "state", str_z(state_of(s, lag, routed)));
    write_time(w, "created", s->created_ms);
    json_out_member_bool(w, "paused", s->paused);
    json_out_member_bool(w, "archived", s->archived);
    json_out_member_bool(w, "listed_all", s->listing_started);
    json_out_member_bool(w, "init_done", replication_init_done(s));
    write_time(w, "init_done_at", s->init_done_ms);
    json_out_member_i64(w, "objects", s->listed);
    json_out_member_i64(w, "objects_done", s->done);
    json_out_member_i64(w, "objects_failed", s->failed);
    json_out_member_i64(w, "bytes", s->bytes_listed);
    json_out_member_i64(w, "bytes_done", s->bytes_done);
    json_out_member_f64(w, "objects_per_s", pace.objects);
    json_out_member_f64(w, "bytes_per_s", pace.bytes);
    json_out_key(w, "left_s");
    if (pace.left_s >= 0)
        json_out_i64(w, pace.left_s);
    else
        json_out_null(w);
    json_out_member_i64(w, "events", s->events);
    json_out_member_i64(w, "events_done", s->events_done);
    json_out_member_i64(w, "lag", lag);
    write_time(w, "last_change", s->emitted_ms);
    write_time(w, "last_done", s->processed_ms);
}

/* A user that was removed since has no name any more. */
static void write_names(struct json_out *w, struct api *api, struct arena *a,
                        const struct replication *p)
{
    struct user user = {0};
    struct buf id = {0};

    if (users_by_id(api->o.users, a, p->id.user, &user, NULL) < 0)
        user.name = STR_EMPTY;
    replication_id_write(&id, &p->id);
    json_out_member_str(w, "id", buf_str(&id));
    json_out_member_str(w, "user", user.name);
    json_out_member_str(w, "user_id", p->id.user);
    json_out_member_str(w, "bucket", p->id.bucket);
    json_out_member_str(w, "from", p->id.from);
    json_out_member_str(w, "to", p->id.to);
    json_out_member_str(w, "to_bucket", p->id.to_bucket);
    json_out_member_i64(w, "priority", p->priority);
    json_out_member_str(w, "notify", p->agent_url);
    json_out_member_bool(w, "switch", p->has_switch);
    buf_release(&id);
}

int api_write_replication(struct json_out *w, struct replication_look *l,
                          const struct replication *p, struct err *err)
{
    struct replication_status status = {0};
    int64_t lag = 0;
    int code = p->id.bucket.len ? api_look(l, &p->id, &status, &lag, err) : 0;

    if (code < 0)
        return code;
    write_names(w, l->api, l->a, p);
    if (p->id.bucket.len)
        write_status(w, &status, lag, is_routed(l->api, &p->id));
    else
        json_out_member_str(w, "state", STR("policy"));
    return 0;
}

/* --- looking --- */

int api_replications_on(const struct api *api, struct err *err)
{
    if (api->o.replications)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "replication is off: it needs the four databases of the store on one server; "
                   "give store.redis.appDB, queueDB, lockDB and configDB as numbers on "
                   "store.redis.url, and start weir again");
}

/* What the query chooses by; empty: anything. */
struct filter {
    struct str user, bucket, from, to, to_bucket;
};

static int read_filter(struct http_request *req, struct api *api, struct filter *out,
                       struct err *err)
{
    struct {
        const char *name;
        struct str *to;
    } values[] = {{"user", &out->user},
                  {"bucket", &out->bucket},
                  {"from", &out->from},
                  {"to", &out->to},
                  {"to_bucket", &out->to_bucket}};
    struct user user;
    int code = 0;

    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(values); i++)
        code = api_query(req, values[i].name, values[i].to, err);
    if (code == 0 && out->user.len) {
        code = users_by_name(api->o.users, http_request_arena(req), out->user, &user, err);
        if (code == 0)
            out->user = user.id;
    }
    return code;
}

static bool passes(const struct filter *f, const struct replication_id *id)
{
    const struct str pairs[][2] = {{f->user, id->user},
                                   {f->bucket, id->bucket},
                                   {f->from, id->from},
                                   {f->to, id->to},
                                   {f->to_bucket, id->to_bucket}};

    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
        if (pairs[i][0].len && !str_eq(pairs[i][0], pairs[i][1]))
            return false;
    return true;
}

/* One that was removed since the view was made is left out. */
static int write_list(struct json_out *w, struct api *api, const struct filter *f, struct err *err)
{
    struct replication_view *view = NULL;
    const struct replication *const *all;
    struct arena a = {0};
    struct replication_look look;
    int code = api_look_begin(&look, api, &a, err);

    if (code == 0)
        code = replications_view(api->o.replications, &view, err);
    size_t count = code == 0 ? replication_view_all(view, &all) : 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        struct buf one = {0};
        struct json_out inner;
        if (!passes(f, &all[i]->id))
            continue;
        json_out_init(&inner, &one);
        json_out_open(&inner, '{');
        code = api_write_replication(&inner, &look, all[i], err);
        json_out_close(&inner, '}');
        if (code == 0)
            json_out_raw(w, buf_str(&one));
        if (code == ERR_NOT_FOUND)
            code = 0;
        buf_release(&one);
        arena_reset(&a);
    }
    api_look_end(&look);
    arena_release(&a);
    replication_view_unref(view);
    return code;
}

int api_get_replications(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct filter f = {0};
    struct api_json j;
    struct err err = {0};

    (void)params;
    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = api_replications_on(api, &err);
    if (code == 0)
        code = read_filter(req, api, &f, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "replications");
    json_out_open(&j.w, '[');
    if (code == 0)
        code = write_list(&j.w, api, &f, &err);
    json_out_close(&j.w, ']');
    if (code == 0)
        return api_json_send(req, 200, &j);
    api_json_drop(&j);
    return api_send_failure(req, code, &err);
}

int api_find_replication(struct api *api, struct arena *a, struct str text, struct replication *out,
                         struct err *err)
{
    struct replication_view *view = NULL;
    const struct replication *const *all;
    int code = api_replications_on(api, err);

    if (code == 0)
        code = replication_id_read(a, text, &out->id, err);
    if (code == 0)
        code = replications_view(api->o.replications, &view, err);
    if (code < 0)
        return code;
    size_t count = replication_view_all(view, &all);
    code = ERR_NOT_FOUND;
    for (size_t i = 0; i < count && code == ERR_NOT_FOUND; i++)
        if (first_same(&all[i]->id, &out->id)) {
            out->priority = all[i]->priority;
            out->paused = all[i]->paused;
            out->archived = all[i]->archived;
            out->agent_url = arena_str(a, all[i]->agent_url);
            out->has_switch = all[i]->has_switch;
            code = 0;
        }
    replication_view_unref(view);
    return code < 0 ? err_set(err, code, "there is no replication " STR_FMT, STR_ARG(text)) : 0;
}

/* --- what failed --- */

/* Whether the task with this payload is of the replication. */
static bool is_of(const json_t *payload, const struct replication_id *id)
{
    struct replication_id other;

    return task_payload_id(&other, payload) && first_same(&other, id);
}

static void write_failed(struct json_out *w, const struct task *t, const json_t *payload)
{
    const json_t *object = json_object_get(payload, "Object");

    if (!object)
        object = json_object_get(payload, "Obj");
    json_out_open(w, '{');
    json_out_member_str(w, "object", json_get_str(object, "Name", STR_EMPTY));
    json_out_member_str(w, "type", t->type);
    json_out_member_str(w, "error", t->error);
    write_time(w, "failed_at", t->last_failed_s * MS_PER_S);
    json_out_member_str(w, "queue", t->queue);
    json_out_member_str(w, "task", t->id);
    json_out_close(w, '}');
}

struct failures {
    struct api *api;
    const struct replication_id *id;
    struct json_out *w;
    size_t count;
    bool more;
};

static int scan_page(struct failures *f, struct queue_page *page, size_t *count, struct err *err)
{
    struct arena a = ARENA_INIT(SCAN_ARENA_MAX);
    struct task_info *list = NULL;
    int code = queue_tasks(f->api->o.queue, &a, page, &list, count, err);

    for (size_t i = 0; code == 0 && i < *count && !f->more; i++) {
        json_t *payload = NULL;
        if (json_read(&payload, list[i].task.payload, NULL) == 0 && is_of(payload, f->id)) {
            f->more = f->count == FAILED_MAX;
            if (!f->more) {
                write_failed(f->w, &list[i].task, payload);
                f->count++;
            }
        }
        json_decref(payload);
    }
    arena_release(&a);
    return code;
}

/* Archives are short (docs/queue.md), so they are looked through. */
static int scan_queue(struct failures *f, struct str queue, struct err *err)
{
    struct queue_page page = {queue, TASK_ARCHIVED, 0, SCAN_PAGE};
    size_t count = SCAN_PAGE;
    int code = 0;

    while (code == 0 && count > 0 && !f->more) {
        code = scan_page(f, &page, &count, err);
        page.skip += count;
    }
    return code;
}

static int write_failures(struct failures *f, struct arena *a, int priority, struct err *err)
{
    const struct str queues[] = {arena_fmt(a, "events%d", priority + 1),
                                 arena_fmt(a, "migrate_obj_copy%d", priority + 1),
                                 STR("migrate_bucket_list_obj")};
    int code = 0;

    json_out_key(f->w, "failed");
    json_out_open(f->w, '[');
    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(queues); i++)
        code = scan_queue(f, queues[i], err);
    json_out_close(f->w, ']');
    json_out_member_bool(f->w, "failed_more", f->more);
    return code;
}

int api_write_one(struct json_out *w, struct api *api, struct arena *a, const struct replication *p,
                  struct err *err)
{
    struct replication_look look;
    int code = api_look_begin(&look, api, a, err);

    if (code == 0)
        code = api_write_replication(w, &look, p, err);
    api_look_end(&look);
    return code;
}

int api_get_replication(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct arena *a = http_request_arena(req);
    struct replication p = {0};
    struct api_json j;
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = api_find_replication(api, a, route_param(params, "id"), &p, &err);
    api_json_begin(&j);
    struct failures f = {.api = api, .id = &p.id, .w = &j.w};
    if (code == 0)
        code = api_write_one(&j.w, api, a, &p, &err);
    if (code == 0)
        code = write_failures(&f, a, p.priority, &err);
    if (code == 0)
        return api_json_send(req, 200, &j);
    api_json_drop(&j);
    return api_send_failure(req, code, &err);
}
