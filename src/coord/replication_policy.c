/* Makes, removes, pauses and archives policies. Each of these changes is one script on configDB,
 * after which the view is read again. */
#include "coord/replication_int.h"

#include "store/fields.h"

enum { CALL_ARENA_MAX = 1024 * 1024 };

/* The words with which scripts refuse a change. A refused change has changed nothing. A script may
 * add a name or a number to the word. */
static const struct refusal {
    struct str word;
    int code;
    const char *text;
} refusals[] = {
    {{"none", 4}, ERR_NOT_FOUND, "there is no such replication"},
    {{"exists", 6}, ERR_EXISTS, "the replication is there already"},
    {{"switch", 6}, ERR_CONFLICT, "the bucket has a switch that is not done"},
    {{"archived", 8}, ERR_CONFLICT, "the replication is archived: clients write elsewhere"},
    {{"taken", 5}, ERR_CONFLICT, "the destination bucket is in use for something else"},
    {{"route", 5}, ERR_CONFLICT, "the source is not where the route leads"},
    {{"source", 6}, ERR_CONFLICT, "the other replications of the bucket have another source"},
    {{"destination", 11}, ERR_CONFLICT, "the source is blocked, because it is a destination, on"},
    {{"copy", 4},
     ERR_CONFLICT,
     "the bucket is on another storage, and there is only a copy of it on"},
    {{"archived", 8}, ERR_CONFLICT, "the replication is archived"},
    {{"agent", 5}, ERR_CONFLICT, "its changes come by notifications"},
    {{"many", 4}, ERR_CONFLICT, "the bucket has more than one destination"},
    {{"blocked", 7}, ERR_CONFLICT, "the bucket is blocked on"},
    {{"init", 4}, ERR_CONFLICT, "the initial copy is not done"},
    {{"failed", 6}, ERR_CONFLICT, "objects could not be copied"},
    {{"paused", 6}, ERR_CONFLICT, "the replication is paused"},
    {{"going", 5}, ERR_CONFLICT, "the switch is in progress"},
    {{"gone", 4}, ERR_NOT_FOUND, "there is no such switch"},
    {{"state", 5}, ERR_CONFLICT, "the switch is"},
    {{"lag", 3}, ERR_AGAIN, "changes were not copied yet"},
    {{"unsure", 6},
     ERR_AGAIN,
     "the store may have lost changes, and the copies are being compared"},
    {{"kept", 4},
     ERR_CONFLICT,
     "no policy would make the replication again, or its bucket was made again"},
    {{"aborted", 7}, ERR_CONFLICT, "the switch was aborted already, and is going back"},
};

static int policy_refusal(const struct reply *reply, struct err *err)
{
    int code = reply_expect(reply, REPLY_ARRAY, err);

    if (code == 0 && reply->count == 0)
        code = err_code(err, ERR_TYPE);
    if (code < 0 || str_eq(reply->items[0].str, STR("ok")))
        return code;
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        const struct refusal *f = &refusals[i];
        if (!str_eq(reply->items[0].str, f->word))
            continue;
        if (reply->count == 1)
            return err_set(err, f->code, "%s", f->text);
        return err_set(err, f->code, "%s: " STR_FMT, f->text, STR_ARG(reply->items[1].str));
    }
    return err_set(err, ERR_TYPE, "a script answered '" STR_FMT "'", STR_ARG(reply->items[0].str));
}

int replications_run(struct replications *r, struct arena *a, enum coord_script script,
                     const struct store_args *args, struct err *err)
{
    struct reply *reply;
    int code = coord_eval(r->o.config, a, &reply, script, args->argv, args->argc, err);

    return code == 0 ? policy_refusal(reply, err) : code;
}

int replications_change(struct replications *r, struct arena *a, enum coord_script script,
                        const struct store_args *args, struct err *err)
{
    int code = replications_run(r, a, script, args, err);

    if (code < 0)
        return code;
    return reload_now(&r->reload, err) < 0
               ? err_wrap(err, ERR_TIMEOUT, "the replications could not be read again")
               : 0;
}

/* --- making --- */

/* Tells workers that there are tasks. A failure is ignored, because a worker that misses the
 * message looks for tasks a second later. */
void replications_wake(struct replications *r, struct arena *a)
{
    struct reply *reply;

    if (store_call(r->o.queue, a, &reply, NULL, STR("PUBLISH"), QUEUE_CHANNEL, STR("")) < 0)
        return;
}

static int policy_add(struct replications *r, struct arena *a, const struct replication_new *n,
                      struct str route, struct err *err)
{
    struct str first[3] = {STR(""), STR(""), STR("")};
    struct id_parts p;
    int code = replication_parts(a, &n->id, &p, err);

    if (code == 0 && n->first.type.len)
        code = queue_task_args(a, &n->first, 0, first, err);
    if (code < 0)
        return code;
    const struct str args[] = {
        queue_number(a, store_number(r->o.queue)),
        queue_number(a, store_number(r->o.config)),
        p.user,
        p.bucket,
        p.from,
        p.to,
        p.to_bucket,
        n->id.bucket,
        n->id.from,
        n->id.to_bucket,
        queue_number(a, n->priority),
        route,
        n->agent_url,
        n->init_done ? STR("1") : STR("0"),
        first[0],
        first[1],
        first[2],
    };
    code = (n->later ? replications_run : replications_change)(
        r, a, SCRIPT_replication_add, &(struct store_args){args, ARRAY_SIZE(args)}, err);
    if (first[1].len)
        replications_wake(r, a);
    return code;
}

int replication_add(struct replications *r, const struct replication_new *n, struct str route,
                    struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);

    if (n->priority < 0 || n->priority > PRIORITY_MAX)
        return err_set(err, ERR_INVALID, "a priority is a number from 0 to %d", PRIORITY_MAX);
    if (n->id.bucket.len == 0 && (n->first.type.len || n->agent_url.len || n->init_done))
        return err_set(err, ERR_INVALID, "a user's policy has no task and no status");
    int code = policy_add(r, &a, n, route, err);
    arena_release(&a);
    return code;
}

/* --- changing --- */

static int policy_run(struct replications *r, enum coord_script script,
                      const struct replication_id *id, struct str last, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct id_parts p;
    int code = replication_parts(&a, id, &p, err);

    if (code == 0) {
        const struct str args[] = {p.user, p.bucket, p.from, p.to, p.to_bucket, last};
        code =
            replications_change(r, &a, script, &(struct store_args){args, ARRAY_SIZE(args)}, err);
    }
    arena_release(&a);
    return code;
}

int replication_remove(struct replications *r, const struct replication_id *id, struct err *err)
{
    return policy_run(r, SCRIPT_replication_remove, id, id->to_bucket, err);
}

static int policy_end(struct replications *r, struct arena *a, const struct replication_end *e,
                      struct err *err)
{
    struct id_parts p;
    struct str tasks[6];
    int code = replication_parts(a, &e->id, &p, err);

    for (int i = 0; i < 2 && code == 0; i++)
        code = queue_task_args(a, &e->then[i], 0, tasks + 3 * i, err);
    if (code < 0)
        return code;
    const struct str args[] = {
        queue_number(a, store_number(r->o.app)),
        queue_number(a, store_number(r->o.queue)),
        queue_number(a, store_number(r->o.config)),
        p.user,
        p.bucket,
        p.from,
        p.to,
        version_key_in(a, &(struct thing){.kind = THING_BUCKET, .bucket = e->id.bucket}),
        version_field_in(a, &(struct place){.storage = e->id.from}),
        queue_number(a, e->number),
        tasks[0],
        tasks[1],
        tasks[2],
        tasks[3],
        tasks[4],
        tasks[5],
        e->id.from,
        e->route};
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    code = replications_change(r, a, SCRIPT_replication_end,
                               &(struct store_args){args, ARRAY_SIZE(args)}, err);
    replications_wake(r, a);
    return code;
}

int replication_end(struct replications *r, const struct replication_end *e, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    int code = e->id.to_bucket.len
                   ? err_set(err, ERR_CONFLICT,
                             "no policy makes a replication to a bucket of another name")
                   : policy_end(r, &a, e, err);

    arena_release(&a);
    return code;
}

static int policy_set(struct replications *r, const struct replication_id *id, struct str what,
                      struct err *err)
{
    if (id->bucket.len == 0)
        return err_set(err, ERR_INVALID, "a user's policy has no status");
    return policy_run(r, SCRIPT_replication_set, id, what, err);
}

int replication_pause(struct replications *r, const struct replication_id *id, bool paused,
                      struct err *err)
{
    return policy_set(r, id, paused ? STR("pause") : STR("resume"), err);
}

int replication_archive(struct replications *r, const struct replication_id *id, struct err *err)
{
    return policy_set(r, id, STR("archive"), err);
}

int replication_resync(struct replications *r, const struct replication_id *id,
                       const struct task *first, bool planned, struct err *err)
{
    struct arena a = ARENA_INIT(CALL_ARENA_MAX);
    struct str task[3];
    struct id_parts p;
    int code = replication_parts(&a, id, &p, err);

    if (code == 0)
        code = queue_task_args(&a, first, 0, task, err);
    if (code == 0) {
        const struct str args[] = {queue_number(&a, store_number(r->o.queue)),
                                   queue_number(&a, store_number(r->o.config)),
                                   replication_status_key(&a, &p),
                                   task[0],
                                   task[1],
                                   task[2],
                                   p.user,
                                   p.bucket,
                                   planned ? STR("1") : STR("0")};
        code = replications_run(r, &a, SCRIPT_replication_resync,
                                &(struct store_args){args, ARRAY_SIZE(args)}, err);
        replications_wake(r, &a);
    }
    arena_release(&a);
    return code;
}

/* --- the status --- */

static const struct field_row status_rows[] = {
#define STATUS_FIELD(...) FIELD_ROW(struct replication_status, __VA_ARGS__)
    STATUS_FIELD("created_at", FIELD_TIME, created_ms),
    STATUS_FIELD("resynced_at", FIELD_TIME, resynced_ms),
    STATUS_FIELD("archived_at", FIELD_TIME, archived_ms),
    STATUS_FIELD("init_done_at", FIELD_TIME, init_done_ms),
    STATUS_FIELD("last_emitted_at", FIELD_TIME, emitted_ms),
    STATUS_FIELD("last_processed_at", FIELD_TIME, processed_ms),
    STATUS_FIELD("paused", FIELD_BOOL, paused),
    STATUS_FIELD("archived", FIELD_BOOL, archived),
    STATUS_FIELD("listing_started", FIELD_BOOL, listing_started),
    STATUS_FIELD("listings", FIELD_I64, listings),
    STATUS_FIELD("obj_listed", FIELD_I64, listed),
    STATUS_FIELD("obj_done", FIELD_I64, done),
    STATUS_FIELD("obj_failed", FIELD_I64, failed),
    STATUS_FIELD("bytes_listed", FIELD_I64, bytes_listed),
    STATUS_FIELD("bytes_done", FIELD_I64, bytes_done),
    STATUS_FIELD("events", FIELD_I64, events),
    STATUS_FIELD("events_done", FIELD_I64, events_done),
    STATUS_FIELD("agent_url", FIELD_TEXT, agent_url),
#undef STATUS_FIELD
};
static const struct fields status_fields = FIELDS(status_rows);

int replication_read(struct replications *r, struct arena *a, const struct replication_id *id,
                     struct replication_status *out, struct err *err)
{
    struct replication_status status = {0};
    struct id_parts p;
    struct reply *reply = NULL;
    int code = replication_parts(a, id, &p, err);

    if (code == 0)
        code =
            store_call(r->o.config, a, &reply, err, STR("HGETALL"), replication_status_key(a, &p));
    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && reply->count == 0)
        code = err_set(err, ERR_NOT_FOUND, "there is no such replication");
    if (code == 0)
        code = fields_read(&status, &status_fields, reply, NULL, err);
    if (code == 0)
        *out = status;
    return code;
}
