/* Lists, plans, changes and aborts switches of buckets. */
#include "room/owners.h"
#include "replica/rest/rest.h"
#include "base/clock.h"
#include "coord/switch.h"
#include "replica/cron.h"
#include "replica/switch/switch.h"
#include "replica/tap/tap.h"
#include "route/route.h"

enum {
    TTL_MS = MS_PER_HOUR,                 /* how long a switch waits for uploads by default */
    DURATION_MAX_MS = 1000 * 1000 * 1000, /* about 11 days */
    LAG_MAX = 1000 * 1000 * 1000,
    UPLOADS_SHOWN = 100,
};

static rest_fn switch_list_call, switch_plan_call, switch_show, switch_set_ttl_call,
    switch_give_up_call;

#define SWITCH_FIELDS                                                                              \
    {"id", "The switch's id."}, {"replication", "The id of its replication."},                     \
        {"user", "The user's name; empty: the user was removed."}, {"user_id", "The user's id."},  \
        {"bucket", "The bucket."}, {"from", "The storage that is left."},                          \
        {"to", "The storage that becomes the main one of the bucket."},                            \
        {"state", "Where the switch is."}, {"downtime", "Is it with downtime?", REST_BOOLEAN},     \
        {"multipart_ttl_ms", "How long open uploads are waited for.", REST_INTEGER},               \
        {"on_init_done", "Does it begin when the initial copy is complete?", REST_BOOLEAN},        \
        {"cron", "When it may begin, as a cron line; empty: any time."},                           \
        {"start_at", "When it may begin.", REST_TIME},                                             \
        {"max_duration_ms", "How long the downtime may take; 0: any time.", REST_INTEGER},         \
        {"max_event_lag", "It begins when at most so many changes are not copied.", REST_INTEGER}, \
        {"skip_check", "Are both sides not compared before?", REST_BOOLEAN},                       \
        {"continue", "Is the old storage kept as a copy afterwards?", REST_BOOLEAN},               \
        {"created", "When it was planned.", REST_TIME}, {"started", "When it began.", REST_TIME},  \
        {"done", "When it was done.", REST_TIME}, {"aborted", "When it was given up.", REST_TIME}, \
        {"lag", "Changes that are not copied yet.", REST_INTEGER},                                 \
    {                                                                                              \
        "last", "The last line of its history."                                                    \
    }

static const struct rest_field switch_path[] = {{"id", "The switch's id."}, {0}};

static const struct rest_field switch_fields[] = {
    SWITCH_FIELDS,
    {"uploads",
     "Uploads that are open on the storage that is left, 1000 at most; null: the storage cannot be "
     "asked.",
     REST_INTEGER, .nullable = true},
    {"open_uploads", "The first 100 of them.", REST_OBJECTS,
     .members = REST_FIELDS({"key", "The object's key."}, {"upload_id", "The upload's id."},
                            {"initiated", "When it was begun.", REST_TIME},
                            {"initiator", "Who began it."})},
    {"waits_until", "How long uploads are still waited for.", REST_TIME},
    {"waits_left_ms", "The same in milliseconds from now; null: none is waited for now.",
     REST_INTEGER, .nullable = true},
    {"waits_for", "What the switch waits for; empty: nothing."},
    {"history", "What happened, a line each.", REST_STRINGS},
    {0},
};

static const struct rest_row switch_rows[] = {
    {HTTP_GET, "/api/v1/switches", REST_ADMIN,
     "Switches of buckets to another storage, and where each is.", switch_list_call,
     .needs = replica_needs,
     .query = REST_FIELDS({"user", "Only those of this user."}, {"bucket", "Only of this bucket."}),
     .list = "switches", .by_place = true, .items = REST_FIELDS(SWITCH_FIELDS)},
    {HTTP_POST, "/api/v1/switches", REST_ADMIN,
     "Switch a bucket to the destination of its replication. A switch of the bucket that has not "
     "begun gets these options.",
     switch_plan_call, .status = 201, .needs = replica_needs,
     .body = REST_FIELDS(
         {"replication", "The id of the replication.", .required = true},
         {"multipart_ttl_ms",
          "How long open uploads are waited for, in milliseconds; an hour when left out.",
          REST_INTEGER, .min = 0, .max = DURATION_MAX_MS},
         {"continue", "Keep the old storage as a copy afterwards?", REST_BOOLEAN},
         {"downtime", "Refuse requests while the bucket is switched?", REST_BOOLEAN},
         {"start_at", "With downtime: when to begin, such as 2026-01-31T03:00:00Z.", REST_TIME},
         {"cron", "With downtime: when it may begin, as a cron line in UTC."},
         {"on_init_done", "With downtime: begin when the initial copy is complete?", REST_BOOLEAN},
         {"max_duration_ms", "With downtime: give up after so many milliseconds; 0: never.",
          REST_INTEGER, .min = 0, .max = DURATION_MAX_MS},
         {"max_event_lag", "With downtime: begin when at most so many changes are not copied.",
          REST_INTEGER, .min = 0, .max = LAG_MAX},
         {"skip_check", "With downtime: do not compare both sides before?", REST_BOOLEAN}),
     .answer = switch_fields},
    {HTTP_GET, "/api/v1/switches/{id}", REST_ADMIN,
     "One switch, with its history, what it waits for and the uploads that are open.", switch_show,
     .needs = replica_needs, .in_path = switch_path, .answer = switch_fields},
    {HTTP_PUT, "/api/v1/switches/{id}", REST_ADMIN,
     "Change how long open uploads are waited for, also while they are.", switch_set_ttl_call,
     .status = 204, .needs = replica_needs, .in_path = switch_path,
     .body = REST_FIELDS({"multipart_ttl_ms", "Milliseconds; 0: not at all.", REST_INTEGER,
                          .required = true, .min = 0, .max = DURATION_MAX_MS})},
    {HTTP_DELETE, "/api/v1/switches/{id}", REST_ADMIN,
     "Give up a switch: without downtime the bucket goes back and loses nothing. A switch that has "
     "not begun or has ended is forgotten.",
     switch_give_up_call, .status = 204, .needs = replica_needs, .in_path = switch_path},
};
const struct rest_table replica_switch_routes = {REST_ROWS(switch_rows)};

/* --- writing --- */

static const char *switch_state(const struct bucket_switch *s)
{
    return s->aborted_ms ? "going_back" : switch_status_names[s->status];
}

static void switch_write_names(struct json_out *w, const struct replica_room *room, struct arena *a,
                               const struct bucket_switch *s)
{
    struct user user = {0};
    struct buf id = {0};

    if (users_by_id(room->services->users, a, s->id.user, &user, NULL) < 0)
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

static void switch_write_options(struct json_out *w, const struct switch_options *o)
{
    bool downtime = o->multipart_ttl_ns == 0 || o->uploads_ttl_ns > 0;
    int64_t ttl_ns = downtime ? o->uploads_ttl_ns : o->multipart_ttl_ns;

    json_out_member_bool(w, "downtime", downtime);
    json_out_member_i64(w, "multipart_ttl_ms", ttl_ns / NS_PER_MS);
    json_out_member_bool(w, "on_init_done", o->on_init_done);
    json_out_member_str(w, "cron", o->cron);
    rest_time(w, "start_at", o->start_at_ms);
    json_out_member_i64(w, "max_duration_ms", o->max_duration_ns / NS_PER_MS);
    json_out_member_i64(w, "max_event_lag", o->max_event_lag);
    json_out_member_bool(w, "skip_check", o->skip_check);
    json_out_member_bool(w, "continue", o->continue_replication);
}

/* Returns the number of changes that are missing on the side to which the route leads or will
 * lead. */
static int64_t switch_lag(const struct replica_room *room, struct arena *a,
                          const struct bucket_switch *s)
{
    struct replication_status status = {0};
    struct replication_look look;
    int64_t lag = 0;

    if (replication_look_begin(&look, room, a, NULL) == 0 &&
        replication_look_at(&look, &s->id, &status, &lag, NULL) < 0)
        lag = 0;
    replication_look_end(&look);
    return lag;
}

/* Writes one upload. Its initiator is a user of weir, or else a name that only the storage
 * knows. */
static void switch_write_upload(struct json_out *w, const struct replica_room *room,
                                struct arena *a, const struct upload_info *u)
{
    struct str by = u->initiator.len ? u->initiator : u->meta.owner;

    json_out_open(w, '{');
    json_out_member_str(w, "key", u->key);
    json_out_member_str(w, "upload_id", u->id);
    rest_time(w, "initiated", u->started_ms);
    json_out_member_str(w, "initiator", by.len ? owners_user_name(room->services, a, by) : by);
    json_out_close(w, '}');
}

/* Writes the uploads that are open on the storage that the switch leaves. Either the switch waits
 * for them, or their clients must begin them again. A switch that is done waits for no uploads, and
 * shows none. */
static void switch_write_uploads(struct json_out *w, const struct replica_room *room,
                                 struct arena *a, const struct bucket_switch *s)
{
    struct storage *from = routes_storage(room->services->routes, s->id.from);
    struct upload_list open = {0};
    bool known = s->status == SWITCH_DONE ||
                 (from && taps_owns(room->taps, from) &&
                  switch_uploads(from, a, s->id.user, s->id.bucket, &open, NULL) == 0);

    rest_known_i64(w, "uploads", known, (int64_t)open.count);
    json_out_key(w, "open_uploads");
    json_out_open(w, '[');
    for (size_t i = 0; i < open.count && i < UPLOADS_SHOWN; i++)
        switch_write_upload(w, room, a, &open.uploads[i]);
    json_out_close(w, ']');
}

static void switch_write_until(struct json_out *w, const struct bucket_switch *s)
{
    int64_t until = switch_uploads_until(s), left = until - clock_wall_ms();

    rest_time(w, "waits_until", until);
    rest_known_i64(w, "waits_left_ms", until != 0, left > 0 ? left : 0);
}

/* Returns the thing that the switch's task last had to wait for; empty: the task runs, or has
 * nothing left to do. */
static struct str switch_waits_for(const struct replica_room *room, struct arena *a,
                                   const struct bucket_switch *s)
{
    struct replication_id id = s->id;
    struct task_info info = {0};

    if (s->aborted_ms) { /* the task's id still has the direction from before the abort */
        id.from = s->id.to;
        id.to = s->id.from;
    }
    struct task t = switch_task(a, &id, switch_is_live(s));
    if (s->status == SWITCH_DONE ||
        queue_task(room->services->queue, a, t.queue, t.id, &info, NULL) < 0)
        return STR_EMPTY;
    return info.task.error;
}

static int switch_write(struct json_out *w, const struct replica_room *room, struct arena *a,
                        const struct bucket_switch *s, bool whole, struct err *err)
{
    struct str *lines = NULL;
    size_t count = 0;
    int code = switch_history(room->services->replications, a, s->id.user, s->id.bucket, &lines,
                              &count, err);

    if (code < 0)
        return code;
    switch_write_names(w, room, a, s);
    json_out_member_str(w, "state", str_z(switch_state(s)));
    switch_write_options(w, &s->o);
    rest_time(w, "created", s->created_ms);
    rest_time(w, "started", s->started_ms);
    rest_time(w, "done", s->done_ms);
    rest_time(w, "aborted", s->aborted_ms);
    json_out_member_i64(w, "lag", switch_lag(room, a, s));
    json_out_member_str(w, "last", count ? lines[count - 1] : STR_EMPTY);
    if (!whole)
        return 0;
    switch_write_uploads(w, room, a, s);
    switch_write_until(w, s);
    json_out_member_str(w, "waits_for", switch_waits_for(room, a, s));
    json_out_key(w, "history");
    json_out_open(w, '[');
    for (size_t i = 0; i < count; i++)
        json_out_str(w, lines[i]);
    json_out_close(w, ']');
    return 0;
}

/* --- listing and showing --- */

static bool switch_passes(struct str wanted, struct str value)
{
    return !wanted.len || str_eq(wanted, value);
}

static int switch_list_call(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct bucket_switch *list = NULL;
    struct str user = rest_text(c, "user");
    struct user known;
    size_t count = 0;
    int code = user.len ? users_by_name(room->services->users, c->arena, user, &known, err) : 0;

    if (code == 0 && user.len)
        user = known.id;
    if (code == 0)
        code = switch_list(room->services->replications, c->arena, &list, &count, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        if (!switch_passes(user, list[i].id.user) ||
            !switch_passes(rest_text(c, "bucket"), list[i].id.bucket) || !rest_item(c, STR_EMPTY))
            continue;
        code = switch_write(c->w, room, c->arena, &list[i], false, err);
        rest_item_end(c);
    }
    return code;
}

static int switch_unescape(struct arena *a, struct str part, struct str *out)
{
    struct buf text = {0};
    int code = store_key_unescape(&text, part);

    *out = arena_str(a, buf_str(&text));
    buf_release(&text);
    return code;
}

/* Reads the switch's id from the call: "<user id>:<bucket>", each part escaped. */
static int switch_call_id(const struct rest_call *c, struct str *user, struct str *bucket,
                          struct err *err)
{
    struct str text = rest_text(c, "id"), one, two;

    if (!str_cut(text, ':', &one, &two) || switch_unescape(c->arena, one, user) < 0 ||
        switch_unescape(c->arena, two, bucket) < 0)
        return err_set(err, ERR_NOT_FOUND, "there is no switch " STR_FMT, STR_ARG(text));
    return 0;
}

static int switch_show(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct bucket_switch s = {0};
    struct str user, bucket;
    int code = switch_call_id(c, &user, &bucket, err);

    if (code == 0)
        code = switch_read(room->services->replications, c->arena, user, bucket, &s, err);
    return code < 0 ? code : switch_write(c->w, room, c->arena, &s, true, err);
}

/* --- planning --- */

/* Reads the times of the switch. The beginning must be in the future, so that a typing error does
 * not begin a switch at once. */
static int switch_read_times(struct switch_options *o, const struct rest_call *c, struct err *err)
{
    struct str start_at = rest_text(c, "start_at");
    struct cron cron;
    int64_t next;
    int code = 0;

    o->cron = rest_text(c, "cron");
    if (start_at.len && clock_parse_iso(start_at, &o->start_at_ms) < 0)
        return err_set(err, ERR_INVALID,
                       "start_at must be a time such as 2026-01-31T03:00:00Z, not '" STR_FMT "'",
                       STR_ARG(start_at));
    if (start_at.len && o->start_at_ms <= clock_wall_ms())
        return err_set(err, ERR_INVALID, "start_at is in the past");
    if (o->cron.len)
        code = cron_parse(&cron, o->cron, err);
    if (code == 0 && o->cron.len && cron_next(&cron, clock_wall_ms(), &next) < 0)
        code = err_set(err, ERR_INVALID, "the time of the cron line never comes");
    return code;
}

static int switch_read_options(struct switch_options *o, const struct rest_call *c, struct err *err)
{
    bool downtime = rest_bool(c, "downtime");
    int64_t ttl_ms = rest_integer(c, "multipart_ttl_ms");
    int64_t duration_ms = rest_integer(c, "max_duration_ms");

    o->on_init_done = rest_bool(c, "on_init_done");
    o->skip_check = rest_bool(c, "skip_check");
    o->continue_replication = rest_bool(c, "continue");
    o->max_event_lag = rest_integer(c, "max_event_lag");
    o->max_duration_ns = duration_ms * NS_PER_MS;
    if (!downtime && rest_given(c, "multipart_ttl_ms") && ttl_ms == 0)
        return err_set(err, ERR_INVALID, "multipart_ttl_ms must be more than 0 without downtime");
    /* The default is an hour, or the maximal duration if that is shorter (docs/replication.md,
     * S11). */
    if (!rest_given(c, "multipart_ttl_ms"))
        ttl_ms = duration_ms && duration_ms < TTL_MS ? duration_ms : TTL_MS;
    *(downtime ? &o->uploads_ttl_ns : &o->multipart_ttl_ns) = ttl_ms * NS_PER_MS;
    return switch_read_times(o, c, err);
}

static int switch_plan_one(const struct replica_room *room, struct arena *a, struct str name,
                           const struct switch_options *o, struct bucket_switch *out,
                           struct err *err)
{
    struct replication p = {0};
    int code = replication_by_text(room, a, name, &p, err);

    if (code < 0)
        return code;
    struct task t = switch_task(a, &p.id, o->multipart_ttl_ns > 0);
    code = arena_error(a);
    if (code < 0)
        return err_code(err, code);
    code = switch_plan(room->services->replications, &p.id, o, &t,
                       routes_main_name(room->services->routes), err);
    return code < 0
               ? code
               : switch_read(room->services->replications, a, p.id.user, p.id.bucket, out, err);
}

static int switch_plan_call(struct rest_call *c, struct err *err)
{
    struct switch_options o = {0};
    struct bucket_switch s = {0};
    int code = switch_read_options(&o, c, err);

    if (code == 0)
        code = switch_plan_one(c->ctx, c->arena, rest_text(c, "replication"), &o, &s, err);
    if (code == 0)
        code = switch_write(c->w, c->ctx, c->arena, &s, true, err);
    if (code == 0)
        log_info(http_request_log(c->req), "switch.planned", log_s("replication", s.name));
    return code;
}

/* --- changing --- */

static int switch_set_ttl_call(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct str user, bucket;
    int64_t ttl_ms = rest_integer(c, "multipart_ttl_ms");
    int code = switch_call_id(c, &user, &bucket, err);

    if (code == 0)
        code = switch_set_ttl(room->services->replications, user, bucket, ttl_ms * NS_PER_MS, err);
    if (code == 0)
        log_info(http_request_log(c->req), "switch.changed", log_s("switch", rest_text(c, "id")),
                 log_i("multipart_ttl_ms", ttl_ms));
    return code;
}

static int switch_give_up_call(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct str user, bucket;
    int code = switch_call_id(c, &user, &bucket, err);

    if (code == 0)
        code = switch_abort(room->services->replications, user, bucket, err);
    if (code == 0)
        log_info(http_request_log(c->req), "switch.given_up", log_s("switch", rest_text(c, "id")));
    return code;
}
