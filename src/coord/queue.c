/* Adds, takes and ends tasks (coord/queue.h). Each step is one script of lua/queue_*.lua. */
#include "coord/queue_int.h"

#include "base/clock.h"
#include "base/ids.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum {
    RETRY_DELAY_MAX_S = S_PER_HOUR,
    ADD_ARGS = 6,
};

/* Arguments of the housekeeping scripts. */
#define SWEEP_MAX      "100"     /* most tasks of a queue that one call handles */
#define ARCHIVE_KEEP   "10000"   /* most archived tasks that a queue keeps */
#define ARCHIVE_LIFE_S "7776000" /* 90 days, after which archived tasks are removed */

struct queue *queue_new(struct store *s)
{
    struct queue *q = xcalloc(1, sizeof(*q));

    q->store = s;
    return q;
}

void queue_number_steps(struct queue *q, struct seen *seen)
{
    q->seen = seen;
}

void queue_free(struct queue *q)
{
    free(q);
}

struct store *queue_store(struct queue *q)
{
    return q->store;
}

struct str queue_number(struct arena *a, int64_t v)
{
    return arena_fmt(a, "%lld", (long long)v);
}

struct str queue_day(struct arena *a)
{
    char iso[CLOCK_ISO_LEN + 1];

    clock_iso(clock_wall_ms(), iso);
    return arena_str(a, str_n(iso, 10));
}

int queue_integer(const struct reply *r, int64_t *out, struct err *err)
{
    int code = reply_expect(r, REPLY_INTEGER, err);

    if (code == 0)
        *out = r->integer;
    return code;
}

/* --- adding --- */

static struct str unique_key(struct arena *a, const struct task *t)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    struct buf key = {0};

    buf_appendf(&key, "asynq:{" STR_FMT "}:unique:" STR_FMT ":", STR_ARG(t->queue),
                STR_ARG(t->type));
    if (t->payload.len) {
        BUG_ON(!EVP_Digest(t->payload.p, t->payload.len, digest, &len, EVP_md5(), NULL));
        buf_append_hex(&key, digest, len);
    }
    struct str out = arena_str(a, buf_str(&key));
    buf_release(&key);
    return out;
}

int queue_task_args(struct arena *a, const struct task *wanted, int64_t unique_s, struct str *args,
                    struct err *err)
{
    struct task t = *wanted;
    struct buf message = {0};

    if (t.payload.len > TASK_PAYLOAD_MAX)
        return err_set(err, ERR_TOO_LARGE, "a task with a payload of %zu bytes", t.payload.len);
    if (t.id.len == 0) {
        char id[ID_HEX_LEN + 1];
        id_hex(id);
        t.id = arena_str(a, str_z(id));
    }
    t.retry_max = t.retry_max == 0 ? TASK_RETRY_MAX : t.retry_max < 0 ? 0 : t.retry_max;
    if (t.timeout_s == 0 && t.deadline_s == 0)
        t.timeout_s = TASK_TIMEOUT_S;
    if (unique_s)
        t.unique_key = unique_key(a, &t);
    message_write(&message, &t);
    args[0] = t.queue;
    args[1] = t.id;
    args[2] = arena_str(a, buf_str(&message));
    buf_release(&message);
    return arena_error(a) == 0 ? 0 : err_code(err, ERR_NO_MEMORY);
}

/* Makes the six arguments of one task for queue_add.lua. `times` has two numbers of seconds: the
 * task's delay, and the time for which no task of the same type and payload may be added. */
static int queue_add_args(struct arena *a, const struct task *t, const int64_t times[2],
                          struct str *args, struct err *err)
{
    args[3] = queue_number(a, times[0]);
    args[4] = times[1] ? unique_key(a, t) : t->unique_key;
    args[5] = queue_number(a, times[1]);
    return queue_task_args(a, t, times[1], args, err);
}

/* Adds all tasks. The reply has one number for each task, which is 1 when the task was added. When
 * steps are numbered (coord/seen.h), the number of this step follows. */
static int queue_add_tasks(struct queue *q, struct arena *a, const struct task *tasks, size_t count,
                           const int64_t times[2], struct reply **out, struct err *err)
{
    struct str *args = arena_array(a, count * ADD_ARGS, sizeof(*args));
    int code = args ? 0 : err_code(err, ERR_NO_MEMORY);

    for (size_t i = 0; i < count && code == 0; i++)
        code = queue_add_args(a, &tasks[i], times, &args[i * ADD_ARGS], err);
    struct seen_keys keys;
    struct script_run run = {.script = coord_script(SCRIPT_queue_add),
                             .keys = seen_ask(q->seen, &keys),
                             .args = {args, count * ADD_ARGS}};
    if (code == 0)
        code = store_eval(q->store, a, out, &run, err);
    if (code == 0)
        code = seen_check(q->seen, *out, err);
    if (code == 0)
        code = reply_expect(*out, REPLY_ARRAY, err);
    if (code == 0 && (*out)->count != count + (q->seen != NULL))
        code =
            err_set(err, ERR_TYPE, "the store answered for %zu tasks of %zu", (*out)->count, count);
    if (code == 0 && q->seen)
        seen_took(q->seen, (uint64_t)(*out)->items[count].integer);
    return code;
}

static int queue_add_task(struct queue *q, const struct task *t, const int64_t times[2],
                          struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);
    struct reply *reply;
    int code = queue_add_tasks(q, &a, t, 1, times, &reply, err);

    if (code == 0 && reply->items[0].integer != 1)
        code = err_set(err, ERR_EXISTS, "the task is there already");
    arena_release(&a);
    return code;
}

int queue_add(struct queue *q, const struct task *t, int64_t delay_s, struct err *err)
{
    return queue_add_task(q, t, (const int64_t[]){delay_s, 0}, err);
}

int queue_add_unique(struct queue *q, const struct task *t, int64_t ttl_s, struct err *err)
{
    return queue_add_task(q, t, (const int64_t[]){0, ttl_s < 1 ? 1 : ttl_s}, err);
}

int queue_add_many(struct queue *q, const struct task *tasks, size_t count, size_t *added,
                   struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);
    struct reply *reply;
    size_t n = 0;
    int code = 0;

    BUG_ON(count > QUEUE_BATCH_MAX);
    if (count)
        code = queue_add_tasks(q, &a, tasks, count, (const int64_t[]){0, 0}, &reply, err);
    for (size_t i = 0; code == 0 && i < count; i++)
        n += reply->items[i].integer == 1;
    if (added)
        *added = n;
    arena_release(&a);
    return code;
}

/* Runs a script with the arguments `first`, followed by `rest`. */
static int queue_run_script(struct queue *q, struct arena *a, enum coord_script script,
                            const struct store_args *first, const struct store_args *rest,
                            struct reply **out, struct err *err)
{
    size_t count = first->argc + rest->argc;
    struct str *args = arena_array(a, count, sizeof(*args));

    if (!args)
        return err_code(err, ERR_NO_MEMORY);
    memcpy(args, first->argv, first->argc * sizeof(*args));
    memcpy(args + first->argc, rest->argv, rest->argc * sizeof(*args));
    return coord_eval(q->store, a, out, script, args, count, err);
}

int queue_postpone(struct queue *q, struct str queue, const struct str *ids, size_t count,
                   int64_t delay_s, struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);
    const struct str first[] = {queue, queue_number(&a, delay_s)};
    struct reply *reply;
    int code = queue_run_script(q, &a, SCRIPT_queue_postpone, &(struct store_args){first, 2},
                                &(struct store_args){ids, count}, &reply, err);

    arena_release(&a);
    return code;
}

/* --- working --- */

int queue_take(struct queue *q, struct arena *a, const struct str *names, size_t count,
               struct task *out, struct err *err)
{
    struct str *args = arena_array(a, 2 + count, sizeof(*args));
    struct reply *reply;
    char token[ID_HEX_LEN + 1];

    if (!args)
        return err_code(err, ERR_NO_MEMORY);
    id_hex(token);
    args[0] = queue_number(a, QUEUE_LEASE_S);
    args[1] = arena_str(a, str_z(token));
    memcpy(args + 2, names, count * sizeof(*names));
    int code = coord_eval(q->store, a, &reply, SCRIPT_queue_take, args, 2 + count, err);
    if (code < 0)
        return code;
    if (reply_is_nil(reply))
        return ERR_NOT_FOUND;
    code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && reply->count != 2)
        code = err_set(err, ERR_TYPE, "the store answered %zu things for a task", reply->count);
    if (code == 0)
        code = message_read(out, reply->items[1].str, err);
    if (code == 0) {
        out->queue = reply->items[0].str;
        out->token = args[1];
    }
    return code;
}

int queue_extend(struct queue *q, struct arena *a, struct str queue, const struct store_args *pairs,
                 struct store_args *lost, struct err *err)
{
    const struct str first[] = {queue, queue_number(a, QUEUE_LEASE_S)};
    struct reply *reply;
    int code = queue_run_script(q, a, SCRIPT_queue_extend, &(struct store_args){first, 2}, pairs,
                                &reply, err);

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    struct str *gone = arena_array(a, reply->count + 1, sizeof(*gone));
    if (!gone)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < reply->count; i++)
        gone[i] = reply->items[i].str;
    *lost = (struct store_args){gone, reply->count};
    return 0;
}

/* The way in which a task ends. */
struct ending {
    const char *outcome; /* name of the outcome, as in queue_end.lua */
    int64_t seconds;
    const char *counter;
    /* The caller does not hold the task; the task ends only if its lease has ended. */
    bool if_expired;
};

static int queue_end_task(struct queue *q, const struct task *t, const struct ending *e,
                          struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);
    struct buf message = {0};
    int64_t ended = 0;
    struct reply *reply;

    message_write(&message, t);
    const struct str args[] = {
        t->queue,
        t->id,
        str_z(e->outcome),
        buf_str(&message),
        queue_number(&a, e->seconds),
        str_z(e->counter),
        queue_day(&a),
        queue_number(&a, QUEUE_COUNTER_LIFE_S),
        e->if_expired  ? STR("")
        : t->token.len ? t->token
                       : STR("-"),
    };
    int code = coord_eval(q->store, &a, &reply, SCRIPT_queue_end, args, ARRAY_SIZE(args), err);
    if (code == 0)
        code = queue_integer(reply, &ended, err);
    if (code == 0 && ended == 0)
        code = err_set(err, ERR_NOT_FOUND, "the task is not active");
    buf_release(&message);
    arena_release(&a);
    return code;
}

int queue_done(struct queue *q, const struct task *t, struct err *err)
{
    struct task kept = *t;

    kept.completed_s = clock_wall_ms() / MS_PER_S;
    return queue_end_task(q, &kept,
                          &(struct ending){.outcome = t->retention_s > 0 ? "completed" : "done",
                                           .seconds = t->retention_s,
                                           .counter = "processed"},
                          err);
}

static int64_t queue_retry_delay(int retried)
{
    int64_t n = retried < 10 ? retried : 10; /* 10 to the fourth exceeds RETRY_DELAY_MAX_S */
    int64_t delay = n * n * n * n + 15 + (int64_t)random_below(30) * (n + 1);

    return delay < RETRY_DELAY_MAX_S ? delay : RETRY_DELAY_MAX_S;
}

static int queue_fail_task(struct queue *q, const struct task *t, struct ending *e,
                           struct str error, struct err *err)
{
    struct task kept = *t;

    kept.error = error;
    kept.last_failed_s = clock_wall_ms() / MS_PER_S;
    if (t->retried < t->retry_max)
        kept.retried++;
    else
        *e = (struct ending){"archived", 0, "failed", e->if_expired};
    return queue_end_task(q, &kept, e, err);
}

int queue_retry(struct queue *q, const struct task *t, int64_t delay_s, bool counts,
                struct str error, struct err *err)
{
    struct ending e = {.outcome = "retry",
                       .seconds = delay_s < 0 ? queue_retry_delay(t->retried) : delay_s,
                       .counter = counts ? "failed" : ""};
    struct task kept = *t;

    if (counts)
        return queue_fail_task(q, t, &e, error, err);
    if (error.len)
        kept.error = error;
    return queue_end_task(q, &kept, &e, err);
}

int queue_archive(struct queue *q, const struct task *t, struct str error, struct err *err)
{
    struct task kept = *t;

    kept.error = error;
    kept.last_failed_s = clock_wall_ms() / MS_PER_S;
    return queue_end_task(q, &kept, &(struct ending){.outcome = "archived", .counter = "failed"},
                          err);
}

int queue_requeue(struct queue *q, const struct task *t, struct err *err)
{
    return queue_end_task(q, t, &(struct ending){.outcome = "pending", .counter = ""}, err);
}

/* --- housekeeping --- */

static int queue_sweep(struct queue *q, enum coord_script script, const struct store_args *first,
                       const struct store_args *names, size_t *out, struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);
    struct reply *reply;
    int64_t n = 0;
    int code = queue_run_script(q, &a, script, first, names, &reply, err);

    if (code == 0)
        code = queue_integer(reply, &n, err);
    *out = (size_t)n;
    arena_release(&a);
    return code;
}

int queue_forward(struct queue *q, const struct store_args *names, size_t *moved, struct err *err)
{
    const struct str limit = STR(SWEEP_MAX);

    return queue_sweep(q, SCRIPT_queue_forward, &(struct store_args){&limit, 1}, names, moved, err);
}

int queue_clean(struct queue *q, const struct store_args *names, size_t *moved, struct err *err)
{
    const struct str first[] = {STR(SWEEP_MAX), STR(ARCHIVE_LIFE_S), STR(ARCHIVE_KEEP)};

    return queue_sweep(q, SCRIPT_queue_clean, &(struct store_args){first, ARRAY_SIZE(first)}, names,
                       moved, err);
}

/* Ends the present try of a task whose lease has ended, and counts it as failed. ERR_NOT_FOUND:
 * another process has recovered the task, or its worker came back. */
static int queue_recover_task(struct queue *q, const struct reply *row, struct err *err)
{
    struct ending e = {"retry", 0, "failed", true};
    struct task t;
    int code = row->type == REPLY_ARRAY && row->count == 2 ? 0 : ERR_TYPE;

    if (code == 0)
        code = message_read(&t, row->items[1].str, err);
    if (code < 0)
        return err_code(err, code);
    t.queue = row->items[0].str;
    return queue_fail_task(q, &t, &e, STR("the worker that had it died or was too slow"), err);
}

int queue_recover(struct queue *q, const struct store_args *names, size_t *moved, struct err *err)
{
    struct arena a = ARENA_INIT(QUEUE_ARENA_MAX);
    const struct str limit = STR(SWEEP_MAX);
    struct reply *reply;
    int code = queue_run_script(q, &a, SCRIPT_queue_expired, &(struct store_args){&limit, 1}, names,
                                &reply, err);

    *moved = 0;
    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    for (size_t i = 0; code == 0 && i < reply->count; i++) {
        code = queue_recover_task(q, &reply->items[i], err);
        *moved += code == 0;
        if (code == ERR_NOT_FOUND)
            code = 0;
    }
    arena_release(&a);
    return code;
}
