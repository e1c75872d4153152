/* Views, single rows and ranges; also against a model with the pending state of a change. */
#include "unit/db/dbtest.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static void fill(struct db *db, const char *keys)
{
    struct str rest = str_z(keys), key;
    struct err err = {0};

    while (str_token(&rest, " ", &key))
        CHECK_OK(db_put(db, db_cf(db, "a"), key, STR("v"), DB_VOLATILE, &err));
}

static struct db_range range(const char *from, const char *to, bool reverse)
{
    return (struct db_range){str_z(from), str_z(to), reverse};
}

TEST(db_read, a_range_is_walked_in_order_from_its_first_key_to_before_its_end)
{
    struct db *db = dbtest_open(test_dir());
    struct db_view *view = db_latest(db);
    struct db_cf *cf = db_cf(db, "a");

    fill(db, "c a d b e");
    struct {
        const char *from, *to;
        const char *forward, *backward;
    } rows[] = {
        {"", "", "a b c d e", "e d c b a"},
        {"b", "d", "b c", "c b"},
        {"bb", "dd", "c d", "d c"},
        {"e", "", "e", "e"},
        {"", "a", "", ""},
        {"d", "b", "", ""},
        {"f", "", "", ""},
        {"", "b", "a", "a"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct db_range r = range(rows[i].from, rows[i].to, false);
        dbtest_expect_keys(view, cf, &r, rows[i].forward);
        r.reverse = true;
        dbtest_expect_keys(view, cf, &r, rows[i].backward);
    }
    db_close(db);
}

static void expect_seek(struct db_iter *it, const char *to, const char *want)
{
    struct str key, value;
    struct err err = {0};

    db_iter_seek(it, str_z(to));
    int code = db_iter_next(it, &key, &value, &err);
    if (!want) {
        CHECK_ERR(code, ERR_END);
        return;
    }
    CHECK_OK(code);
    CHECK_STR(key, str_z(want));
}

TEST(db_read, seeking_stays_inside_the_range_in_both_directions)
{
    struct db *db = dbtest_open(test_dir());
    struct db_range forward = range("b", "e", false), backward = range("b", "e", true);
    struct db_iter *it = NULL;
    struct err err = {0};

    fill(db, "a b c d e f");
    CHECK_OK(db_iter_open(&it, db_latest(db), db_cf(db, "a"), &forward, &err));
    expect_seek(it, "c", "c");
    expect_seek(it, "a", "b");
    expect_seek(it, "", "b");
    expect_seek(it, "d!", NULL);
    expect_seek(it, "bb", "c");
    expect_seek(it, "z", NULL);
    expect_seek(it, "b", "b");
    db_iter_close(it);

    CHECK_OK(db_iter_open(&it, db_latest(db), db_cf(db, "a"), &backward, &err));
    expect_seek(it, "c", "c");
    expect_seek(it, "z", "d");
    expect_seek(it, "e", "d");
    expect_seek(it, "a", NULL);
    expect_seek(it, "", NULL);
    expect_seek(it, "cc", "c");
    db_iter_close(it);
    db_close(db);
}

TEST(db_read, a_snapshot_does_not_move)
{
    struct db *db = dbtest_open(test_dir());
    struct db_view *view = NULL;
    struct db_range all = range("", "", false);
    struct err err = {0};

    fill(db, "a b");
    CHECK_OK(db_snapshot(&view, db, &err));
    dbtest_put(db, "a", "c", "v");
    dbtest_put(db, "a", "a", "changed");
    CHECK_OK(db_delete(db, db_cf(db, "a"), STR("b"), DB_VOLATILE, &err));
    dbtest_expect(view, db_cf(db, "a"), "a", "v");
    dbtest_expect(view, db_cf(db, "a"), "c", NULL);
    dbtest_expect_keys(view, db_cf(db, "a"), &all, "a b");
    EXPECT_ROW(db, "a", "a", "changed");
    dbtest_expect_keys(db_latest(db), db_cf(db, "a"), &all, "a c");
    db_snapshot_free(view);
    db_close(db);
}

TEST(db_read, an_iterator_does_not_see_what_is_written_after_it_was_opened)
{
    struct db *db = dbtest_open(test_dir());
    struct db_range all = range("", "", false);
    struct db_iter *it = NULL;
    struct str key, value;
    struct err err = {0};

    fill(db, "a c");
    CHECK_OK(db_iter_open(&it, db_latest(db), db_cf(db, "a"), &all, &err));
    fill(db, "b d");
    CHECK_OK(db_iter_next(it, &key, &value, &err));
    CHECK_OK(db_iter_next(it, &key, &value, &err));
    CHECK_STR(key, STR("c"));
    CHECK_ERR(db_iter_next(it, &key, &value, &err), ERR_END);
    db_iter_close(it);
    db_close(db);
}

TEST(db_read, keys_and_values_may_hold_any_byte_and_be_empty)
{
    struct db *db = dbtest_open(test_dir());
    struct db_cf *cf = db_cf(db, "a");
    struct buf value = BUF_INIT(0);
    struct err err = {0};

    CHECK_OK(db_put(db, cf, str_n("\0\xff\0", 3), str_n("\0", 1), DB_VOLATILE, &err));
    CHECK_OK(db_put(db, cf, STR_EMPTY, STR_EMPTY, DB_VOLATILE, &err));
    CHECK_OK(db_get(db_latest(db), cf, str_n("\0\xff\0", 3), &value, &err));
    CHECK_STR(buf_str(&value), str_n("\0", 1));
    buf_reset(&value);
    CHECK_OK(db_get(db_latest(db), cf, STR_EMPTY, &value, &err));
    CHECK_INT(value.len, 0);
    CHECK_ERR(db_get(db_latest(db), cf, str_n("\0\xff", 2), &value, &err), ERR_NOT_FOUND);
    buf_release(&value);
    db_close(db);
}

TEST(db_read, a_value_is_appended_and_one_past_the_limit_is_an_error)
{
    struct db *db = dbtest_open(test_dir());
    struct buf value = BUF_INIT(6);
    struct err err = {0};

    dbtest_put(db, "a", "k", "123");
    buf_append_z(&value, "> ");
    CHECK_OK(db_get(db_latest(db), db_cf(db, "a"), STR("k"), &value, &err));
    CHECK_STR(buf_str(&value), STR("> 123"));
    CHECK_ERR(db_get(db_latest(db), db_cf(db, "a"), STR("k"), &value, &err), ERR_TOO_LARGE);
    buf_release(&value);
    db_close(db);
}

TEST(db_read, the_end_of_a_prefix_is_behind_all_its_keys)
{
    struct {
        struct str prefix, end;
    } rows[] = {
        {STR("a"), STR("b")},          {STR("a:"), STR("a;")},
        {str_n("a\xff", 2), STR("b")}, {str_n("\xff\xff", 2), STR_EMPTY},
        {STR_EMPTY, STR_EMPTY},        {str_n("a\0", 2), str_n("a\1", 2)},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf end = BUF_INIT(0);
        db_prefix_end(rows[i].prefix, &end);
        CHECK_STR(buf_str(&end), rows[i].end);
        buf_release(&end);
    }
}

/* The model: a value per key "00".."39", 0 when there is no row. */
enum { MODEL_KEYS = 40, MODEL_STEPS = 60, MODEL_ROUNDS = 60 };

struct model {
    int value[MODEL_KEYS];
    struct db_cf *cf;
    unsigned seed;
    bool fail;
};

static struct str model_key(char out[3], int k)
{
    out[0] = (char)('0' + k / 10);
    out[1] = (char)('0' + k % 10);
    out[2] = '\0';
    return str_n(out, 2);
}

static void model_write(struct model *m, struct db_tx *tx)
{
    char key[3], text[16];
    int k = rand_r(&m->seed) % MODEL_KEYS, v = rand_r(&m->seed) % 4;

    m->value[k] = v;
    snprintf(text, sizeof(text), "%d", v);
    if (v == 0)
        db_tx_delete(tx, m->cf, model_key(key, k));
    else
        db_tx_put(tx, m->cf, model_key(key, k), str_z(text));
}

static void model_get(struct model *m, struct db_view *view)
{
    char key[3], text[16];
    int k = rand_r(&m->seed) % MODEL_KEYS;

    model_key(key, k);
    snprintf(text, sizeof(text), "%d", m->value[k]);
    dbtest_expect(view, m->cf, key, m->value[k] ? text : NULL);
}

static void model_scan(struct model *m, struct db_view *view)
{
    char from[3], to[3], key[3];
    int lo = rand_r(&m->seed) % MODEL_KEYS, hi = rand_r(&m->seed) % (MODEL_KEYS + 1);
    struct db_range r = {model_key(from, lo), STR_EMPTY, rand_r(&m->seed) % 2};
    struct buf want = BUF_INIT(0);

    if (hi < MODEL_KEYS)
        r.to = model_key(to, hi);
    for (int i = 0; i < MODEL_KEYS; i++) {
        int k = r.reverse ? MODEL_KEYS - 1 - i : i;
        if (k < lo || k >= hi || !m->value[k])
            continue;
        model_key(key, k);
        buf_appendf(&want, want.len > 0 ? " %s" : "%s", key);
    }
    dbtest_expect_keys(view, m->cf, &r, want.p ? want.p : "");
    buf_release(&want);
}

static int model_change(struct db_tx *tx, void *ctx, struct err *err)
{
    struct model *m = ctx;

    for (int i = 0; i < MODEL_STEPS; i++) {
        int what = rand_r(&m->seed) % 4;
        if (what < 2)
            model_write(m, tx);
        else if (what == 2)
            model_get(m, db_tx_view(tx));
        else
            model_scan(m, db_tx_view(tx));
    }
    return m->fail ? ERR_CONFLICT : 0;
}

TEST(db_read, gets_and_ranges_inside_changes_agree_with_a_model)
{
    struct db *db = dbtest_open(test_dir());
    struct model m = {.cf = db_cf(db, "a"), .seed = 1}, before;
    struct err err = {0};

    for (int i = 0; i < MODEL_ROUNDS; i++) {
        m.fail = i % 3 == 2;
        before = m;
        int code = db_apply(db, DB_VOLATILE, model_change, &m, &err);
        CHECK_INT(code, m.fail ? ERR_CONFLICT : 0);
        if (m.fail)
            memcpy(m.value, before.value, sizeof(m.value));
        for (int k = 0; k < 10; k++) {
            model_get(&m, db_latest(db));
            model_scan(&m, db_latest(db));
        }
    }
    db_close(db);
}

struct model_run {
    struct caller caller;
    struct model *model;
    _Atomic(bool) ran;
};

static int model_run_change(struct db_tx *tx, void *ctx, struct err *err)
{
    struct model_run *r = ctx;
    int code = model_change(tx, r->model, err);

    atomic_store(&r->ran, true);
    return code;
}

static void model_run_start(struct model_run *r, struct db *db, struct model *m)
{
    *r = (struct model_run){.model = m};
    r->caller =
        (struct caller){.db = db, .fn = model_run_change, .ctx = r, .durability = DB_DURABLE};
    dbtest_call(&r->caller);
    while (!atomic_load(&r->ran))
        sched_yield();
}

TEST(db_read, gets_and_ranges_over_a_batch_that_is_being_synced_agree_with_a_model)
{
    struct db *db = dbtest_open(test_dir());
    struct model m = {.cf = db_cf(db, "a"), .seed = 7}, before;
    struct model_run lower, upper;

    for (int i = 0; i < MODEL_ROUNDS; i++) {
        dbtest_sync_hold();
        m.fail = false;
        model_run_start(&lower, db, &m);
        dbtest_sync_await();
        m.fail = i % 3 == 2;
        before = m;
        model_run_start(&upper, db, &m);
        dbtest_sync_release();
        thread_join(&lower.caller.thread);
        thread_join(&upper.caller.thread);
        CHECK_INT(lower.caller.result, 0);
        CHECK_INT(upper.caller.result, m.fail ? ERR_CONFLICT : 0);
        if (m.fail)
            memcpy(m.value, before.value, sizeof(m.value));
        for (int k = 0; k < 10; k++) {
            model_get(&m, db_latest(db));
            model_scan(&m, db_latest(db));
        }
    }
    db_close(db);
}
