/* Changes recorded: R3. Tasks are made here from the view, and the script takes them only if no
 * replication of their sources has changed since the view's epoch. */
#include "coord/replication_int.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/vec.h"

enum {
    RECORD_TRIES = 32, /* views that may turn out to be old */
    HEAD_ARGS = 9,
};

/* One call of the script being put together. */
struct draft {
    struct replications *r;
    struct replication_view *view;
    struct arena *arena;
    VEC(struct str) args;                      /* of the changes */
    VEC(const struct replication *) concerned; /* the script counts for each */
    VEC(struct str) sources;                   /* <storage>:<bucket>, once each */
    struct str now;
};

/* --- one task --- */

static struct str payload_of(struct draft *d, const struct replication_id *id, struct str members)
{
    struct buf b = BUF_INIT(TASK_PAYLOAD_MAX + 1);
    struct json_out w;

    json_out_init(&w, &b);
    json_out_open(&w, '{');
    json_out_member_str(&w, "FromStorage", id->from);
    json_out_member_str(&w, "ToStorage", id->to);
    json_out_key(&w, "ToBucket");
    if (id->to_bucket.len)
        json_out_str(&w, id->to_bucket);
    else
        json_out_null(&w);
    json_out_member_str(&w, "CreatedAt", d->now);
    json_out_member_str(&w, "User", id->user);
    if (members.len) {
        buf_append_char(&b, ',');
        buf_append_str(&b, members);
    }
    json_out_close(&w, '}');
    struct str out = arena_str(d->arena, buf_str(&b));
    buf_release(&b);
    return out;
}

/* Counted from 1, as Lua does. */
static size_t number_of(struct draft *d, const struct replication *r)
{
    for (size_t i = 0; i < d->concerned.len; i++)
        if (d->concerned.items[i] == r)
            return i + 1;
    vec_push(&d->concerned, r);
    return d->concerned.len;
}

/* The id says which thing at which destination, so that a task that waits takes a second change on.
 */
static int add_task(struct draft *d, const struct change *c, struct str key,
                    const struct replication *r, struct err *err)
{
    struct task t = {
        .type = c->type,
        .payload = payload_of(d, &r->id, c->payload),
        .id = arena_fmt(d->arena, STR_FMT "|" STR_FMT "|" STR_FMT, STR_ARG(c->type),
                        STR_ARG(policy_of(r)->name), STR_ARG(key)),
        .queue = arena_fmt(d->arena, "events%d", r->priority + 1),
    };
    struct str args[3];
    int code = queue_task_args(d->arena, &t, 0, args, err);

    vec_push(&d->args, queue_number(d->arena, (int64_t)number_of(d, r)));
    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(args); i++)
        vec_push(&d->args, args[i]);
    return code;
}

/* --- all --- */

static void add_source(struct draft *d, const struct change *c)
{
    struct buf key = {0};

    replication_source(&key, c->place.storage, c->thing.bucket);
    for (size_t i = d->sources.len; i-- > 0;)
        if (str_eq(d->sources.items[i], buf_str(&key)))
            goto out;
    vec_push(&d->sources, arena_str(d->arena, buf_str(&key)));
out:
    buf_release(&key);
}

static int add_change(struct draft *d, const struct change *c, struct err *err)
{
    const struct replication *const *list = NULL;
    struct buf key = {0}, field = {0};
    size_t count = 0;
    int code = 0;

    if (c->place.bucket.len == 0) {
        add_source(d, c);
        count = replication_view_from(d->view, c->place.storage, c->thing.bucket, &list);
    }
    version_key(&key, &c->thing);
    version_field(&field, &c->place);
    struct str name = arena_str(d->arena, buf_str(&key));
    vec_push(&d->args, arena_fmt(d->arena, "%llu", (unsigned long long)c->row));
    vec_push(&d->args, name);
    vec_push(&d->args, arena_str(d->arena, buf_str(&field)));
    vec_push(&d->args, c->whole ? STR("1") : STR("0"));
    vec_push(&d->args, queue_number(d->arena, (int64_t)count));
    for (size_t i = 0; code == 0 && i < count; i++)
        code = add_task(d, c, name, list[i], err);
    buf_release(&key);
    buf_release(&field);
    return code;
}

static struct str log_key(struct arena *a, struct str log)
{
    return log.len ? arena_fmt(a, "w:tap:" STR_FMT, STR_ARG(replication_escaped(a, log))) : STR("");
}

/* The head, replications, sources, changes: as the script has them. */
static struct store_args arguments(struct draft *d, const struct record *rec)
{
    size_t count = HEAD_ARGS + 2 * d->concerned.len + d->sources.len + d->args.len, at = 0;
    const struct replications_options *o = &d->r->o;
    int config = store_number(o->config), queue = store_number(o->queue);
    struct arena *a = d->arena;
    struct str *args = arena_array(a, count, sizeof(*args));

    if (!args)
        return (struct store_args){0};
    args[at++] = queue_number(a, store_number(o->app));
    args[at++] = queue_number(a, queue);
    args[at++] = queue_number(a, config);
    args[at++] = queue_number(a, replication_view_epoch(d->view));
    args[at++] = rec->intent;
    args[at++] = log_key(a, rec->log);
    args[at++] = arena_fmt(a, "%llu", (unsigned long long)rec->log_last);
    args[at++] = queue_number(a, (int64_t)d->concerned.len);
    args[at++] = queue_number(a, (int64_t)d->sources.len);
    vec_each (&d->concerned, const struct replication **, r) {
        const struct policy *p = policy_of(*r);
        args[at++] = arena_fmt(a, "p:repl_st:" STR_FMT, STR_ARG(p->name));
        args[at++] = arena_fmt(a, "%d %d e 0 " STR_FMT " p:repl_st:" STR_FMT, config, queue,
                               STR_ARG(p->created_at), STR_ARG(p->name));
    }
    vec_each (&d->sources, struct str *, source)
        args[at++] = *source;
    if (d->args.len)
        memcpy(args + at, d->args.items, d->args.len * sizeof(*args));
    return (struct store_args){args, count};
}

/* *current false: policies have changed since the view. */
static int run(struct draft *d, const struct record *rec, bool *current, struct err *err)
{
    struct script_run run = {.script = coord_script(SCRIPT_replication_record),
                             .args = arguments(d, rec),
                             .relaxed = rec->relaxed};
    struct reply *reply;
    int64_t done = 0;

    if (arena_error(d->arena) < 0)
        return err_code(err, ERR_NO_MEMORY);
    int code = store_eval(d->r->o.queue, d->arena, &reply, &run, err);
    if (code == 0)
        code = queue_integer(reply, &done, err);
    *current = done == 1;
    return code;
}

static int attempt(struct replications *r, const struct record *rec, bool *current, struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);
    char now[CLOCK_ISO_LEN + 1];
    struct draft d = {.r = r, .arena = &a};
    int code = replications_view(r, &d.view, err);

    clock_iso(clock_wall_ms(), now);
    d.now = str_z(now);
    for (size_t i = 0; code == 0 && i < rec->count; i++)
        code = add_change(&d, &rec->changes[i], err);
    if (code == 0)
        code = run(&d, rec, current, err);
    vec_release(&d.args);
    vec_release(&d.concerned);
    vec_release(&d.sources);
    replication_view_unref(d.view);
    arena_release(&a);
    return code;
}

int replication_record(struct replications *r, const struct record *rec, struct err *err)
{
    BUG_ON(rec->count > QUEUE_BATCH_MAX);
    for (int i = 0; i < RECORD_TRIES; i++) {
        bool current = false;
        int code = attempt(r, rec, &current, err);
        if (code < 0 || current)
            return code;
        atomic_store(&r->doubt, true);
        code = reload_now(&r->reload, err);
        if (code < 0)
            return code;
    }
    return err_set(err, ERR_BUSY, "replications change faster than they can be read");
}

int replication_recorded(struct replications *r, struct str log, uint64_t *out, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct reply *reply;
    uint64_t row = 0;
    int code = store_call(r->o.app, &a, &reply, err, STR("GET"), log_key(&a, log));

    if (code == 0 && !reply_is_nil(reply)) {
        code = reply_expect(reply, REPLY_BULK, err);
        if (code == 0 && str_u64(reply->str, &row) < 0)
            code = err_set(err, ERR_CORRUPT, "the number of the log's last row cannot be read");
    }
    if (code == 0)
        *out = row;
    arena_release(&a);
    return code;
}
