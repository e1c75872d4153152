/* Changes: atomic, isolated, undone alone, grouped. */
#include "unit/db/dbtest.h"

#include "db/db_int.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static int nothing(struct db_tx *tx, void *ctx, struct err *err)
{
    return 0;
}

static int write_then_fail(struct db_tx *tx, void *ctx, struct err *err)
{
    struct db_cf *cf = ctx;

    db_tx_put(tx, cf, STR("new"), STR("x"));
    db_tx_put(tx, cf, STR("old"), STR("x"));
    db_tx_delete(tx, cf, STR("gone"));
    dbtest_expect(db_tx_view(tx), cf, "gone", NULL);
    dbtest_expect(db_tx_view(tx), cf, "old", "x");
    return err_set(err, ERR_PRECONDITION, "not today");
}

TEST(db_group, a_change_that_fails_leaves_nothing_and_its_caller_gets_the_error)
{
    struct db *db = dbtest_open(test_dir());
    struct db_stats stats;
    struct err err = {0};

    dbtest_put(db, "a", "old", "v");
    dbtest_put(db, "a", "gone", "v");
    CHECK_ERR(db_apply(db, DB_DURABLE, write_then_fail, db_cf(db, "a"), &err), ERR_PRECONDITION);
    CHECK_STR(str_z(err.text), STR("not today"));
    EXPECT_ROW(db, "a", "new", NULL);
    EXPECT_ROW(db, "a", "old", "v");
    EXPECT_ROW(db, "a", "gone", "v");
    db_stats(db, &stats);
    CHECK_INT(stats.failed, 1);
    CHECK_INT(stats.changes, 2);
    db_close(db);
}

TEST(db_group, the_error_pointer_may_be_null)
{
    struct db *db = dbtest_open(test_dir());

    CHECK_ERR(db_apply(db, DB_DURABLE, write_then_fail, db_cf(db, "a"), NULL), ERR_PRECONDITION);
    db_close(db);
}

TEST(db_group, a_durable_change_is_synced_and_a_volatile_or_empty_one_is_not)
{
    struct db *db = dbtest_open(test_dir());
    struct db_stats stats;
    struct err err = {0};

    CHECK_OK(db_put(db, db_cf(db, "a"), STR("k"), STR("v"), DB_VOLATILE, &err));
    CHECK_OK(db_apply(db, DB_DURABLE, nothing, NULL, &err));
    db_stats(db, &stats);
    CHECK_INT(stats.groups, 1);
    CHECK_INT(stats.syncs, 0);
    CHECK_INT(stats.changes, 2);
    CHECK_OK(db_put(db, db_cf(db, "a"), STR("k"), STR("v"), DB_DURABLE, &err));
    db_stats(db, &stats);
    CHECK_INT(stats.syncs, 1);
    db_close(db);
}

static int write_too_much(struct db_tx *tx, void *ctx, struct err *err)
{
    static char value[MIB];

    for (int i = 0; i < 65; i++)
        db_tx_put(tx, ctx, STR("big"), str_n(value, sizeof(value)));
    return 0;
}

TEST(db_group, a_change_that_writes_too_much_is_refused_whole)
{
    struct db *db = dbtest_open(test_dir());
    struct err err = {0};

    CHECK_ERR(db_apply(db, DB_VOLATILE, write_too_much, db_cf(db, "a"), &err), ERR_TOO_LARGE);
    EXPECT_ROW(db, "a", "big", NULL);
    dbtest_put(db, "a", "small", "v"); /* the next group is not affected */
    EXPECT_ROW(db, "a", "small", "v");
    db_close(db);
}

static int read_clock(struct db_tx *tx, void *ctx, struct err *err)
{
    int64_t *out = ctx;
    *out = db_tx_now_ms(tx);
    return *out == db_tx_now_ms(tx) ? 0 : ERR_RANGE;
}

TEST(db_group, a_change_has_one_time)
{
    struct db *db = dbtest_open(test_dir());
    struct err err = {0};
    int64_t now = 0;

    CHECK_OK(db_apply(db, DB_VOLATILE, read_clock, &now, &err));
    CHECK(now > 1600000000000);
    db_close(db);
}

/* Holds the lead until told, so that what is handed in meanwhile makes one group. */
struct gate {
    struct mutex lock;
    struct cond changed;
    bool entered, open;
};

static void gate_init(struct gate *g)
{
    *g = (struct gate){0};
    mutex_init(&g->lock, "test.gate");
    cond_init(&g->changed);
}

static int pass_gate(struct db_tx *tx, void *ctx, struct err *err)
{
    struct gate *g = ctx;

    mutex_lock(&g->lock);
    g->entered = true;
    cond_broadcast(&g->changed);
    while (!g->open)
        cond_wait(&g->changed, &g->lock);
    mutex_unlock(&g->lock);
    return 0;
}

static void wait_for_waiting(struct db *db, size_t want)
{
    struct group *g = &db->group;

    for (;;) {
        size_t n = 0;
        mutex_lock(&g->lock);
        for (struct list *node = g->waiting.next; node != &g->waiting; node = node->next)
            n++;
        for (struct list *node = g->fast.next; node != &g->fast; node = node->next)
            n++;
        mutex_unlock(&g->lock);
        if (n == want)
            return;
        sched_yield();
    }
}

static void gate_hold(struct gate *g, struct caller *holder, struct db *db)
{
    gate_init(g);
    *holder = (struct caller){.db = db, .fn = pass_gate, .ctx = g, .durability = DB_VOLATILE};
    dbtest_call(holder);
    mutex_lock(&g->lock);
    while (!g->entered)
        cond_wait(&g->changed, &g->lock);
    mutex_unlock(&g->lock);
}

static void gate_open(struct gate *g, struct caller *holder)
{
    mutex_lock(&g->lock);
    g->open = true;
    cond_broadcast(&g->changed);
    mutex_unlock(&g->lock);
    thread_join(&holder->thread);
    CHECK_INT(holder->result, 0);
}

static int add_one_and_fail(struct db_tx *tx, void *ctx, struct err *err)
{
    CHECK_INT(dbtest_add_one(tx, ctx, err), 0);
    return err_code(err, ERR_CONFLICT);
}

TEST(db_group, changes_that_wait_together_share_one_sync_and_see_each_other)
{
    struct db *db = dbtest_open(test_dir());
    struct caller holder, callers[12];
    struct gate gate;
    struct db_stats stats;

    gate_hold(&gate, &holder, db);
    for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
        callers[i] = (struct caller){.db = db,
                                     .fn = i % 3 == 1 ? add_one_and_fail : dbtest_add_one,
                                     .ctx = db_cf(db, "a"),
                                     .durability = DB_DURABLE};
        dbtest_call(&callers[i]);
        wait_for_waiting(db, i + 1);
    }
    gate_open(&gate, &holder);
    for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
        thread_join(&callers[i].thread);
        CHECK_INT(callers[i].result, i % 3 == 1 ? ERR_CONFLICT : 0);
    }
    EXPECT_ROW(db, "a", "n", "8");
    db_stats(db, &stats);
    CHECK_INT(stats.syncs, 1);
    CHECK_INT(stats.groups, 1);
    CHECK_INT(stats.failed, 4);
    db_close(db);
}

TEST(db_group, volatile_changes_of_a_mixed_group_are_written_apart_and_first)
{
    struct db *db = dbtest_open(test_dir());
    struct caller holder, durable, fast;
    struct gate gate;
    struct db_stats stats;

    gate_hold(&gate, &holder, db);
    durable = (struct caller){
        .db = db, .fn = dbtest_add_one, .ctx = db_cf(db, "a"), .durability = DB_DURABLE};
    fast = durable;
    fast.durability = DB_VOLATILE;
    fast.fn = dbtest_add_one;
    dbtest_call(&durable);
    wait_for_waiting(db, 1);
    dbtest_call(&fast);
    wait_for_waiting(db, 2);
    gate_open(&gate, &holder);
    thread_join(&durable.thread);
    thread_join(&fast.thread);
    CHECK_INT(durable.result, 0);
    CHECK_INT(fast.result, 0);
    EXPECT_ROW(db, "a", "n", "2");
    db_stats(db, &stats);
    CHECK_INT(stats.groups, 2);
    CHECK_INT(stats.syncs, 1);
    db_close(db);
}

static int large_row(struct db_tx *tx, void *ctx, struct err *err)
{
    static char value[3 * MIB];

    db_tx_put(tx, ctx, STR("large"), str_n(value, sizeof(value)));
    return 0;
}

TEST(db_group, a_group_with_too_many_bytes_is_written_in_several_batches)
{
    struct db *db = dbtest_open(test_dir());
    struct caller holder, callers[5];
    struct gate gate;
    struct db_stats stats;

    gate_hold(&gate, &holder, db);
    for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
        callers[i] = (struct caller){
            .db = db, .fn = large_row, .ctx = db_cf(db, "a"), .durability = DB_DURABLE};
        dbtest_call(&callers[i]);
    }
    wait_for_waiting(db, ARRAY_SIZE(callers));
    gate_open(&gate, &holder);
    for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
        thread_join(&callers[i].thread);
        CHECK_INT(callers[i].result, 0);
    }
    db_stats(db, &stats);
    CHECK_INT(stats.groups, 3);
    db_close(db);
}

static void closer_main(void *ctx)
{
    db_close(ctx);
}

TEST(db_group, closing_waits_for_changes_handed_in_and_refuses_later_ones)
{
    struct db *db = dbtest_open(test_dir());
    struct caller holder, late;
    struct thread closer;
    struct gate gate;
    struct err err = {0};

    gate_hold(&gate, &holder, db);
    late = (struct caller){
        .db = db, .fn = dbtest_add_one, .ctx = db_cf(db, "a"), .durability = DB_DURABLE};
    dbtest_call(&late);
    wait_for_waiting(db, 1);
    CHECK_OK(thread_start(&closer, "closer", 0, closer_main, db, &err));
    while (true) {
        mutex_lock(&db->group.lock);
        bool closing = db->group.closing;
        mutex_unlock(&db->group.lock);
        if (closing)
            break;
        sched_yield();
    }
    CHECK_ERR(db_apply(db, DB_DURABLE, nothing, NULL, &err), ERR_SHUTDOWN);
    gate_open(&gate, &holder);
    thread_join(&late.thread);
    thread_join(&closer);
    CHECK_INT(late.result, 0);
    db = dbtest_open(test_dir());
    EXPECT_ROW(db, "a", "n", "1");
    db_close(db);
}

/* The stress: threads move amounts between two accounts whose sum must stay, count what they did by
 * compare-and-set, and fail now and then after having written; readers check the sum. */
enum { MOVERS = 16, READERS = 2, MOVES = 150, TOTAL = 1000000 };

struct stress {
    struct db *db;
    struct db_cf *cf;
    _Atomic(bool) done;
};

struct mover {
    struct thread thread;
    struct stress *stress;
    unsigned seed;
    uint64_t amount;
    bool fail;
    uint64_t expect; /* for the compare-and-set */
};

static int move(struct db_tx *tx, void *ctx, struct err *err)
{
    struct mover *m = ctx;
    struct db_cf *cf = m->stress->cf;
    uint64_t x, y, n;

    CHECK_INT(dbtest_get_number(db_tx_view(tx), cf, STR("x"), &x, err), 0);
    CHECK_INT(dbtest_get_number(db_tx_view(tx), cf, STR("y"), &y, err), 0);
    CHECK_INT(dbtest_get_number(db_tx_view(tx), cf, STR("moves"), &n, err), 0);
    CHECK_INT(x + y, TOTAL);
    if (x < m->amount)
        return err_code(err, ERR_PRECONDITION);
    dbtest_put_number(tx, cf, STR("x"), x - m->amount);
    if (m->fail)
        return err_code(err, ERR_CONFLICT);
    dbtest_put_number(tx, cf, STR("y"), y + m->amount);
    dbtest_put_number(tx, cf, STR("moves"), n + 1);
    return 0;
}

static int set_if(struct db_tx *tx, void *ctx, struct err *err)
{
    struct mover *m = ctx;
    uint64_t n;

    CHECK_INT(dbtest_get_number(db_tx_view(tx), m->stress->cf, STR("cas"), &n, err), 0);
    if (n != m->expect)
        return err_code(err, ERR_CONFLICT);
    dbtest_put_number(tx, m->stress->cf, STR("cas"), n + 1);
    return 0;
}

static void count_by_compare_and_set(struct mover *m)
{
    struct stress *s = m->stress;
    struct err err = {0};
    int code;

    do {
        CHECK_OK(dbtest_get_number(db_latest(s->db), s->cf, STR("cas"), &m->expect, &err));
        code = db_apply(s->db, DB_VOLATILE, set_if, m, &err);
        CHECK(code == 0 || code == ERR_CONFLICT);
    } while (code != 0);
}

static void mover_main(void *ctx)
{
    struct mover *m = ctx;
    struct err err = {0};

    for (int done = 0; done < MOVES;) {
        m->amount = (uint64_t)rand_r(&m->seed) % 50;
        m->fail = rand_r(&m->seed) % 4 == 0;
        int code =
            db_apply(m->stress->db, rand_r(&m->seed) % 2 ? DB_DURABLE : DB_VOLATILE, move, m, &err);
        if (m->fail)
            CHECK_INT(code, ERR_CONFLICT);
        else
            CHECK_OK(code);
        done += code == 0;
        if (code == 0)
            count_by_compare_and_set(m);
    }
}

static void reader_main(void *ctx)
{
    struct stress *s = ctx;
    struct err err = {0};
    uint64_t x, y, last = 0;

    while (!atomic_load(&s->done)) {
        struct db_view *view = NULL;
        CHECK_OK(db_snapshot(&view, s->db, &err));
        CHECK_OK(dbtest_get_number(view, s->cf, STR("x"), &x, &err));
        CHECK_OK(dbtest_get_number(view, s->cf, STR("y"), &y, &err));
        CHECK_INT(x + y, TOTAL);
        CHECK(y >= last);
        last = y;
        db_snapshot_free(view);
    }
}

static int begin(struct db_tx *tx, void *ctx, struct err *err)
{
    dbtest_put_number(tx, ctx, STR("x"), TOTAL);
    return 0;
}

TEST_TIMEOUT(db_group, many_threads_lose_no_update_and_no_reader_sees_half_a_change, 600)
{
    struct db *db = dbtest_open(test_dir());
    struct stress s = {.db = db, .cf = db_cf(db, "a")};
    struct mover movers[MOVERS] = {0};
    struct thread readers[READERS];
    struct err err = {0};
    uint64_t n;

    CHECK_OK(db_apply(db, DB_VOLATILE, begin, s.cf, &err));
    for (int i = 0; i < READERS; i++)
        CHECK_OK(thread_start(&readers[i], "reader", 0, reader_main, &s, &err));
    for (int i = 0; i < MOVERS; i++) {
        movers[i].stress = &s;
        movers[i].seed = (unsigned)i;
        CHECK_OK(thread_start(&movers[i].thread, "mover", 0, mover_main, &movers[i], &err));
    }
    for (int i = 0; i < MOVERS; i++)
        thread_join(&movers[i].thread);
    atomic_store(&s.done, true);
    for (int i = 0; i < READERS; i++)
        thread_join(&readers[i]);
    CHECK_OK(dbtest_get_number(db_latest(db), s.cf, STR("moves"), &n, &err));
    CHECK_INT(n, MOVERS * MOVES);
    CHECK_OK(dbtest_get_number(db_latest(db), s.cf, STR("cas"), &n, &err));
    CHECK_INT(n, MOVERS * MOVES);
    db_close(db);
}
