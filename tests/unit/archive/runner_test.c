/* Runners over both engines: threads that claim, news, lost locks, stops, and the keeper. */
#include "archive/runner.h"
#include "base/clock.h"
#include "unit/archive/schedule_lab.h"

#include <stdio.h>

struct runner_lab {
    struct schedule_lab lab;
    struct runner *r;
    _Atomic(int) synced, cancelled, found, at_once, most;
    _Atomic(bool) blocks;  /* a sync waits until it is cancelled */
    _Atomic(bool) stuck;   /* a sync waits until this is false, whatever happens */
    _Atomic(int) outcome;  /* enum runner_outcome */
    _Atomic(bool) no_sets; /* every satellite is down */
};

static enum runner_outcome fake_sync(void *ctx, struct runner_job *job)
{
    struct runner_lab *l = ctx;
    int now = atomic_fetch_add(&l->at_once, 1) + 1;

    if (now > atomic_load(&l->most))
        atomic_store(&l->most, now);
    while (atomic_load(&l->stuck) || (atomic_load(&l->blocks) && !atomic_load(job->cancel)))
        test_waits(&(uint64_t){0});
    atomic_fetch_sub(&l->at_once, 1);
    if (atomic_load(job->cancel)) {
        atomic_fetch_add(&l->cancelled, 1);
        return RUNNER_BACK;
    }
    atomic_fetch_add(&l->synced, 1);
    return (enum runner_outcome)atomic_load(&l->outcome);
}

static int fake_sets(void *ctx, struct arena *a, struct schedule_set **out, size_t *count,
                     uint64_t *retry_ms, struct err *err)
{
    struct runner_lab *l = ctx;

    *out = l->lab.sets;
    *count = atomic_load(&l->no_sets) ? 0 : LAB_SETS;
    *retry_ms = UINT64_MAX;
    return 0;
}

static void lab_table(void *ctx, struct slots *out)
{
    *out = ((struct runner_lab *)ctx)->lab.table;
}

static int lab_found(void *ctx, const struct archive_account *c, struct err *err)
{
    atomic_fetch_add(&((struct runner_lab *)ctx)->found, 1);
    return 0;
}

static void runner_lab_start(struct runner_lab *l, struct four *f, size_t threads, uint64_t lock_ms)
{
    struct err err = {0};

    schedule_lab_open(&l->lab, f, lock_ms);
    struct runner_options o = {.schedule = l->lab.s,
                               .app = l->lab.app,
                               .threads = threads,
                               .sync = fake_sync,
                               .sets = fake_sets,
                               .table = lab_table,
                               .found = lab_found,
                               .ctx = l};
    CHECK_OK(runner_start(&l->r, &o, &err));
}

static void runner_lab_open(struct runner_lab *l, struct four *f, size_t threads, uint64_t lock_ms)
{
    memset(l, 0, sizeof(*l));
    runner_lab_start(l, f, threads, lock_ms);
}

static void runner_lab_close(struct runner_lab *l)
{
    CHECK(runner_stop(l->r, clock_mono_ns() + 60 * NS_PER_S));
    schedule_lab_check(&l->lab);
    schedule_lab_close(&l->lab);
}

static void add_many(struct runner_lab *l, int count)
{
    struct archive_account accounts[SCHEDULE_BATCH_MAX];
    char member[40];
    struct err err = {0};

    for (int i = 0; i < count; i++) {
        snprintf(member, sizeof(member), "github.com/u%d", i);
        accounts[i] = schedule_lab_account(&l->lab, member);
    }
    CHECK_OK(schedule_add(l->lab.s, accounts, (size_t)count, NULL, &err));
}

TEST_FOUR(archive_runner, every_account_is_synced_once_by_several_threads)
{
    struct runner_lab l;
    struct runner_numbers n;

    runner_lab_open(&l, f, 4, 0);
    add_many(&l, 200);
    CHECK_SOON(atomic_load(&l.synced) == 200);
    CHECK_SOON((runner_numbers(l.r, &n), n.ended[RUNNER_FULL] == 200));
    CHECK_INT(n.threads, 4);
    CHECK_INT(n.busy, 0);
    CHECK_INT(n.claims, 200);
    CHECK_STR(schedule_lab_ask(&l.lab, "ZCOUNT", "tracked", "-1", "-1", NULL), STR("0"));
    runner_lab_close(&l);
    CHECK_INT(atomic_load(&l.synced), 200);
}

/* Nobody polls: the message wakes a runner that would sleep for 30 s. */
TEST_FOUR(archive_runner, news_wakes_a_runner)
{
    struct runner_lab l;

    runner_lab_open(&l, f, 2, 0);
    for (int i = 0; i < 5; i++) {
        char member[40];
        snprintf(member, sizeof(member), "github.com/n%d", i);
        uint64_t since = clock_mono_ms();
        schedule_lab_add(&l.lab, member);
        CHECK_SOON(atomic_load(&l.synced) == i + 1);
        CHECK(clock_mono_ms() - since < 20000);
    }
    runner_lab_close(&l);
}

TEST_FOUR(archive_runner, a_sync_whose_lock_is_lost_is_cancelled)
{
    struct runner_lab l;
    struct runner_numbers n;

    runner_lab_open(&l, f, 1, 1000);
    atomic_store(&l.blocks, true);
    schedule_lab_add(&l.lab, "github.com/octocat");
    CHECK_SOON(atomic_load(&l.at_once) == 1);
    schedule_lab_ask(&l.lab, "SET", "lock:octocat", "stranger", "PX", "1500", NULL);
    CHECK_SOON(atomic_load(&l.cancelled) == 1);
    atomic_store(&l.blocks, false);
    /* The stranger's lock is honoured until it ends; then the account is synced. */
    CHECK_SOON(atomic_load(&l.synced) == 1);
    CHECK_SOON((runner_numbers(l.r, &n), n.ended[RUNNER_FULL] == 1));
    CHECK_INT(n.lost, 1);
    CHECK_INT(n.ended[RUNNER_BACK], 1);
    runner_lab_close(&l);
}

TEST_FOUR(archive_runner, failures_are_held_and_others_go_on)
{
    struct runner_lab l;

    runner_lab_open(&l, f, 2, 0);
    atomic_store(&l.outcome, RUNNER_FAILED);
    add_many(&l, 20);
    CHECK_SOON(atomic_load(&l.synced) == 20);
    CHECK_SOON(str_eq(schedule_lab_ask(&l.lab, "ZCARD", "w:archive:hold", NULL), STR("20")));
    atomic_store(&l.outcome, RUNNER_FULL);
    schedule_lab_add(&l.lab, "github.com/octocat");
    CHECK_SOON(atomic_load(&l.synced) == 21);
    runner_lab_close(&l);
}

/* A stop cancels what runs, and puts it back. */
TEST_FOUR(archive_runner, a_stop_cancels_and_puts_back)
{
    struct runner_lab l;

    runner_lab_open(&l, f, 3, 0);
    atomic_store(&l.blocks, true);
    add_many(&l, 3);
    CHECK_SOON(atomic_load(&l.at_once) == 3);
    runner_lab_close(&l);
    CHECK_INT(atomic_load(&l.cancelled), 3);
}

TEST_FOUR(archive_runner, a_stop_that_cannot_end_says_so)
{
    struct runner_lab l;

    runner_lab_open(&l, f, 1, 0);
    atomic_store(&l.stuck, true);
    add_many(&l, 1);
    CHECK_SOON(atomic_load(&l.at_once) == 1);
    CHECK(!runner_stop(l.r, clock_mono_ns() + 100 * NS_PER_MS));
    atomic_store(&l.stuck, false);
    runner_lab_close(&l);
}

/* A satellite that comes back brings its accounts. */
TEST_FOUR(archive_runner, sets_that_come_back_are_asked_after_a_kick)
{
    struct runner_lab l = {.no_sets = true};
    struct runner_numbers n;

    runner_lab_start(&l, f, 1, 0);
    add_many(&l, 3);
    CHECK_SOON((runner_numbers(l.r, &n), n.counts.ready == 3));
    CHECK_INT(atomic_load(&l.synced), 0);
    atomic_store(&l.no_sets, false);
    runner_kick(l.r);
    CHECK_SOON(atomic_load(&l.synced) == 3);
    runner_lab_close(&l);
}

/* ZADD and ZREM by hand, as the seed writes them, while weir works. */
TEST_FOUR(archive_runner, the_keeper_finds_changes_by_hand)
{
    struct runner_lab l;
    struct runner_numbers n;

    runner_lab_open(&l, f, 1, 0);
    add_many(&l, 5);
    CHECK_SOON(atomic_load(&l.synced) == 5);
    CHECK_STR(schedule_lab_ask(&l.lab, "ZADD", "tracked", "0", "github.com/octocat", NULL),
              STR("1"));
    CHECK_SOON(atomic_load(&l.synced) == 6);
    CHECK_INT(atomic_load(&l.found), 1);
    schedule_lab_ask(&l.lab, "ZREM", "tracked", "github.com/u1", NULL);
    CHECK_SOON((runner_numbers(l.r, &n), n.dropped == 1));
    CHECK_INT(n.found, 1);
    runner_lab_close(&l);
}

/* The store is emptied: the table is given again, whatever is added is synced. */
TEST_FOUR(archive_runner, the_keeper_gives_the_table_to_an_empty_store)
{
    struct runner_lab l;
    struct runner_numbers n;

    runner_lab_open(&l, f, 1, 0);
    add_many(&l, 1);
    CHECK_SOON((runner_numbers(l.r, &n), n.ended[RUNNER_FULL] == 1));
    schedule_lab_ask(&l.lab, "FLUSHDB", NULL);
    CHECK_SOON(str_eq(schedule_lab_ask(&l.lab, "HGET", "w:archive:map", "166", NULL),
                      STR("\"europe-west-1\"")));
    schedule_lab_ask(&l.lab, "ZADD", "tracked", "0", "github.com/octocat", NULL);
    CHECK_SOON(atomic_load(&l.synced) == 2);
    runner_lab_close(&l);
}

/* Two processes with four runners each: no account is synced by both. */
TEST_FOUR(archive_runner, two_workers_race_one_user)
{
    struct runner_lab a, b;

    runner_lab_open(&a, f, 4, 0);
    runner_lab_open(&b, f, 4, 0);
    add_many(&a, 300);
    CHECK_SOON(atomic_load(&a.synced) + atomic_load(&b.synced) == 300);
    CHECK_SOON(str_eq(schedule_lab_ask(&a.lab, "ZCOUNT", "tracked", "-1", "-1", NULL), STR("0")));
    CHECK(runner_stop(b.r, clock_mono_ns() + 60 * NS_PER_S));
    schedule_lab_close(&b.lab);
    runner_lab_close(&a);
    CHECK_INT(atomic_load(&a.synced) + atomic_load(&b.synced), 300);
}
