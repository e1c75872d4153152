/* Lists queues and tasks, and does what an operator asks for: pause, run, delete, cancel. */
#include "coord/queue_int.h"

#include "base/clock.h"

#include <stdlib.h>

enum { STATS_FIELDS = 13 };

const char *const task_state_names[TASK_STATES] = {"pending", "active",   "scheduled",
                                                   "retry",   "archived", "completed"};

static int64_t queue_reply_number(const struct reply *r)
{
    int64_t v = r->integer;

    if (r->type == REPLY_BULK && str_i64(r->str, &v) < 0)
        v = 0;
    return v;
}

static int queue_read_stats(struct queue_stats *out, const struct reply *row, struct err *err)
{
    if (row->type != REPLY_ARRAY || row->count != STATS_FIELDS)
        return err_set(err, ERR_TYPE, "the store gave a malformed answer about a queue");
    *out = (struct queue_stats){.name = row->items[0].str};
    for (int i = 0; i < TASK_STATES; i++)
        out->size[i] = (uint64_t)row->items[1 + i].integer;
    out->processed = (uint64_t)queue_reply_number(&row->items[7]);
    out->failed = (uint64_t)queue_reply_number(&row->items[8]);
    out->processed_today = (uint64_t)queue_reply_number(&row->items[9]);
    out->failed_today = (uint64_t)queue_reply_number(&row->items[10]);
    out->latency_ms = queue_reply_number(&row->items[11]);
    out->paused = row->items[12].integer != 0;
    return 0;
}

/* Orders by the bytes of the name, because the script's own order follows the Redis server's
 * locale. */
static int stats_by_name(const void *a, const void *b)
{
    const struct queue_stats *one = a, *other = b;

    return str_cmp(one->name, other->name);
}

int queue_list(struct queue *q, struct arena *a, struct queue_stats **out, size_t *count,
               struct err *err)
{
    const struct str day = queue_day(a);
    struct reply *reply;
    int code = coord_eval(q->store, a, &reply, SCRIPT_queue_stats, &day, 1, err);

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    *count = reply->count;
    *out = arena_array(a, reply->count + 1, sizeof(**out));
    if (!*out)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < reply->count && code == 0; i++)
        code = queue_read_stats(&(*out)[i], &reply->items[i], err);
    if (code == 0)
        qsort(*out, *count, sizeof(**out), stats_by_name);
    return code;
}

int queue_tasks(struct queue *q, struct arena *a, const struct queue_page *page,
                struct task_info **out, size_t *count, struct err *err)
{
    const struct str args[] = {page->queue, str_z(task_state_names[page->state]),
                               queue_number(a, (int64_t)page->skip),
                               queue_number(a, (int64_t)page->limit)};
    struct reply *reply;
    int code = coord_eval(q->store, a, &reply, SCRIPT_queue_page, args, ARRAY_SIZE(args), err);

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    *count = reply->count;
    *out = arena_array(a, reply->count + 1, sizeof(**out));
    if (!*out)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < reply->count && code == 0; i++) {
        const struct reply *row = &reply->items[i];
        if (row->type != REPLY_ARRAY || row->count != 2)
            return err_set(err, ERR_TYPE, "the store gave a malformed answer about a task");
        (*out)[i] =
            (struct task_info){.state = page->state, .due_s = queue_reply_number(&row->items[1])};
        code = message_read(&(*out)[i].task, row->items[0].str, err);
        (*out)[i].task.queue = page->queue;
    }
    return code;
}

int queue_task(struct queue *q, struct arena *a, struct str name, struct str id,
               struct task_info *out, struct err *err)
{
    const struct str args[] = {name, id};
    struct reply *reply;
    int code = coord_eval(q->store, a, &reply, SCRIPT_queue_one, args, ARRAY_SIZE(args), err);

    if (code < 0)
        return code;
    if (reply_is_nil(reply))
        return err_set(err, ERR_NOT_FOUND, "no task " STR_FMT " in queue " STR_FMT, STR_ARG(id),
                       STR_ARG(name));
    code = reply_expect(reply, REPLY_ARRAY, err);
    if (code < 0)
        return code;
    *out = (struct task_info){.state = TASK_STATES, .due_s = queue_reply_number(&reply->items[2])};
    for (int i = 0; i < TASK_STATES; i++)
        if (str_eq(reply->items[1].str, str_z(task_state_names[i])))
            out->state = (enum task_state)i;
    if (out->state == TASK_STATES)
        return err_set(err, ERR_TYPE, "a task in state '" STR_FMT "'",
                       STR_ARG(reply->items[1].str));
    code = message_read(&out->task, reply->items[0].str, err);
    out->task.queue = name;
    return code;
}

int queue_pause(struct queue *q, struct str name, bool paused, struct err *err)
{
    struct arena a = ARENA_INIT(4 * KIB);
    struct buf key = {0};
    struct reply *reply;
    int code;

    buf_appendf(&key, "asynq:{" STR_FMT "}:paused", STR_ARG(name));
    if (paused)
        code = store_call(q->store, &a, &reply, err, STR("SET"), buf_str(&key),
                          queue_number(&a, clock_wall_ms() / MS_PER_S), STR("NX"));
    else
        code = store_call(q->store, &a, &reply, err, STR("DEL"), buf_str(&key));
    if (code == 0 && !paused)
        code = store_call(q->store, &a, &reply, err, STR("PUBLISH"), QUEUE_CHANNEL, STR(""));
    buf_release(&key);
    arena_release(&a);
    return code;
}

static int queue_move_task(struct queue *q, struct str name, struct str id, const char *what,
                           struct err *err)
{
    struct arena a = ARENA_INIT(4 * KIB);
    const struct str args[] = {name, id, str_z(what)};
    struct reply *reply;
    int64_t n = 0;
    int code = coord_eval(q->store, &a, &reply, SCRIPT_queue_move, args, ARRAY_SIZE(args), err);

    if (code == 0)
        code = queue_integer(reply, &n, err);
    if (code == 0 && n == 0)
        code = err_set(err, ERR_NOT_FOUND, "no task " STR_FMT " in queue " STR_FMT, STR_ARG(id),
                       STR_ARG(name));
    if (code == 0 && n < 0)
        code = err_set(err, ERR_CONFLICT, "task " STR_FMT " is running", STR_ARG(id));
    arena_release(&a);
    return code;
}

int queue_run_now(struct queue *q, struct str name, struct str id, struct err *err)
{
    return queue_move_task(q, name, id, "run", err);
}

int queue_delete(struct queue *q, struct str name, struct str id, struct err *err)
{
    return queue_move_task(q, name, id, "delete", err);
}

int queue_cancel(struct queue *q, struct str id, struct err *err)
{
    struct arena a = ARENA_INIT(4 * KIB);
    struct reply *reply;
    int code = store_call(q->store, &a, &reply, err, STR("PUBLISH"), QUEUE_CANCEL, id);

    arena_release(&a);
    return code;
}
