/* The work queue, over both engines (docs/queue.md Q1 to Q9). */
#include "coord/queue.h"
#include "base/clock.h"
#include "coord/message.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

#include <stdio.h>

static const struct str events = {"events1", 7};
static const struct store_args names = {&events, 1};

static struct task task(const char *id, const char *payload)
{
    return (struct task){
        .type = STR("object:sync"), .payload = str_z(payload), .id = str_z(id), .queue = events};
}

static void add(struct queue *q, const char *id, int64_t delay_s)
{
    struct task t = task(id, "{}");
    struct err err = {0};

    CHECK_OK(queue_add(q, &t, delay_s, &err));
}

/* The id of what is taken, "" for nothing; in `a`. */
static struct str take(struct queue *q, struct arena *a, struct task *out)
{
    struct err err = {0};
    int code = queue_take(q, a, &events, 1, out, &err);

    if (code == ERR_NOT_FOUND)
        return STR("");
    CHECK_OK(code);
    return out->id;
}

static void check_state(struct queue *q, const char *id, enum task_state state)
{
    struct arena a = {0};
    struct task_info info;
    struct err err = {0};

    CHECK_OK(queue_task(q, &a, events, str_z(id), &info, &err));
    CHECK_INT(info.state, state);
    arena_release(&a);
}

static void move_clock(struct four *f, int64_t seconds)
{
    if (f->db)
        embedded_shift_clock(f->stores[DB_QUEUE], seconds * MS_PER_S);
}

TEST_FOUR(queue, tasks_are_taken_in_the_order_of_their_coming)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct task t;
    struct err err = {0};

    add(q, "one", 0);
    add(q, "two", 0);
    CHECK_STR(take(q, &a, &t), STR("one"));
    CHECK_STR(t.type, STR("object:sync"));
    CHECK_INT(t.retry_max, TASK_RETRY_MAX);
    CHECK_OK(queue_done(q, &t, &err));
    CHECK_STR(take(q, &a, &t), STR("two"));
    CHECK_OK(queue_done(q, &t, &err));
    CHECK_STR(take(q, &a, &t), STR(""));
    arena_release(&a);
    queue_free(q);
}

/* The layout is Asynq's: its tools look at these keys. */
TEST_FOUR(queue, keys_are_those_of_asynq)
{
    struct store *s = f->stores[DB_QUEUE];
    struct queue *q = queue_new(s);
    struct arena a = {0};
    struct task t;
    struct err err = {0};

    add(q, "id1", 0);
    add(q, "id2", 100);
    check_reply(s, "SMEMBERS asynq:queues", "[\"events1\"]");
    check_reply(s, "LRANGE asynq:{events1}:pending 0 -1", "[\"id1\"]");
    check_reply(s, "HGET asynq:{events1}:t:id1 state", "\"pending\"");
    check_reply(s, "HEXISTS asynq:{events1}:t:id1 pending_since", "1");
    check_reply(s, "ZRANGE asynq:{events1}:scheduled 0 -1", "[\"id2\"]");
    CHECK_STR(take(q, &a, &t), STR("id1"));
    check_reply(s, "LRANGE asynq:{events1}:active 0 -1", "[\"id1\"]");
    check_reply(s, "ZRANGE asynq:{events1}:lease 0 -1", "[\"id1\"]");
    check_reply(s, "HGET asynq:{events1}:t:id1 state", "\"active\"");
    check_reply(s, "HEXISTS asynq:{events1}:t:id1 pending_since", "0");
    CHECK_OK(queue_done(q, &t, &err));
    check_reply(s, "EXISTS asynq:{events1}:t:id1 asynq:{events1}:active asynq:{events1}:lease",
                "0");
    check_reply(s, "GET asynq:{events1}:processed", "\"1\"");
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, an_id_is_there_once_until_it_is_archived)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct task t, again = task("x", "{}");
    struct err err = {0};

    add(q, "x", 0);
    CHECK_ERR(queue_add(q, &again, 0, &err), ERR_EXISTS);
    CHECK_STR(take(q, &a, &t), STR("x"));
    CHECK_ERR(queue_add(q, &again, 0, &err), ERR_EXISTS);
    CHECK_OK(queue_archive(q, &t, STR("no use"), &err));
    check_state(q, "x", TASK_ARCHIVED);
    CHECK_OK(queue_add(q, &again, 0, &err)); /* Q7 */
    check_state(q, "x", TASK_PENDING);
    check_reply(f->stores[DB_QUEUE], "ZCARD asynq:{events1}:archived", "0");
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, many_are_added_in_one_step_without_those_that_are_there)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct task tasks[3] = {task("a", "1"), task("b", "2"), task("a", "3")};
    struct err err = {0};
    size_t added;

    add(q, "b", 0);
    CHECK_OK(queue_add_many(q, tasks, 3, &added, &err));
    CHECK_INT(added, 1);
    check_reply(f->stores[DB_QUEUE], "LLEN asynq:{events1}:pending", "2");
    CHECK_OK(queue_add_many(q, tasks, 0, &added, &err));
    CHECK_INT(added, 0);
    queue_free(q);
}

TEST_FOUR(queue, a_unique_task_is_there_once_for_its_payload)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct task t, first = task("", "p"), other = task("", "q");
    struct err err = {0};

    CHECK_OK(queue_add_unique(q, &first, 60, &err));
    CHECK_ERR(queue_add_unique(q, &first, 60, &err), ERR_EXISTS);
    CHECK_OK(queue_add_unique(q, &other, 60, &err));
    take(q, &a, &t);
    CHECK_OK(queue_done(q, &t, &err));
    CHECK_OK(queue_add_unique(q, &first, 60, &err)); /* done frees it */
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, an_outcome_counts_only_from_who_has_the_task)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct task t;
    struct err err = {0};

    add(q, "x", 0);
    take(q, &a, &t);
    CHECK_OK(queue_requeue(q, &t, &err));
    CHECK_ERR(queue_done(q, &t, &err), ERR_NOT_FOUND);
    CHECK_ERR(queue_retry(q, &t, 1, true, STR("e"), &err), ERR_NOT_FOUND);
    CHECK_ERR(queue_archive(q, &t, STR("e"), &err), ERR_NOT_FOUND);
    check_state(q, "x", TASK_PENDING);
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, one_that_was_put_back_at_a_stop_comes_first)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct task t;
    struct err err = {0};

    add(q, "one", 0);
    add(q, "two", 0);
    take(q, &a, &t);
    CHECK_OK(queue_requeue(q, &t, &err));
    CHECK_STR(take(q, &a, &t), STR("one"));
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, a_failure_is_tried_again_until_the_tries_are_used)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct task t, wanted = task("x", "{}");
    struct err err = {0};
    size_t moved;

    wanted.retry_max = 2;
    CHECK_OK(queue_add(q, &wanted, 0, &err));
    for (int i = 0; i < 2; i++) {
        CHECK_STR(take(q, &a, &t), STR("x"));
        CHECK_INT(t.retried, i);
        CHECK_OK(queue_retry(q, &t, 0, true, STR("it rained"), &err));
        check_state(q, "x", TASK_RETRY);
        CHECK_OK(queue_forward(q, &names, &moved, &err));
        CHECK_INT(moved, 1);
    }
    CHECK_STR(take(q, &a, &t), STR("x"));
    CHECK_STR(t.error, STR("it rained"));
    CHECK_OK(queue_retry(q, &t, 0, true, STR("again"), &err));
    check_state(q, "x", TASK_ARCHIVED);
    check_reply(f->stores[DB_QUEUE], "GET asynq:{events1}:failed", "\"3\"");
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, waiting_for_something_uses_no_try)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct task t;
    struct err err = {0};
    size_t moved;

    add(q, "x", 0);
    for (int i = 0; i < 30; i++) {
        CHECK_STR(take(q, &a, &t), STR("x"));
        CHECK_INT(t.retried, 0);
        CHECK_STR(t.error, i == 0 ? STR("") : STR("a busy lock")); /* what it waits for is told */
        CHECK_OK(queue_retry(q, &t, 0, false, i == 0 ? STR("a busy lock") : STR(""), &err));
        CHECK_OK(queue_forward(q, &names, &moved, &err));
    }
    check_reply(f->stores[DB_QUEUE], "EXISTS asynq:{events1}:failed asynq:{events1}:processed",
                "0");
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, a_task_whose_lease_ended_goes_to_others)
{
    struct store *s = f->stores[DB_QUEUE];
    struct queue *q = queue_new(s);
    struct arena a = {0};
    struct task dead, t;
    struct store_args lost;
    struct err err = {0};
    size_t moved;

    add(q, "x", 0);
    take(q, &a, &dead);
    CHECK_OK(queue_recover(q, &names, &moved, &err));
    CHECK_INT(moved, 0);
    check_reply(s, "ZADD asynq:{events1}:lease XX 1 x", "0"); /* long ago */
    CHECK_OK(queue_recover(q, &names, &moved, &err));
    CHECK_INT(moved, 1);
    CHECK_OK(queue_forward(q, &names, &moved, &err));
    CHECK_STR(take(q, &a, &t), STR("x"));
    CHECK_INT(t.retried, 1);
    CHECK_ERR(queue_done(q, &dead, &err), ERR_NOT_FOUND); /* it is another's now */
    CHECK_ERR(queue_retry(q, &dead, 0, true, STR("late"), &err), ERR_NOT_FOUND);
    CHECK_OK(queue_extend(q, &a, events, &(struct store_args){(struct str[]){t.id, t.token}, 2},
                          &lost, &err));
    CHECK_INT(lost.argc, 0);
    CHECK_OK(queue_done(q, &t, &err));
    CHECK_OK(queue_extend(q, &a, events, &(struct store_args){(struct str[]){t.id, t.token}, 2},
                          &lost, &err));
    CHECK_INT(lost.argc, 1);
    CHECK_STR(lost.argv[0], STR("x"));
    arena_release(&a);
    queue_free(q);
}

/* A worker that slept and came back in time keeps what it has. */
TEST_FOUR(queue, a_lease_of_a_clock_that_was_ahead_has_ended)
{
    struct store *s = f->stores[DB_QUEUE];
    struct queue *q = queue_new(s);
    struct arena a = {0};
    struct task dead, t;
    struct err err = {0};
    size_t moved;

    add(q, "x", 0);
    take(q, &a, &dead);
    check_reply(s, "ZADD asynq:{events1}:lease XX 99999999999 x", "0");
    CHECK_OK(queue_recover(q, &names, &moved, &err));
    CHECK_INT(moved, 1);
    CHECK_ERR(queue_done(q, &dead, &err), ERR_NOT_FOUND);
    CHECK_OK(queue_run_now(q, STR("events1"), STR("x"), &err));
    CHECK_STR(take(q, &a, &t), STR("x"));
    CHECK_OK(queue_done(q, &t, &err));
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, a_lease_that_was_pushed_back_is_not_recovered)
{
    struct store *s = f->stores[DB_QUEUE];
    struct queue *q = queue_new(s);
    struct arena a = {0};
    struct task t;
    struct store_args lost;
    struct err err = {0};
    size_t moved;

    add(q, "x", 0);
    take(q, &a, &t);
    check_reply(s, "ZADD asynq:{events1}:lease XX 1 x", "0");
    CHECK_OK(queue_extend(q, &a, events, &(struct store_args){(struct str[]){t.id, t.token}, 2},
                          &lost, &err));
    CHECK_OK(queue_recover(q, &names, &moved, &err));
    CHECK_INT(moved, 0);
    check_state(q, "x", TASK_ACTIVE);
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, a_scheduled_task_waits_and_can_be_pushed_back)
{
    struct store *s = f->stores[DB_QUEUE];
    struct queue *q = queue_new(s);
    struct arena a = {0};
    struct task t;
    struct str ids[] = {STR("x"), STR("nobody")};
    struct err err = {0};
    size_t moved;

    add(q, "x", 1000);
    CHECK_OK(queue_forward(q, &names, &moved, &err));
    CHECK_INT(moved, 0);
    CHECK_STR(take(q, &a, &t), STR(""));
    check_reply(s, "ZADD asynq:{events1}:scheduled XX 1 x", "0");
    CHECK_OK(queue_postpone(q, events, ids, 2, 1000, &err));
    CHECK_OK(queue_forward(q, &names, &moved, &err));
    CHECK_INT(moved, 0);
    check_reply(s, "ZADD asynq:{events1}:scheduled XX 1 x", "0");
    CHECK_OK(queue_forward(q, &names, &moved, &err));
    CHECK_STR(take(q, &a, &t), STR("x"));
    check_reply(s, "EXISTS asynq:{events1}:t:nobody", "0");
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, a_paused_queue_gives_nothing)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct queue_stats *stats;
    struct task t;
    struct err err = {0};
    size_t count;

    add(q, "x", 0);
    CHECK_OK(queue_pause(q, events, true, &err));
    CHECK_OK(queue_pause(q, events, true, &err));
    CHECK_STR(take(q, &a, &t), STR(""));
    CHECK_OK(queue_list(q, &a, &stats, &count, &err));
    CHECK_INT(count, 1);
    CHECK(stats[0].paused);
    CHECK_INT(stats[0].size[TASK_PENDING], 1);
    CHECK_OK(queue_pause(q, events, false, &err));
    CHECK_STR(take(q, &a, &t), STR("x"));
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, done_with_a_retention_is_kept_that_long)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct task t, wanted = task("x", "{}");
    struct err err = {0};
    size_t removed;

    wanted.retention_s = 3600;
    CHECK_OK(queue_add(q, &wanted, 0, &err));
    take(q, &a, &t);
    CHECK_OK(queue_done(q, &t, &err));
    check_state(q, "x", TASK_COMPLETED);
    CHECK_OK(queue_clean(q, &names, &removed, &err));
    CHECK_INT(removed, 0);
    check_reply(f->stores[DB_QUEUE], "ZADD asynq:{events1}:completed XX 1 x", "0");
    CHECK_OK(queue_clean(q, &names, &removed, &err));
    CHECK_INT(removed, 1);
    check_reply(f->stores[DB_QUEUE], "EXISTS asynq:{events1}:t:x", "0");
    arena_release(&a);
    queue_free(q);
}

TEST_FOUR(queue, operators_see_run_and_delete_tasks)
{
    struct queue *q = queue_new(f->stores[DB_QUEUE]);
    struct arena a = {0};
    struct queue_page page = {.queue = events, .state = TASK_SCHEDULED, .limit = 10};
    struct task_info *infos;
    struct task t;
    struct err err = {0};
    size_t count;

    add(q, "a", 100);
    add(q, "b", 200);
    add(q, "c", 0);
    CHECK_OK(queue_tasks(q, &a, &page, &infos, &count, &err));
    CHECK_INT(count, 2);
    CHECK_STR(infos[0].task.id, STR("a"));
    CHECK(infos[0].due_s < infos[1].due_s);
    CHECK_OK(queue_run_now(q, events, STR("b"), &err));
    page = (struct queue_page){events, TASK_PENDING, 0, 10};
    CHECK_OK(queue_tasks(q, &a, &page, &infos, &count, &err));
    CHECK_INT(count, 2);
    CHECK_STR(infos[0].task.id, STR("c"));
    page.skip = 1;
    CHECK_OK(queue_tasks(q, &a, &page, &infos, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(infos[0].task.id, STR("b"));
    CHECK_OK(queue_delete(q, events, STR("a"), &err));
    CHECK_ERR(queue_delete(q, events, STR("a"), &err), ERR_NOT_FOUND);
    take(q, &a, &t);
    CHECK_ERR(queue_delete(q, events, t.id, &err), ERR_CONFLICT);
    CHECK_OK(queue_delete(q, events, STR("b"), &err));
    arena_release(&a);
    queue_free(q);
}

TEST(queue, the_stores_clock_decides_when_a_task_is_due)
{
    struct four f = {0};
    struct arena a = {0};
    struct task t;
    struct err err = {0};
    size_t moved;

    four_open_embedded(&f);
    struct queue *q = queue_new(f.stores[DB_QUEUE]);
    add(q, "x", 1000);
    move_clock(&f, 900);
    CHECK_OK(queue_forward(q, &names, &moved, &err));
    CHECK_INT(moved, 0);
    move_clock(&f, 1002);
    CHECK_OK(queue_forward(q, &names, &moved, &err));
    CHECK_STR(take(q, &a, &t), STR("x"));
    move_clock(&f, 1002 + QUEUE_LEASE_S + 1);
    CHECK_OK(queue_recover(q, &names, &moved, &err));
    CHECK_INT(moved, 1);
    arena_release(&a);
    queue_free(q);
    four_close(&f);
}
