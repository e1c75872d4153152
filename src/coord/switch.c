/* The transitions of switches (coord/switch.h). Each transition is one script. */
#include "coord/switch.h"
#include "base/clock.h"
#include "coord/replication_int.h"

enum {
    CALL_ARENA_MAX = 1024 * 1024,
    CRON_MAX = 256,   /* most bytes of a cron line */
    FIELDS_MAX = 18,  /* most names and values of the options, counted together */
    TEXT_MAX = 4096,  /* most bytes of a line in the history */
    COMMON_ARGS = 10, /* most arguments of a transition */
};

/* --- planning --- */

static bool switch_has_schedule(const struct switch_options *o)
{
    return o->on_init_done || o->cron.len || o->start_at_ms;
}

static int switch_check_options(const struct replication_id *id, const struct switch_options *o,
                                struct err *err)
{
    bool window = switch_has_schedule(o) || o->max_duration_ns || o->max_event_lag || o->skip_check;

    if (id->bucket.len == 0)
        return err_set(err, ERR_INVALID, "buckets are switched, not users");
    if (id->to_bucket.len && !str_eq(id->to_bucket, id->bucket))
        return err_set(err, ERR_CONFLICT, "the bucket has another name at the destination");
    if (o->cron.len && o->start_at_ms)
        return err_set(err, ERR_INVALID, "a time to start at and a cron line exclude each other");
    if (o->cron.len > CRON_MAX)
        return err_set(err, ERR_INVALID, "a cron line of %zu bytes is too long", o->cron.len);
    if (o->multipart_ttl_ns < 0 || o->uploads_ttl_ns < 0 || o->max_duration_ns < 0 ||
        o->max_event_lag < 0)
        return err_set(err, ERR_INVALID, "a duration or a lag is below zero");
    if (o->multipart_ttl_ns && (window || o->uploads_ttl_ns))
        return err_set(err, ERR_INVALID,
                       "a schedule, limits and the check are only for a switch with downtime");
    return 0;
}

struct switch_fields {
    struct arena *a;
    struct str args[FIELDS_MAX];
    size_t count;
};

static void switch_add_field(struct switch_fields *f, const char *name, struct str value)
{
    f->args[f->count++] = str_z(name);
    f->args[f->count++] = value;
}

static void switch_add_number(struct switch_fields *f, const char *name, int64_t value)
{
    if (value)
        switch_add_field(f, name, queue_number(f->a, value));
}

/* Adds fields for the options that are set. Only multipartTTL always has a field. */
static void switch_add_options(struct switch_fields *f, const struct switch_options *o)
{
    char start_at[CLOCK_ISO_LEN + 1];

    switch_add_field(f, "multipartTTL", queue_number(f->a, o->multipart_ttl_ns));
    switch_add_number(f, "uploadsTTL", o->uploads_ttl_ns);
    switch_add_number(f, "onInitDone", o->on_init_done);
    if (o->cron.len)
        switch_add_field(f, "cron", o->cron);
    clock_iso(o->start_at_ms, start_at);
    if (o->start_at_ms)
        switch_add_field(f, "startAt", arena_str(f->a, str_z(start_at)));
    switch_add_number(f, "maxDuration", o->max_duration_ns);
    switch_add_number(f, "maxEventLag", o->max_event_lag);
    switch_add_number(f, "skipBucketCheck", o->skip_check);
    switch_add_number(f, "continueReplication", o->continue_replication);
}

static size_t switch_databases(struct replications *r, struct arena *a, struct str *args)
{
    args[0] = queue_number(a, store_number(r->o.app));
    args[1] = queue_number(a, store_number(r->o.queue));
    args[2] = queue_number(a, store_number(r->o.config));
    return 3;
}

static int switch_plan_run(struct replications *r, struct arena *a, const struct id_parts *p,
                           const struct switch_options *o, const struct task *task,
                           struct str route, struct err *err)
{
    bool ready = o->multipart_ttl_ns || !switch_has_schedule(o);
    struct str args[COMMON_ARGS + 3 + FIELDS_MAX];
    struct switch_fields options = {.a = a};
    size_t n = switch_databases(r, a, args);

    args[n++] = p->user;
    args[n++] = p->bucket;
    args[n++] = p->from;
    args[n++] = p->to;
    args[n++] = route;
    args[n++] = o->multipart_ttl_ns ? STR("1") : STR("0");
    args[n++] = ready ? STR("1") : STR("0");
    int code = queue_task_args(a, task, 0, args + n, err);
    if (code < 0)
        return code;
    n += 3;
    switch_add_options(&options, o);
    memcpy(args + n, options.args, options.count * sizeof(*args));
    n += options.count;
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    code = replications_change(r, a, SCRIPT_switch_plan, &(struct store_args){args, n}, err);
    replications_wake(r, a);
    return code;
}

int switch_plan(struct replications *r, const struct replication_id *id,
                const struct switch_options *o, const struct task *task, struct str route,
                struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct id_parts p;
    int code = switch_check_options(id, o, err);

    if (code == 0)
        code = replication_parts(&a, id, &p, err);
    if (code == 0)
        code = switch_plan_run(r, &a, &p, o, task, route, err);
    arena_release(&a);
    return code;
}

/* --- transitions --- */

/* Runs the script of a transition. `more` has its arguments after the common ones. */
static int switch_move(struct replications *r, struct arena *a, enum coord_script script,
                       const struct bucket_switch *s, const struct store_args *more,
                       struct err *err)
{
    struct str args[COMMON_ARGS];
    size_t n = switch_databases(r, a, args);

    BUG_ON(n + 3 + more->argc > ARRAY_SIZE(args));
    args[n++] = replication_escaped(a, s->id.user);
    args[n++] = replication_escaped(a, s->id.bucket);
    args[n++] = s->created_at;
    for (size_t i = 0; i < more->argc; i++)
        args[n++] = more->argv[i];
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    return replications_change(r, a, script, &(struct store_args){args, n}, err);
}

int switch_begin(struct replications *r, const struct bucket_switch *s, struct str route,
                 struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    int code = switch_move(r, &a, SCRIPT_switch_begin, s, &(struct store_args){&route, 1}, err);

    arena_release(&a);
    return code;
}

int switch_step(struct replications *r, const struct bucket_switch *s, enum switch_status to,
                struct str text, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    const struct str more[] = {str_z(switch_status_names[to]),
                               str_n(text.p, size_min(text.len, TEXT_MAX))};
    int code = switch_move(r, &a, SCRIPT_switch_step, s, &(struct store_args){more, 2}, err);

    arena_release(&a);
    return code;
}

int switch_done(struct replications *r, const struct bucket_switch *s, const struct task *clean,
                struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct str more[3];
    int code = queue_task_args(&a, clean, 0, more, err);

    if (code == 0)
        code = switch_move(r, &a, SCRIPT_switch_done, s, &(struct store_args){more, 3}, err);
    replications_wake(r, &a);
    arena_release(&a);
    return code;
}

int switch_follow(struct replications *r, const struct bucket_switch *s, const struct task *task,
                  struct str text, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct str more[4] = {str_n(text.p, size_min(text.len, TEXT_MAX))};
    int code = queue_task_args(&a, task, 0, more + 1, err);

    if (code == 0)
        code = switch_move(r, &a, SCRIPT_switch_follow, s, &(struct store_args){more, 4}, err);
    replications_wake(r, &a);
    arena_release(&a);
    return code;
}

int switch_unblock(struct replications *r, const struct bucket_switch *s, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    int code = switch_move(r, &a, SCRIPT_switch_unblock, s, &(struct store_args){NULL, 0}, err);

    arena_release(&a);
    return code;
}

int switch_set_ttl(struct replications *r, struct str user, struct str bucket, int64_t ttl_ns,
                   struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct str args[COMMON_ARGS];
    size_t n = switch_databases(r, &a, args);

    args[n++] = replication_escaped(&a, user);
    args[n++] = replication_escaped(&a, bucket);
    args[n++] = queue_number(&a, ttl_ns);
    args[n++] = arena_fmt(&a, "open uploads are waited for %lld s from its start on",
                          (long long)(ttl_ns / NS_PER_S));
    int code = ttl_ns < 0 ? err_set(err, ERR_INVALID, "a duration is below zero") : 0;
    if (code == 0 && arena_error(&a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0)
        code = replications_change(r, &a, SCRIPT_switch_set, &(struct store_args){args, n}, err);
    arena_release(&a);
    return code;
}

int switch_abort(struct replications *r, struct str user, struct str bucket, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct str args[COMMON_ARGS];
    size_t n = switch_databases(r, &a, args);

    args[n++] = replication_escaped(&a, user);
    args[n++] = replication_escaped(&a, bucket);
    int code = arena_error(&a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
    if (code == 0)
        code = replications_change(r, &a, SCRIPT_switch_abort, &(struct store_args){args, n}, err);
    arena_release(&a);
    return code;
}
