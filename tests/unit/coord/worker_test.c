/* Workers over both engines. */
#include "coord/worker.h"
#include "base/clock.h"
#include "os/thread.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

#include <stdio.h>
#include <stdlib.h>

/* Counts what handlers did, and lets a test wait for it. */
struct tally {
    struct mutex lock;
    struct cond changed;
    size_t runs, ended;
    bool hold; /* handlers wait until it is false */
    int code;  /* what they return */
};

static void tally_init(struct tally *t)
{
    *t = (struct tally){0};
    mutex_init(&t->lock, "test.tally");
    cond_init(&t->changed);
}

static int handle(struct task_run *run, struct err *err)
{
    struct tally *t = run->ctx;
    uint64_t look = 5 * NS_PER_MS;

    mutex_lock(&t->lock);
    t->runs++;
    cond_broadcast(&t->changed);
    while (t->hold && !task_ended(run))
        cond_wait_until(&t->changed, &t->lock, clock_mono_ns() + look);
    t->ended += task_ended(run);
    int code = task_ended(run) ? ERR_SHUTDOWN : t->code;
    mutex_unlock(&t->lock);
    return code < 0 ? err_set(err, code, "so it was told") : 0;
}

static void wait_runs(struct tally *t, size_t runs)
{
    mutex_lock(&t->lock);
    while (t->runs < runs)
        cond_wait(&t->changed, &t->lock);
    mutex_unlock(&t->lock);
}

static void release_all(struct tally *t)
{
    mutex_lock(&t->lock);
    t->hold = false;
    cond_broadcast(&t->changed);
    mutex_unlock(&t->lock);
}

static const struct queue_weight queues[] = {
    {"api", 64}, {"events3", 16}, {"events2", 12}, {"events1", 8}, {"bulk", 7}, {"slow", 2},
};

static struct worker *start(struct queue *q, struct tally *t, size_t threads)
{
    struct task_handler handlers[] = {{"test", handle, t}};
    struct worker_options o = {.queue = q,
                               .queues = queues,
                               .queue_count = ARRAY_SIZE(queues),
                               .handlers = handlers,
                               .handler_count = 1,
                               .threads = threads,
                               .grace_ms = 1};
    struct worker *w;
    struct err err = {0};

    CHECK_OK(worker_start(&w, &o, &err));
    return w;
}

static void add(struct queue *q, const char *id, const char *type, const char *queue)
{
    struct task t = {.type = str_z(type), .id = str_z(id), .queue = str_z(queue)};
    struct err err = {0};

    CHECK_OK(queue_add(q, &t, 0, &err));
}

/* Until the command answers this; the test's own time limit bounds it. */
static void await_reply(struct store *s, const char *line, const char *want)
{
    const char *got;

    do {
        CHECK_INT(ask(s, line, &got), 0);
    } while (strcmp(got, want) != 0);
}

TEST_FOUR(worker, runs_what_is_there_and_what_comes)
{
    struct store *s = f->stores[DB_QUEUE];
    struct queue *q = queue_new(s);
    struct tally t;

    tally_init(&t);
    add(q, "before", "test", "events1");
    struct worker *w = start(q, &t, 4);
    wait_runs(&t, 1);
    for (int i = 0; i < 50; i++) {
        char id[16];
        snprintf(id, sizeof(id), "t%d", i);
        add(q, id, "test", i % 2 ? "events3" : "slow");
    }
    wait_runs(&t, 51);
    await_reply(s, "EXISTS asynq:{events1}:active asynq:{events3}:active", "0");
    worker_stop(w);
    check_reply(s, "GET asynq:{events3}:processed", "\"25\"");
    check_reply(s, "EXISTS asynq:{events3}:pending asynq:{slow}:pending", "0");
    check_reply(s, "ZCARD asynq:servers", "0");
    CHECK_INT(t.runs, 51);
    queue_free(q);
}

TEST_FOUR(worker, a_stop_puts_back_what_does_not_end)
{
    struct store *s = f->stores[DB_QUEUE];
    struct queue *q = queue_new(s);
    struct tally t;

    tally_init(&t);
    t.hold = true;
    struct worker *w = start(q, &t, 2);
    add(q, "x", "test", "events1");
    wait_runs(&t, 1);
    check_reply(s, "HGET asynq:{events1}:t:x state", "\"active\"");
    worker_stop(w);
    CHECK_INT(t.ended, 1);
    check_reply(s, "HGET asynq:{events1}:t:x state", "\"pending\"");
    check_reply(s, "EXISTS asynq:{events1}:lease", "0");
    queue_free(q);
}

/* Looks at nothing but its own flag, as one that waits for a storage. */
static int handle_deaf(struct task_run *run, struct err *err)
{
    struct tally *t = run->ctx;

    mutex_lock(&t->lock);
    t->runs++;
    cond_broadcast(&t->changed);
    while (t->hold)
        cond_wait(&t->changed, &t->lock);
    mutex_unlock(&t->lock);
    return err_set(err, ERR_UNAVAILABLE, "broken off");
}

static void end_deaf(void *ctx)
{
    release_all(ctx);
}

TEST_FOUR(worker, a_stop_ends_what_tasks_wait_for)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct tally t;
    struct err err = {0};
    struct worker *w;

    tally_init(&t);
    t.hold = true;
    struct task_handler handlers[] = {{"test", handle_deaf, &t}};
    struct worker_options o = {.queue = q,
                               .queues = queues,
                               .queue_count = ARRAY_SIZE(queues),
                               .handlers = handlers,
                               .handler_count = 1,
                               .threads = 2,
                               .grace_ms = 1,
                               .on_end = end_deaf,
                               .end_ctx = &t};
    CHECK_OK(worker_start(&w, &o, &err));
    add(q, "a", "test", "api");
    wait_runs(&t, 1);
    worker_stop(w);
    check_reply(f->stores[DB_QUEUE], "HGET asynq:{api}:t:a state", "\"pending\"");
    queue_free(q);
}

TEST_FOUR(worker, a_failure_waits_for_its_retry_and_what_cannot_be_mended_is_archived)
{
    struct store *s = f->stores[DB_QUEUE];
    struct queue *q = queue_new(s);
    struct tally t;

    tally_init(&t);
    t.code = ERR_IO;
    struct worker *w = start(q, &t, 2);
    add(q, "failing", "test", "events1");
    await_reply(s, "HGET asynq:{events1}:t:failing state", "\"retry\"");
    add(q, "strange", "unheard of", "events1");
    await_reply(s, "HGET asynq:{events1}:t:strange state", "\"archived\"");
    mutex_lock(&t.lock);
    t.code = ERR_AGAIN;
    mutex_unlock(&t.lock);
    add(q, "busy", "test", "events2");
    await_reply(s, "HGET asynq:{events2}:t:busy state", "\"retry\"");
    check_reply(s, "EXISTS asynq:{events2}:failed", "0");
    worker_stop(w);
    queue_free(q);
}

TEST_FOUR(worker, a_cancelled_task_is_ended_and_archived)
{
    struct store *s = f->stores[DB_QUEUE];
    struct queue *q = queue_new(s);
    struct tally t;
    struct err err = {0};

    tally_init(&t);
    t.hold = true;
    struct worker *w = start(q, &t, 2);
    add(q, "x", "test", "events1");
    wait_runs(&t, 1);
    CHECK_OK(queue_cancel(q, STR("x"), &err));
    await_reply(s, "HGET asynq:{events1}:t:x state", "\"archived\"");
    CHECK_INT(t.ended, 1);
    worker_stop(w);
    queue_free(q);
}

/* A worker that hangs for longer than its lease writes no outcome over another's. */
TEST_FOUR(worker, a_task_that_was_taken_away_stays_the_others)
{
    struct store *s = f->stores[DB_QUEUE];
    struct queue *q = queue_new(s);
    struct arena a = {0};
    struct tally t;
    struct task mine;
    struct str name = STR("events1");
    struct store_args names = {&name, 1};
    struct err err = {0};
    size_t moved;

    tally_init(&t);
    t.hold = true;
    struct worker *w = start(q, &t, 1);
    add(q, "x", "test", "events1");
    wait_runs(&t, 1);
    CHECK_OK(queue_pause(q, name, true, &err)); /* the worker takes nothing more from it */
    check_reply(s, "ZADD asynq:{events1}:lease XX 1 x", "0");
    CHECK_OK(queue_recover(q, &names, &moved, &err));
    CHECK_OK(queue_forward(q, &names, &moved, &err));
    check_reply(s, "DEL asynq:{events1}:paused", "1");
    CHECK_OK(queue_take(q, &a, &name, 1, &mine, &err));
    release_all(&t);
    worker_stop(w);
    check_reply(s, "HGET asynq:{events1}:t:x state", "\"active\"");
    CHECK_OK(queue_done(q, &mine, &err));
    arena_release(&a);
    queue_free(q);
}

/* Counts copies and events; one thread runs them. */
struct mixed {
    struct tally t;
    size_t copies, events, copies_before; /* the last: copies that ran before the 50th event */
};

static int count_mixed(struct task_run *run, struct err *err)
{
    struct mixed *m = run->ctx;

    mutex_lock(&m->t.lock);
    if (str_eq(run->task->type, STR("copy")))
        m->copies++;
    else if (++m->events == 50)
        m->copies_before = m->copies;
    m->t.runs++;
    cond_broadcast(&m->t.changed);
    mutex_unlock(&m->t.lock);
    return 0;
}

/* Bulk work that is always there does not keep events waiting (Q8). */
TEST_FOUR(worker, events_do_not_starve_behind_copies)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct task tasks[500];
    char ids[500][16];
    struct mixed m = {0};
    struct err err = {0};
    struct worker *w;
    size_t added;

    tally_init(&m.t);
    for (int i = 0; i < 500; i++) {
        snprintf(ids[i], sizeof(ids[i]), "c%d", i);
        tasks[i] = (struct task){.type = i < 450 ? STR("copy") : STR("event"),
                                 .id = str_z(ids[i]),
                                 .queue = i < 450 ? STR("bulk") : STR("events1")};
    }
    CHECK_OK(queue_add_many(q, tasks, 500, &added, &err));
    struct task_handler handlers[] = {{"copy", count_mixed, &m}, {"event", count_mixed, &m}};
    struct worker_options o = {.queue = q,
                               .queues = queues,
                               .queue_count = ARRAY_SIZE(queues),
                               .handlers = handlers,
                               .handler_count = 2,
                               .threads = 1};
    CHECK_OK(worker_start(&w, &o, &err));
    wait_runs(&m.t, 500);
    worker_stop(w);
    CHECK(m.copies_before > 5 && m.copies_before < 400); /* about 44, by the weights 7 and 8 */
    queue_free(q);
}

/* Each room brings its queues and handlers: there is no limit on their number. */
TEST_FOUR(worker, takes_from_any_number_of_queues_and_runs_any_number_of_types)
{
    enum { MANY = 100 };
    struct store *s = f->stores[DB_QUEUE];
    struct queue *q = queue_new(s);
    struct queue_weight many[MANY];
    struct task_handler handlers[MANY];
    char names[MANY][16];
    struct tally t;
    struct worker *w;
    struct err err = {0};

    tally_init(&t);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        many[i] = (struct queue_weight){names[i], i + 1};
        handlers[i] = (struct task_handler){names[i], handle, &t};
    }
    for (int i = 0; i < MANY; i++)
        add(q, "x", names[i], names[MANY - 1 - i]);
    struct worker_options o = {.queue = q,
                               .queues = many,
                               .queue_count = MANY,
                               .handlers = handlers,
                               .handler_count = MANY,
                               .threads = 4};
    CHECK_OK(worker_start(&w, &o, &err));
    wait_runs(&t, MANY);
    worker_stop(w);
    check_reply(s, "GET asynq:{n0}:processed", "\"1\"");
    check_reply(s, "GET asynq:{n99}:processed", "\"1\"");
    queue_free(q);
}
