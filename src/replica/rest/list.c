/* Shows replications: all in a list, or one with the objects that failed. */
#include "replica/rest/rest.h"
#include "base/clock.h"
#include "replica/first.h"
#include "route/route.h"

enum {
    SCAN_PAGE = 500,                   /* number of archived tasks that are read at once */
    FAILED_MAX = 1000,                 /* most failed tasks that are shown for one replication */
    SCAN_ARENA_MAX = 64 * 1024 * 1024, /* most bytes of one page of tasks */
    NAME_MAX_BYTES = 16 * 1024,        /* most bytes of an id */
};

static rest_fn replication_list_call, replication_show_call;

static const struct rest_row replication_rows[] = {
    {HTTP_GET, "/api/v1/replications", REST_ADMIN,
     "Replications and users' policies, with how far each is.", replication_list_call,
     .needs = replica_needs,
     .query = REST_FIELDS({"user", "Only those of this user."}, {"bucket", "Only of this bucket."},
                          {"from", "Only from this storage."}, {"to", "Only to this storage."},
                          {"to_bucket", "Only to a bucket of this name."}),
     .list = "replications", .by_place = true, .items = REST_FIELDS(REPLICATION_FIELDS)},
    {HTTP_GET, "/api/v1/replications/{id}", REST_ADMIN,
     "One replication, with the objects that could not be copied and why.", replication_show_call,
     .needs = replica_needs, .in_path = REST_FIELDS({"id", "The replication's id."}),
     .answer =
         REST_FIELDS(REPLICATION_FIELDS,
                     {"failed", "Tasks that failed for good.", REST_OBJECTS,
                      .members = REST_FIELDS(
                          {"object", "The object's key."}, {"type", "The task's type."},
                          {"error", "Why it failed."}, {"failed_at", "When it failed.", REST_TIME},
                          {"queue", "The task's queue."}, {"task", "The task's id."})},
                     {"failed_more", "Are there more than the 1000 shown?", REST_BOOLEAN})},
};
const struct rest_table replica_list_routes = {REST_ROWS(replication_rows)};

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

int replication_id_read(struct replication_id *out, struct arena *a, struct str text,
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

/* Returns whether clients write to the source and nobody writes to the destination
 * (docs/forward.md, B5). The result is also true while a switch has blocked the bucket (ERR_BUSY),
 * because nobody writes then. */
static bool replication_is_routed(const struct replica_room *room, const struct replication_id *id)
{
    struct storage *route = NULL;
    int code = route_storage(room->services->routes, id->user, id->bucket, &route, NULL);

    if (code == ERR_BUSY)
        return true;
    return code == 0 && str_eq(route->name, id->from) &&
           (id->to_bucket.len ||
            route_is_copy(room->services->routes, id->to, id->bucket, id->user));
}

static const char *replication_state(const struct replication_status *s, int64_t lag, bool routed)
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

/* The speed of the initial copy, averaged over the time since its beginning, including pauses. */
struct pace {
    double objects, bytes; /* number per second */
    int64_t left_s;        /* seconds until the copy is complete; -1: not known */
};

static struct pace replication_pace(const struct replication_status *s, int64_t now_ms)
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

static void replication_write_status(struct json_out *w, const struct replication_status *s,
                                     int64_t lag, bool routed)
{
    struct pace pace = replication_pace(s, clock_wall_ms());

    json_out_member_str(w, "state", str_z(replication_state(s, lag, routed)));
    rest_time(w, "created", s->created_ms);
    json_out_member_bool(w, "paused", s->paused);
    json_out_member_bool(w, "archived", s->archived);
    json_out_member_bool(w, "listed_all", s->listing_started);
    json_out_member_bool(w, "init_done", replication_init_done(s));
    rest_time(w, "init_done_at", s->init_done_ms);
    json_out_member_i64(w, "objects", s->listed);
    json_out_member_i64(w, "objects_done", s->done);
    json_out_member_i64(w, "objects_failed", s->failed);
    json_out_member_i64(w, "bytes", s->bytes_listed);
    json_out_member_i64(w, "bytes_done", s->bytes_done);
    json_out_member_f64(w, "objects_per_s", pace.objects);
    json_out_member_f64(w, "bytes_per_s", pace.bytes);
    rest_known_i64(w, "left_s", pace.left_s >= 0, pace.left_s);
    json_out_member_i64(w, "events", s->events);
    json_out_member_i64(w, "events_done", s->events_done);
    json_out_member_i64(w, "lag", lag);
    rest_time(w, "last_change", s->emitted_ms);
    rest_time(w, "last_done", s->processed_ms);
}

/* Writes the names of the replication's user, bucket and storages. The user's name is empty if the
 * user was removed. */
static void replication_write_names(struct json_out *w, const struct replica_room *room,
                                    struct arena *a, const struct replication *p)
{
    struct user user = {0};
    struct buf id = {0};

    if (users_by_id(room->services->users, a, p->id.user, &user, NULL) < 0)
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

int replication_write(struct json_out *w, struct replication_look *l, const struct replication *p,
                      struct err *err)
{
    struct replication_status status = {0};
    int64_t lag = 0;
    int code = p->id.bucket.len ? replication_look_at(l, &p->id, &status, &lag, err) : 0;

    if (code < 0)
        return code;
    replication_write_names(w, l->room, l->a, p);
    if (p->id.bucket.len)
        replication_write_status(w, &status, lag, replication_is_routed(l->room, &p->id));
    else
        json_out_member_str(w, "state", STR("policy"));
    return 0;
}

/* --- listing and showing --- */

int replica_needs(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;

    return services_need_replication(room->services, err);
}

/* The filters of the query. An empty member matches all replications. */
struct replication_filter {
    struct str user, bucket, from, to, to_bucket;
};

static int filter_read(struct replication_filter *out, const struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct user user;

    *out = (struct replication_filter){rest_text(c, "user"), rest_text(c, "bucket"),
                                       rest_text(c, "from"), rest_text(c, "to"),
                                       rest_text(c, "to_bucket")};
    if (!out->user.len)
        return 0;
    int code = users_by_name(room->services->users, c->arena, out->user, &user, err);
    if (code == 0)
        out->user = user.id;
    return code;
}

static bool filter_passes(const struct replication_filter *f, const struct replication_id *id)
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

/* Adds one replication to the list. A replication that was removed meanwhile is left out. */
static int replication_offer(struct rest_call *c, struct replication_look *look,
                             const struct replication *p, struct err *err)
{
    struct buf text = {0};
    struct json_out w;

    if (!rest_takes(c, STR_EMPTY))
        return 0;
    json_out_init(&w, &text);
    json_out_open(&w, '{');
    int code = replication_write(&w, look, p, err);
    json_out_close(&w, '}');
    if (code == 0)
        json_out_raw(c->w, buf_str(&text));
    buf_release(&text);
    return code == ERR_NOT_FOUND ? 0 : code;
}

static int replication_list_call(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct replication_filter filter;
    struct replication_view *view = NULL;
    const struct replication *const *all;
    struct arena a = {0};
    struct replication_look look;
    int code = filter_read(&filter, c, err);

    if (code < 0)
        return code;
    code = replication_look_begin(&look, room, &a, err);
    if (code == 0)
        code = replications_view(room->services->replications, &view, err);
    size_t count = code == 0 ? replication_view_all(view, &all) : 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        if (filter_passes(&filter, &all[i]->id))
            code = replication_offer(c, &look, all[i], err);
        arena_reset(&a);
    }
    replication_look_end(&look);
    arena_release(&a);
    replication_view_unref(view);
    return code;
}

int replication_by_text(const struct replica_room *room, struct arena *a, struct str text,
                        struct replication *out, struct err *err)
{
    struct replication_view *view = NULL;
    const struct replication *const *all;
    int code = replication_id_read(&out->id, a, text, err);

    if (code == 0)
        code = replications_view(room->services->replications, &view, err);
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

/* --- objects that failed --- */

/* Returns whether the task with this payload belongs to the replication. */
static bool failure_is_of(const json_t *payload, const struct replication_id *id)
{
    struct replication_id other;

    return task_payload_id(&other, payload) && first_same(&other, id);
}

static void failure_write(struct json_out *w, const struct task *t, const json_t *payload)
{
    const json_t *object = json_object_get(payload, "Object");

    if (!object)
        object = json_object_get(payload, "Obj");
    json_out_open(w, '{');
    json_out_member_str(w, "object", json_get_str(object, "Name", STR_EMPTY));
    json_out_member_str(w, "type", t->type);
    json_out_member_str(w, "error", t->error);
    rest_time(w, "failed_at", t->last_failed_s * MS_PER_S);
    json_out_member_str(w, "queue", t->queue);
    json_out_member_str(w, "task", t->id);
    json_out_close(w, '}');
}

/* A search for tasks that failed for good. */
struct failures {
    const struct replica_room *room;
    const struct replication_id *id;
    struct json_out *w;
    size_t count;
    bool more;
};

static int failures_scan_page(struct failures *f, struct queue_page *page, size_t *count,
                              struct err *err)
{
    struct arena a = ARENA_INIT(SCAN_ARENA_MAX);
    struct task_info *list = NULL;
    int code = queue_tasks(f->room->services->queue, &a, page, &list, count, err);

    for (size_t i = 0; code == 0 && i < *count && !f->more; i++) {
        json_t *payload = NULL;
        if (json_read(&payload, list[i].task.payload, NULL) == 0 && failure_is_of(payload, f->id)) {
            f->more = f->count == FAILED_MAX;
            if (!f->more) {
                failure_write(f->w, &list[i].task, payload);
                f->count++;
            }
        }
        json_decref(payload);
    }
    arena_release(&a);
    return code;
}

/* Looks through all archived tasks of a queue. There are not many of them, because the queue
 * removes old ones (docs/queue.md). */
static int failures_scan_queue(struct failures *f, struct str queue, struct err *err)
{
    struct queue_page page = {queue, TASK_ARCHIVED, 0, SCAN_PAGE};
    size_t count = SCAN_PAGE;
    int code = 0;

    while (code == 0 && count > 0 && !f->more) {
        code = failures_scan_page(f, &page, &count, err);
        page.skip += count;
    }
    return code;
}

static int failures_write(struct failures *f, struct arena *a, int priority, struct err *err)
{
    const struct str queues[] = {arena_fmt(a, "events%d", priority + 1),
                                 arena_fmt(a, "migrate_obj_copy%d", priority + 1),
                                 STR("migrate_bucket_list_obj")};
    int code = 0;

    json_out_key(f->w, "failed");
    json_out_open(f->w, '[');
    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(queues); i++)
        code = failures_scan_queue(f, queues[i], err);
    json_out_close(f->w, ']');
    json_out_member_bool(f->w, "failed_more", f->more);
    return code;
}

int replication_write_one(struct json_out *w, const struct replica_room *room, struct arena *a,
                          const struct replication *p, struct err *err)
{
    struct replication_look look;
    int code = replication_look_begin(&look, room, a, err);

    if (code == 0)
        code = replication_write(w, &look, p, err);
    replication_look_end(&look);
    return code;
}

static int replication_show_call(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct replication p = {0};
    struct failures f = {.room = room, .id = &p.id, .w = c->w};
    int code = replication_by_text(room, c->arena, rest_text(c, "id"), &p, err);

    if (code == 0)
        code = replication_write_one(c->w, room, c->arena, &p, err);
    if (code == 0)
        code = failures_write(&f, c->arena, p.priority, err);
    return code;
}
