/* Records changes (docs/replication.md, R3). The tasks are made here from the view. The script
 * accepts the tasks only if the replications of the changed buckets are still those of the view. */
#include "coord/payload.h"
#include "coord/replication_int.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/map.h"
#include "base/vec.h"

#include <stdlib.h>

enum {
    RECORD_TRIES = 32, /* tries of a record; each may find that the view is too old */
    HEAD_ARGS = 9,
    REPLICATION_ARGS = 3,
    /* Most bytes of the names in one task; JSON may need six bytes for each of these bytes. */
    NAMES_MAX = 8 * 1024,
};

/* An object that has changed, once or several times. */
struct changed {
    const struct change *first;
    uint64_t last; /* outbox row of the object's last change in this record */
};

/* Changes of one replication that share tasks. */
struct together {
    VEC(struct changed *) changes;
    struct map seen; /* maps an object's name to its struct changed */
};

/* A call of the recording script that is being put together. */
struct draft {
    struct replications *r;
    struct replication_view *view;
    struct arena *arena;
    VEC(struct str) args;                      /* arguments for the changes */
    VEC(const struct replication *) concerned; /* replications that get tasks */
    VEC(struct together *) together;           /* one entry for each entry of `concerned` */
    VEC(struct str) sources; /* sources of the changes, each once: <storage>:<bucket> */
    struct str now;
};

/* --- one task --- */

static struct str draft_payload(struct draft *d, struct task_payload *p,
                                enum task_payload_kind kind)
{
    struct buf b = BUF_INIT(TASK_PAYLOAD_MAX + 1);

    p->created_at = d->now;
    task_payload_write(&b, p, kind);
    struct str out = arena_str(d->arena, buf_str(&b));
    buf_release(&b);
    return out;
}

/* Gives the index of a replication in `concerned`, counted from 1 as in Lua. Adds the replication
 * if it is not there. */
static size_t draft_number_of(struct draft *d, const struct replication *r)
{
    for (size_t i = 0; i < d->concerned.len; i++)
        if (d->concerned.items[i] == r)
            return i + 1;
    struct together *t = xcalloc(1, sizeof(*t));
    map_init(&t->seen);
    vec_push(&d->together, t);
    vec_push(&d->concerned, r);
    return d->concerned.len;
}

static struct str event_id(struct arena *a, struct str type, struct str name, struct str what)
{
    return arena_fmt(a, STR_FMT "|" STR_FMT "|" STR_FMT, STR_ARG(type), STR_ARG(name),
                     STR_ARG(what));
}

/* A task that the record will make. `what` names the thing in the task's id, so that a second
 * change of the thing finds the pending task. */
struct drafted {
    struct str type, what;
    enum task_payload_kind kind;
    struct task_payload payload; /* payload.id is not set */
    size_t changes;
};

static struct drafted draft_of(const struct change *c, struct str what)
{
    return (struct drafted){.type = c->type,
                            .what = what,
                            .kind =
                                c->thing.kind & THINGS_OF_OBJECT ? PAYLOAD_OBJECT : PAYLOAD_BUCKET,
                            .payload = {.object = c->thing.object, .version = c->thing.version},
                            .changes = 1};
}

static int draft_add_task(struct draft *d, const struct drafted *w, const struct replication *r,
                          struct err *err)
{
    struct task_payload payload = w->payload;

    payload.id = r->id;
    struct task t = {
        .type = w->type,
        .payload = draft_payload(d, &payload, w->kind),
        .id = event_id(d->arena, w->type, policy_of(r)->name, w->what),
        .queue = arena_fmt(d->arena, "events%d", r->priority + 1),
    };
    struct str args[3];
    int code = queue_task_args(d->arena, &t, 0, args, err);

    vec_push(&d->args, queue_number(d->arena, (int64_t)draft_number_of(d, r)));
    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(args); i++)
        vec_push(&d->args, args[i]);
    vec_push(&d->args, queue_number(d->arena, (int64_t)w->changes));
    return code;
}

/* --- several changes by one task --- */

static void draft_keep_together(struct draft *d, const struct change *c,
                                const struct replication *r)
{
    size_t number = draft_number_of(d, r); /* may add to d->together */
    struct together *t = d->together.items[number - 1];

    struct changed *known = map_get(&t->seen, c->thing.object);

    if (!known) {
        known = arena_alloc(d->arena, sizeof(*known));
        /* The caller notices the full arena before anything is sent. */
        if (!known)
            return;
        known->first = c;
        map_put(&t->seen, c->thing.object, known);
        vec_push(&t->changes, known);
    }
    known->last = c->row;
}

/* Adds the arguments that begin a task for several changes. The script reads them as one change,
 * without a version vector, that makes one task. The caller adds the arguments of that task. */
static void draft_begin_tasks(struct draft *d, uint64_t row)
{
    vec_push(&d->args, arena_fmt(d->arena, "%llu", (unsigned long long)row));
    vec_push(&d->args, STR(""));
    vec_push(&d->args, STR(""));
    vec_push(&d->args, STR(""));
    vec_push(&d->args, STR("1"));
}

/* Makes the name of a shared task, which is the numbers of the first and the last outbox row of its
 * changes. If a second try has more rows, and so other objects, the task has another name. Changes
 * without rows get a random name. */
static struct str rows_name(struct arena *a, uint64_t first, uint64_t last)
{
    char id[ID_HEX_LEN + 1];

    if (first)
        return arena_fmt(a, "%llu-%llu", (unsigned long long)first, (unsigned long long)last);
    id_hex(id);
    return arena_str(a, str_z(id));
}

/* Makes one task for as many changes as fit into it, beginning with the change at index `first`.
 * *taken is the number of changes that fit. */
static int draft_add_some(struct draft *d, const struct together *t, size_t first,
                          const struct replication *r, size_t *taken, struct err *err)
{
    struct changed *const *some = t->changes.items + first;
    const struct change *one = some[0]->first;
    struct task_payload_object objects[RECORD_TOGETHER_MAX];
    size_t left = t->changes.len - first, n = 0, bytes = 0;
    uint64_t last = some[0]->last;

    for (; n < left && n < RECORD_TOGETHER_MAX; n++) {
        struct str name = some[n]->first->thing.object;
        bytes += name.len;
        if (n && bytes > NAMES_MAX)
            break;
        objects[n] = (struct task_payload_object){.name = name};
        last = some[n]->last > last ? some[n]->last : last;
    }
    *taken = n;
    struct drafted task = draft_of(one, STR_EMPTY);
    if (n > 1)
        task = (struct drafted){.type = RECORD_TOGETHER,
                                .what = rows_name(d->arena, one->row, last),
                                .kind = PAYLOAD_EVENTS,
                                .payload = {.objects = objects, .object_count = n},
                                .changes = n};
    else
        task.what = version_key_in(d->arena, &one->thing);
    draft_begin_tasks(d, last);
    return draft_add_task(d, &task, r, err);
}

static int draft_add_together(struct draft *d, struct err *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < d->together.len; i++) {
        const struct together *t = d->together.items[i];
        size_t taken = 0;
        for (size_t at = 0; code == 0 && at < t->changes.len; at += taken)
            code = draft_add_some(d, t, at, d->concerned.items[i], &taken, err);
    }
    return code;
}

static void draft_release(struct draft *d)
{
    vec_each (&d->together, struct together **, t) {
        vec_release(&(*t)->changes);
        map_release(&(*t)->seen);
        free(*t);
    }
    vec_release(&d->together);
    vec_release(&d->args);
    vec_release(&d->concerned);
    vec_release(&d->sources);
    replication_view_unref(d->view);
}

/* --- the whole record --- */

static void draft_add_source(struct draft *d, const struct change *c)
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

static int draft_add_change(struct draft *d, const struct change *c, struct err *err)
{
    const struct replication *const *list = NULL;
    struct str name = version_key_in(d->arena, &c->thing);
    struct drafted task = draft_of(c, name);
    size_t count = 0;
    int code = 0;

    if (c->place.bucket.len == 0) {
        draft_add_source(d, c);
        count = replication_view_from(d->view, c->place.storage, c->thing.bucket, &list);
    }
    vec_push(&d->args, arena_fmt(d->arena, "%llu", (unsigned long long)c->row));
    vec_push(&d->args, name);
    vec_push(&d->args, version_field_in(d->arena, &c->place));
    bool beside = c->thing.kind & (THING_OBJECT_TAGS | THING_OBJECT_ACL);
    vec_push(&d->args, c->late    ? (c->whole ? STR("~w")
                                     : beside ? STR("~b")
                                              : STR("~"))
                       : c->whole ? STR("w")
                       : beside   ? STR("b")
                                  : STR(""));
    vec_push(&d->args, queue_number(d->arena, c->together ? 0 : (int64_t)count));
    for (size_t i = 0; code == 0 && i < count; i++) {
        if (c->together)
            draft_keep_together(d, c, list[i]);
        else
            code = draft_add_task(d, &task, list[i], err);
    }
    return code;
}

static struct str log_key(struct arena *a, struct str log)
{
    return log.len ? arena_fmt(a, "w:tap:" STR_FMT, STR_ARG(replication_escaped(a, log))) : STR("");
}

/* Makes the script's arguments in the order that it expects: head, replications, sources, intents,
 * changes. */
static struct store_args draft_arguments(struct draft *d, const struct record *rec)
{
    size_t count = HEAD_ARGS + REPLICATION_ARGS * d->concerned.len + d->sources.len +
                   rec->intent_count + d->args.len;
    size_t at = 0;
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
    args[at++] = queue_number(a, (int64_t)rec->intent_count);
    args[at++] = log_key(a, rec->log);
    args[at++] = arena_fmt(a, "%llu", (unsigned long long)rec->log_last);
    args[at++] = queue_number(a, (int64_t)d->concerned.len);
    args[at++] = queue_number(a, (int64_t)d->sources.len);
    vec_each (&d->concerned, const struct replication **, r) {
        const struct policy *p = policy_of(*r);
        args[at++] = arena_fmt(a, "p:repl_st:" STR_FMT, STR_ARG(p->name));
        args[at++] = arena_fmt(a, "%d %d e 0 " STR_FMT " p:repl_st:" STR_FMT, config, queue,
                               STR_ARG(p->created_at), STR_ARG(p->name));
        args[at++] = version_field_in(a, &(struct place){p->r.id.to, p->r.id.to_bucket});
    }
    vec_each (&d->sources, struct str *, source)
        args[at++] = *source;
    for (size_t i = 0; i < rec->intent_count; i++)
        args[at++] = rec->intents[i];
    if (d->args.len)
        memcpy(args + at, d->args.items, d->args.len * sizeof(*args));
    return (struct store_args){args, count};
}

/* Runs the script. *current is set to false when policies have changed since the view was read;
 * then nothing was recorded. */
static int draft_run(struct draft *d, const struct record *rec, bool *current, struct err *err)
{
    struct seen *seen = d->r->o.seen;
    struct seen_keys keys;
    struct script_run run = {.script = coord_script(SCRIPT_replication_record),
                             .keys = seen_ask(seen, &keys),
                             .args = draft_arguments(d, rec),
                             .relaxed = rec->relaxed};
    struct reply *reply;
    int64_t done = 0;

    if (arena_error(d->arena) < 0)
        return err_code(err, ERR_NO_MEMORY);
    int code = store_eval(d->r->o.queue, d->arena, &reply, &run, err);
    if (code == 0)
        code = seen_check(seen, reply, err);
    if (code == 0)
        code = queue_integer(reply, &done, err);
    *current = done >= 1;
    if (code == 0 && *current)
        seen_took(seen, (uint64_t)done);
    return code;
}

static int record_attempt(struct replications *r, const struct record *rec, bool *current,
                          struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);
    char now[CLOCK_ISO_LEN + 1];
    struct draft d = {.r = r, .arena = &a};
    int code = replications_view(r, &d.view, err);

    clock_iso(clock_wall_ms(), now);
    d.now = str_z(now);
    for (size_t i = 0; code == 0 && i < rec->count; i++)
        code = draft_add_change(&d, &rec->changes[i], err);
    if (code == 0)
        code = draft_add_together(&d, err);
    if (code == 0)
        code = draft_run(&d, rec, current, err);
    draft_release(&d);
    arena_release(&a);
    return code;
}

int replication_event_id(struct arena *a, const struct replication_id *id, struct str type,
                         const struct thing *thing, struct str *out, struct err *err)
{
    struct id_parts parts;
    int code = replication_parts(a, id, &parts, err);

    if (code == 0)
        *out = event_id(a, type, str_skip(replication_status_key(a, &parts), strlen("p:repl_st:")),
                        version_key_in(a, thing));
    return code == 0 ? arena_error(a) : code;
}

int replication_record(struct replications *r, const struct record *rec, struct err *err)
{
    BUG_ON(rec->count > QUEUE_BATCH_MAX || rec->intent_count > QUEUE_BATCH_MAX);
    for (int i = 0; i < RECORD_TRIES; i++) {
        bool current = false;
        int code = record_attempt(r, rec, &current, err);
        if (code < 0 || current)
            return code;
        atomic_store(&r->doubt, true);
        code = reload_now(&r->reload, err);
        if (code < 0)
            return code;
    }
    return err_set(err, ERR_BUSY, "the replications change faster than they can be read");
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
