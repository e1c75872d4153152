/* Commits of one branch wait for each other; atomic writes have a limit. */
#include "lake/commit_queue.h"
#include "base/clock.h"
#include "unit/lake/lake_lab.h"

enum { WAITERS = 8, LONG_MS = 60 * 1000 };

/* Commits that wait for one branch, and the order in which their turns came. */
struct line {
    struct commit_queue *queue;
    _Atomic(int) order[WAITERS], came, refused;
};

struct waiter {
    struct line *line;
    struct thread thread;
    int number;
};

static void waiter_run(void *ctx)
{
    struct waiter *w = ctx;
    struct commit_turn *t = commit_turn_take(w->line->queue, STR("p"), STR("main"), LONG_MS);

    if (!t) {
        w->line->refused++;
        return;
    }
    w->line->order[w->line->came++] = w->number;
    commit_turn_end(w->line->queue, t);
}

TEST(lake_commit_queue, turns_come_in_the_order_of_asking)
{
    struct line line = {.queue = commit_queue_new(0)};
    struct waiter waiters[WAITERS] = {0};
    struct commit_turn *first = commit_turn_take(line.queue, STR("p"), STR("main"), LONG_MS);
    struct err err = {0};

    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.line = &line, .number = i};
        CHECK_OK(thread_start(&waiters[i].thread, "waiter", 0, waiter_run, &waiters[i], &err));
        CHECK_SOON(commit_queue_count(line.queue) == (size_t)i + 2);
    }
    CHECK_INT(line.came, 0);
    CHECK(commit_turn_is_taken(line.queue, STR("p"), STR("main")));
    commit_turn_end(line.queue, first);
    for (int i = 0; i < WAITERS; i++)
        thread_join(&waiters[i].thread);
    for (int i = 0; i < WAITERS; i++)
        CHECK_INT(line.order[i], i);
    CHECK(!commit_turn_is_taken(line.queue, STR("p"), STR("main")));
    commit_queue_free(line.queue);
    commit_queue_free(NULL);
}

TEST(lake_commit_queue, other_branches_and_repositories_do_not_wait)
{
    struct commit_queue *q = commit_queue_new(0);
    struct commit_turn *turns[] = {commit_turn_take(q, STR("p"), STR("main"), LONG_MS),
                                   commit_turn_take(q, STR("p"), STR("other"), LONG_MS),
                                   commit_turn_take(q, STR("q"), STR("main"), LONG_MS)};

    CHECK(!commit_turn_is_taken(q, STR("q"), STR("other")));
    for (size_t i = 0; i < ARRAY_SIZE(turns); i++)
        commit_turn_end(q, turns[i]);
    commit_queue_free(q);
}

TEST(lake_commit_queue, few_wait_behind_a_slow_turn)
{
    enum { SLOW_MAX = 2 };
    struct line line = {.queue = commit_queue_new(SLOW_MAX)};
    struct waiter waiters[WAITERS] = {0};
    struct commit_turn *first = commit_turn_take(line.queue, STR("p"), STR("main"), LONG_MS);
    struct commit_turn *other = commit_turn_take(line.queue, STR("p"), STR("other"), LONG_MS);
    struct err err = {0};

    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.line = &line, .number = i};
        CHECK_OK(thread_start(&waiters[i].thread, "waiter", 0, waiter_run, &waiters[i], &err));
        CHECK_SOON(commit_queue_count(line.queue) == (size_t)i + 3);
    }
    commit_turn_set_slow(line.queue, first, true);
    CHECK_SOON(line.refused == WAITERS - SLOW_MAX); /* those who wait already are refused, too */
    CHECK(!commit_turn_take(line.queue, STR("p"), STR("main"), LONG_MS));
    commit_turn_set_slow(line.queue, other, true);
    CHECK(!commit_turn_take(line.queue, STR("p"), STR("other"), LONG_MS));
    commit_turn_end(line.queue, other);
    commit_turn_set_slow(line.queue, first, false);
    commit_turn_end(line.queue, first);
    for (int i = 0; i < WAITERS; i++)
        thread_join(&waiters[i].thread);
    CHECK_INT(line.came, SLOW_MAX);
    first = commit_turn_take(line.queue, STR("p"), STR("main"), LONG_MS);
    CHECK(first);
    commit_turn_end(line.queue, first);
    commit_queue_free(line.queue);
}

TEST(lake_commit_queue, a_commit_that_has_waited_for_long_goes_on)
{
    struct commit_queue *q = commit_queue_new(0);
    struct commit_turn *slow = commit_turn_take(q, STR("p"), STR("main"), LONG_MS);
    uint64_t began = clock_mono_ms();
    struct commit_turn *next = commit_turn_take(q, STR("p"), STR("main"), 50);

    CHECK(clock_mono_ms() - began >= 50);
    commit_turn_end(q, next);
    CHECK(commit_turn_is_taken(q, STR("p"), STR("main"))); /* the slow one */
    commit_turn_end(q, slow);
    CHECK(!commit_turn_is_taken(q, STR("p"), STR("main")));
    commit_queue_free(q);
}

LAKE_LAB_TEST(lake_tx, a_write_of_too_many_changes_makes_none)
{
    struct kv_value value;
    struct lake_tx tx;
    struct err err = {0};

    lake_tx_init(&tx, &lab->arena);
    for (int i = 0; i <= KV_CHANGES_MAX; i++)
        lake_tx_put(&tx, lake_key_tag(&lab->arena, STR("p"), arena_fmt(&lab->arena, "%d", i)),
                    STR("v"));
    CHECK_ERR(lake_tx_write(lab->lake, &tx, NULL, &err), ERR_TOO_LARGE);
    CHECK_ERR(kv_get(lab->kv_lab->kv, NULL, &lab->arena,
                     lake_key_tag(&lab->arena, STR("p"), STR("0")), &value, &err),
              ERR_NOT_FOUND);
}
