/* Changes that run while the batch before theirs is being synced: what they see, when they are
 * answered, and what happens when that batch fails. */
#include "unit/db/dbtest.h"

#include "db/db_int.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

struct bench {
    struct db *db;
    struct db_cf *cf;
};

static struct bench bench_open(void)
{
    struct db *db = dbtest_open(test_dir());
    return (struct bench){db, db_cf(db, "a")};
}

static size_t members(struct db *db, bool open)
{
    mutex_lock(&db->group.lock);
    size_t n = open ? db->group.open->member_count : db->group.sealed->member_count;
    mutex_unlock(&db->group.lock);
    return n;
}

static void call(struct caller *c, struct bench *b, enum db_durability d, db_change_fn *fn)
{
    *c = (struct caller){.db = b->db, .fn = fn, .ctx = b->cf, .durability = d};
    dbtest_call(c);
}

/* A first durable change whose sync is held. */
static void call_first(struct caller *c, struct bench *b)
{
    dbtest_sync_hold();
    call(c, b, DB_DURABLE, dbtest_add_one);
    dbtest_sync_await();
}

static void call_into_open(struct caller *c, struct bench *b, db_change_fn *fn)
{
    size_t before = members(b->db, true);

    call(c, b, DB_DURABLE, fn);
    while (members(b->db, true) == before)
        sched_yield();
}

static void call_fast(struct caller *c, struct bench *b, db_change_fn *fn)
{
    call(c, b, DB_VOLATILE, fn);
    for (bool waits = false; !waits; sched_yield()) {
        mutex_lock(&b->db->group.lock);
        waits = !list_empty(&b->db->group.fast);
        mutex_unlock(&b->db->group.lock);
    }
}

static void expect_answer(struct caller *c, int result)
{
    thread_join(&c->thread);
    CHECK_INT(c->result, result);
}

static int refuse_if_n(struct db_tx *tx, void *ctx, struct err *err)
{
    uint64_t n;
    int code = dbtest_get_number(db_tx_view(tx), ctx, STR("n"), &n, err);

    return code != 0 || n == 0 ? code : err_code(err, ERR_CONFLICT);
}

static int look_elsewhere(struct db_tx *tx, void *ctx, struct err *err)
{
    uint64_t n;
    return dbtest_get_number(db_tx_view(tx), ctx, STR("elsewhere"), &n, err);
}

static int put_lock(struct db_tx *tx, void *ctx, struct err *err)
{
    db_tx_put(tx, ctx, STR("lock"), STR("held"));
    return 0;
}

static int put_y_unless_locked(struct db_tx *tx, void *ctx, struct err *err)
{
    dbtest_expect(db_tx_view(tx), ctx, "lock", NULL);
    db_tx_put(tx, ctx, STR("y"), STR("1"));
    return 0;
}

static int put_y_unless_any_lock(struct db_tx *tx, void *ctx, struct err *err)
{
    struct db_range r = {STR("lock"), STR("lockz"), false};

    dbtest_expect_keys(db_tx_view(tx), ctx, &r, "");
    db_tx_put(tx, ctx, STR("y"), STR("1"));
    return 0;
}

TEST(db_layer, a_change_sees_the_batch_that_is_being_synced_and_is_answered_after_it)
{
    struct bench b = bench_open();
    struct caller first, second;
    struct db_stats stats;

    call_first(&first, &b);
    call_into_open(&second, &b, dbtest_add_one);
    EXPECT_ROW(b.db, "a", "n", NULL);
    dbtest_sync_pass();
    expect_answer(&first, 0);
    dbtest_sync_await();
    CHECK(!atomic_load(&second.answered));
    EXPECT_ROW(b.db, "a", "n", "1");
    dbtest_sync_release();
    expect_answer(&second, 0);
    EXPECT_ROW(b.db, "a", "n", "2");
    db_stats(b.db, &stats);
    CHECK_INT(stats.syncs, 2);
    CHECK_INT(stats.changes, 2);
    db_close(b.db);
}

TEST(db_layer, a_change_that_only_saw_the_syncing_batch_waits_for_it_alone)
{
    struct bench b = bench_open();
    struct caller first, second, refused;
    struct err err = {0};

    call_first(&first, &b);
    CHECK_OK(db_apply(b.db, DB_DURABLE, look_elsewhere, b.cf, &err)); /* waits for nothing */
    call(&refused, &b, DB_DURABLE, refuse_if_n);
    while (members(b.db, false) < 2)
        sched_yield();
    call_into_open(&second, &b, dbtest_add_one);
    CHECK(!atomic_load(&refused.answered));
    dbtest_sync_pass();
    expect_answer(&first, 0);
    expect_answer(&refused, ERR_CONFLICT);
    dbtest_sync_release();
    expect_answer(&second, 0);
    db_close(b.db);
}

TEST(db_layer, when_a_sync_fails_all_that_was_run_over_its_batch_fails_too)
{
    struct bench b = bench_open();
    struct caller first, second, refused, third;
    struct err err = {0};

    call_first(&first, &b);
    call(&refused, &b, DB_DURABLE, refuse_if_n);
    while (members(b.db, false) < 2)
        sched_yield();
    call_into_open(&second, &b, dbtest_add_one);
    call_into_open(&third, &b, put_lock);
    CHECK_OK(db_apply(b.db, DB_DURABLE, look_elsewhere, b.cf, &err));
    dbtest_sync_fail();
    expect_answer(&first, ERR_IO);
    expect_answer(&refused, ERR_IO);
    expect_answer(&second, ERR_IO);
    expect_answer(&third, ERR_IO);
    CHECK(third.err.text[0] != '\0');
    EXPECT_ROW(b.db, "a", "n", NULL);
    EXPECT_ROW(b.db, "a", "lock", NULL);
    dbtest_sync_release();
    /* A disk that works again changes nothing: what was synced before is not known to be there. */
    CHECK_ERR(db_failed(b.db, &err), ERR_UNAVAILABLE);
    CHECK(str_find(str_z(err.text), STR("Input/output error")) >= 0);
    CHECK_ERR(db_apply(b.db, DB_DURABLE, dbtest_add_one, b.cf, &err), ERR_UNAVAILABLE);
    CHECK_ERR(db_delete_range(b.db, b.cf, STR("a"), STR("b"), &err), ERR_UNAVAILABLE);
    CHECK_OK(db_apply(b.db, DB_DURABLE, look_elsewhere, b.cf, &err));
    CHECK_OK(db_try_disk(b.db, &err));
    db_close(b.db);
}

TEST(db_layer, a_batch_that_is_refused_for_space_fails_alone_with_what_ran_over_it)
{
    struct bench b = bench_open();
    struct caller first, second;
    struct err err = {0};
    uint64_t reserve = b.db->group.space.reserve;

    call_first(&first, &b);
    call_into_open(&second, &b, dbtest_add_one);
    b.db->group.space = (struct space){.reserve = UINT64_MAX / 2, .spent = UINT64_MAX / 2};
    dbtest_sync_release();
    expect_answer(&first, 0);
    expect_answer(&second, ERR_NO_SPACE);
    EXPECT_ROW(b.db, "a", "n", "1");
    b.db->group.space = (struct space){.reserve = reserve};
    CHECK_OK(db_apply(b.db, DB_DURABLE, dbtest_add_one, b.cf, &err));
    EXPECT_ROW(b.db, "a", "n", "2");
    db_close(b.db);
}

TEST(db_layer, a_volatile_change_waits_for_one_sync_and_passes_the_batch_it_does_not_touch)
{
    struct bench b = bench_open();
    struct caller first, second, fast;
    struct db_stats stats;

    call_first(&first, &b);
    call_into_open(&second, &b, dbtest_add_one);
    call_fast(&fast, &b, put_lock);
    dbtest_sync_pass();
    expect_answer(&first, 0);
    expect_answer(&fast, 0);
    dbtest_sync_await();
    CHECK(!atomic_load(&second.answered));
    EXPECT_ROW(b.db, "a", "lock", "held");
    EXPECT_ROW(b.db, "a", "n", "1");
    dbtest_sync_release();
    expect_answer(&second, 0);
    db_stats(b.db, &stats);
    CHECK_INT(stats.groups, 3);
    CHECK_INT(stats.syncs, 2);
    db_close(b.db);
}

/* `fast` is handed in after `before`, which is in the open batch, and must come behind it. */
static void expect_behind(db_change_fn *before, db_change_fn *fast_fn, const char *key)
{
    struct bench b = bench_open();
    struct caller first, second, fast;

    call_first(&first, &b);
    call_into_open(&second, &b, before);
    call_fast(&fast, &b, fast_fn);
    dbtest_sync_pass();
    expect_answer(&first, 0);
    dbtest_sync_await();
    CHECK(!atomic_load(&fast.answered));
    CHECK_INT(members(b.db, true), 1);
    EXPECT_ROW(b.db, "a", key, NULL);
    dbtest_sync_release();
    expect_answer(&second, 0);
    expect_answer(&fast, 0);
    db_close(b.db);
}

TEST(db_layer, a_volatile_change_does_not_pass_a_durable_one_that_has_read_what_it_writes)
{
    expect_behind(put_y_unless_locked, put_lock, "lock");
}

TEST(db_layer, a_volatile_change_does_not_pass_a_durable_one_that_has_read_a_range)
{
    expect_behind(put_y_unless_any_lock, put_lock, "lock");
}

static int copy_n(struct db_tx *tx, void *ctx, struct err *err)
{
    uint64_t n;
    int code = dbtest_get_number(db_tx_view(tx), ctx, STR("n"), &n, err);

    dbtest_put_number(tx, ctx, STR("copy"), n);
    return code;
}

TEST(db_layer, a_volatile_change_does_not_pass_a_durable_one_whose_rows_it_has_read)
{
    expect_behind(dbtest_add_one, copy_n, "copy");
}

TEST(db_layer, a_volatile_change_that_only_saw_the_open_batch_is_answered_with_it)
{
    struct bench b = bench_open();
    struct caller first, second, fast;

    call_first(&first, &b);
    call_into_open(&second, &b, dbtest_add_one);
    call_fast(&fast, &b, refuse_if_n);
    dbtest_sync_pass();
    expect_answer(&first, 0);
    dbtest_sync_await();
    CHECK(!atomic_load(&fast.answered));
    CHECK_INT(members(b.db, false), 2);
    dbtest_sync_release();
    expect_answer(&second, 0);
    expect_answer(&fast, ERR_CONFLICT);
    db_close(b.db);
}

/* The stress: threads move amounts between a few accounts whose sum must stay. An account with
 * nothing has no row, so that batches hold puts and deletes of the same keys. */
enum { MOVERS = 12, MOVES = 120, ACCOUNTS = 5, TOTAL = 40 };

struct mover {
    struct thread thread;
    struct bench *bench;
    unsigned seed;
    unsigned from, to;
    bool fail;
};

static struct str account(char out[3], unsigned n)
{
    snprintf(out, 3, "x%u", n % 10);
    return str_n(out, 2);
}

static void put_account(struct db_tx *tx, struct db_cf *cf, unsigned n, uint64_t amount)
{
    char key[3];

    if (amount == 0)
        db_tx_delete(tx, cf, account(key, n));
    else
        dbtest_put_number(tx, cf, account(key, n), amount);
}

static uint64_t sum_of(struct db_view *view, struct db_cf *cf)
{
    struct db_range r = {STR("x"), STR("y"), false};
    struct db_iter *it = NULL;
    struct str key, value;
    struct err err = {0};
    uint64_t sum = 0, n;

    CHECK_OK(db_iter_open(&it, view, cf, &r, &err));
    while (db_iter_next(it, &key, &value, &err) == 0) {
        CHECK_OK(str_u64(value, &n));
        sum += n;
    }
    db_iter_close(it);
    return sum;
}

static int move(struct db_tx *tx, void *ctx, struct err *err)
{
    const struct mover *m = ctx;
    struct db_cf *cf = m->bench->cf;
    struct db_view *view = db_tx_view(tx);
    uint64_t from, to, moves;
    char key[3];

    if (m->seed % 3 == 0)
        CHECK_INT(sum_of(view, cf), TOTAL);
    CHECK_INT(dbtest_get_number(view, cf, account(key, m->from), &from, err), 0);
    CHECK_INT(dbtest_get_number(view, cf, account(key, m->to), &to, err), 0);
    CHECK_INT(dbtest_get_number(view, cf, STR("moves"), &moves, err), 0);
    if (from == 0)
        return err_code(err, ERR_PRECONDITION);
    put_account(tx, cf, m->from, from - 1);
    if (m->fail)
        return err_code(err, ERR_CONFLICT);
    put_account(tx, cf, m->to, to + 1);
    dbtest_put_number(tx, cf, STR("moves"), moves + 1);
    CHECK_INT(sum_of(view, cf), TOTAL);
    return 0;
}

static void mover_main(void *ctx)
{
    struct mover *m = ctx;
    struct err err = {0};

    for (int done = 0; done < MOVES;) {
        m->from = (unsigned)rand_r(&m->seed) % ACCOUNTS;
        m->to = (m->from + 1 + (unsigned)rand_r(&m->seed) % (ACCOUNTS - 1)) % ACCOUNTS;
        m->fail = rand_r(&m->seed) % 4 == 0;
        int code =
            db_apply(m->bench->db, rand_r(&m->seed) % 3 ? DB_DURABLE : DB_VOLATILE, move, m, &err);
        CHECK(code == 0 || code == ERR_PRECONDITION || (m->fail && code == ERR_CONFLICT));
        done += code == 0;
    }
}

static int begin(struct db_tx *tx, void *ctx, struct err *err)
{
    dbtest_put_number(tx, ctx, STR("x0"), TOTAL);
    return 0;
}

TEST_TIMEOUT(db_layer, movers_of_both_kinds_that_put_and_delete_keep_the_sum, 600)
{
    struct bench b = bench_open();
    struct mover movers[MOVERS] = {0};
    struct err err = {0};
    uint64_t n;

    CHECK_OK(db_apply(b.db, DB_DURABLE, begin, b.cf, &err));
    for (unsigned i = 0; i < MOVERS; i++) {
        movers[i].bench = &b;
        movers[i].seed = i;
        CHECK_OK(thread_start(&movers[i].thread, "mover", 0, mover_main, &movers[i], &err));
    }
    for (int i = 0; i < MOVERS; i++)
        thread_join(&movers[i].thread);
    CHECK_INT(sum_of(db_latest(b.db), b.cf), TOTAL);
    CHECK_OK(dbtest_get_number(db_latest(b.db), b.cf, STR("moves"), &n, &err));
    CHECK_INT(n, MOVERS * MOVES);
    db_close(b.db);
}
