/* The cache of rows: what it answers is what is committed, whoever writes meanwhile (R1 to R3). */
#include "unit/db/dbtest.h"

#include "db/rows.h"
#include "os/thread.h"

#include <stdio.h>

enum { STEPS = 400, READERS = 3, KEYS = 4 };

static struct rows_look look_at(const char *key)
{
    return (struct rows_look){.cf = NULL, .key = str_z(key)};
}

static enum rows_answer ask(struct rows *r, const char *key)
{
    struct rows_look look = look_at(key);
    struct buf value = BUF_INIT(0);
    enum rows_answer answer = rows_get(r, &look, NULL, &value);

    CHECK(answer == ROWS_HIT || value.len == 0);
    buf_release(&value);
    return answer;
}

static bool holds(struct rows *r, const char *key)
{
    return ask(r, key) == ROWS_HIT;
}

static void bring(struct rows *r, const char *key, struct str value)
{
    struct rows_look look = look_at(key);
    struct buf none = BUF_INIT(0);

    CHECK_INT(rows_get(r, &look, NULL, &none), ROWS_MISS);
    rows_keep(r, &look, value);
}

static void bring_absent(struct rows *r, const char *key)
{
    struct rows_look look = look_at(key);
    struct buf none = BUF_INIT(0);

    CHECK_INT(rows_get(r, &look, NULL, &none), ROWS_MISS);
    rows_keep_absent(r, &look);
}

TEST(rows, a_row_leaves_before_it_is_written_and_cannot_enter_meanwhile)
{
    struct rows *r = rows_new(MIB);
    uint64_t hash = rows_hash(r, NULL, STR("k"));

    bring(r, "k", STR("old"));
    CHECK(holds(r, "k"));
    rows_write_begin(r, &hash, 1);
    CHECK(!holds(r, "k"));
    bring(r, "k", STR("old"));
    CHECK(!holds(r, "k"));
    rows_write_end(r, &hash, 1);
    bring(r, "k", STR("new"));
    CHECK(holds(r, "k"));
    rows_free(r);
}

TEST(rows, an_absent_row_is_known_until_it_is_written)
{
    struct rows *r = rows_new(MIB);
    struct rows_look before = look_at("k");
    struct buf none = BUF_INIT(0);
    uint64_t hash = rows_hash(r, NULL, STR("k"));

    CHECK_INT(rows_get(r, &before, NULL, &none), ROWS_MISS);
    bring_absent(r, "k");
    CHECK_INT(ask(r, "k"), ROWS_ABSENT);
    rows_write_begin(r, &hash, 1);
    CHECK_INT(ask(r, "k"), ROWS_MISS);
    bring_absent(r, "k");
    CHECK_INT(ask(r, "k"), ROWS_MISS);
    rows_write_end(r, &hash, 1);
    rows_keep_absent(r, &before);
    CHECK_INT(ask(r, "k"), ROWS_MISS);
    bring(r, "k", STR("v"));
    CHECK_INT(ask(r, "k"), ROWS_HIT);
    rows_free(r);
}

TEST(rows, a_row_that_was_found_absent_is_found_once_it_is_put)
{
    struct db *db = dbtest_open(dbtest_path("db"));
    struct db_view *snapshot;
    struct err err = {0};

    for (int i = 0; i < 3; i++) {
        EXPECT_ROW(db, "a", "k", NULL);
        EXPECT_ROW(db, "a", "k", NULL);
        CHECK_OK(db_snapshot(&snapshot, db, &err));
        dbtest_put(db, "a", "k", "");
        EXPECT_ROW(db, "a", "k", "");
        dbtest_expect(snapshot, db_cf(db, "a"), "k", NULL);
        db_snapshot_free(snapshot);
        if (i == 0)
            CHECK_OK(db_delete(db, db_cf(db, "a"), STR("k"), DB_VOLATILE, &err));
        else
            CHECK_OK(db_delete_range(db, db_cf(db, "a"), STR("k"), STR("l"), &err));
    }
    EXPECT_ROW(db, "a", "k", NULL);
    db_close(db);
}

TEST(rows, what_was_fetched_before_a_write_does_not_enter_after_it)
{
    struct rows *r = rows_new(MIB);
    struct rows_look look = look_at("k");
    struct buf none = BUF_INIT(0);
    uint64_t hash = rows_hash(r, NULL, STR("k"));

    CHECK(!rows_get(r, &look, NULL, &none));
    rows_write_begin(r, &hash, 1);
    rows_write_end(r, &hash, 1);
    rows_keep(r, &look, STR("old"));
    CHECK(!holds(r, "k"));
    rows_free(r);
}

TEST(rows, a_snapshot_uses_them_until_the_next_write_begins)
{
    struct rows *r = rows_new(MIB);
    struct rows_look look = look_at("k");
    struct buf value = BUF_INIT(0);
    uint64_t now = rows_now(r), other = rows_hash(r, NULL, STR("other"));

    bring(r, "k", STR("v"));
    CHECK(rows_get(r, &look, &now, &value));
    rows_write_begin(r, &other, 1);
    CHECK(!rows_get(r, &look, &now, &value));
    CHECK_INT(rows_now(r), ROWS_STALE);
    rows_write_end(r, &other, 1);
    CHECK(!rows_get(r, &look, &now, &value));
    now = rows_now(r);
    CHECK(rows_get(r, &look, &now, &value));
    buf_release(&value);
    rows_free(r);
}

TEST(rows, memory_stays_under_its_limit_and_what_is_used_stays_longest)
{
    struct rows *r = rows_new(MIB);
    char key[16], value[1000] = {0};

    bring(r, "hot", STR("v"));
    for (int i = 0; i < 4000; i++) {
        snprintf(key, sizeof(key), "%d", i);
        bring(r, key, str_n(value, sizeof(value)));
        CHECK(holds(r, "hot"));
    }
    CHECK(rows_bytes(r) < MIB + MIB / 4);
    CHECK(!holds(r, "0"));
    rows_free(r);
}

TEST(rows, a_range_delete_takes_its_rows_and_no_others)
{
    struct db *db = dbtest_open(dbtest_path("db"));
    struct err err = {0};

    dbtest_put(db, "a", "k1", "v");
    dbtest_put(db, "a", "k2", "v");
    dbtest_put(db, "b", "k1", "v");
    EXPECT_ROW(db, "a", "k1", "v");
    EXPECT_ROW(db, "a", "k2", "v");
    EXPECT_ROW(db, "b", "k1", "v");
    CHECK_OK(db_delete_range(db, db_cf(db, "a"), STR("k1"), STR("k2"), &err));
    EXPECT_ROW(db, "a", "k1", NULL);
    EXPECT_ROW(db, "a", "k2", "v");
    EXPECT_ROW(db, "b", "k1", "v");
    db_close(db);
}

struct race {
    struct db *db;
    struct db_cf *cf;
    _Atomic(int) written; /* the last step whose change has returned */
};

static const char *const race_keys[KEYS] = {"k0", "k1", "k2", "k3"};

static int write_step(struct db_tx *tx, void *ctx, struct err *err)
{
    struct race *race = ctx;
    char text[16];
    int len = snprintf(text, sizeof(text), "%d", race->written + 1);

    for (int i = 0; i < KEYS; i++)
        db_tx_put(tx, race->cf, str_z(race_keys[i]), str_n(text, (size_t)len));
    if (race->written % 2)
        db_tx_delete(tx, race->cf, STR("odd"));
    else
        db_tx_put(tx, race->cf, STR("odd"), str_n(text, (size_t)len));
    return 0;
}

static int read_step(struct race *race, struct db_view *view, int key)
{
    struct buf value = BUF_INIT(0);
    struct err err = {0};
    uint64_t step;

    CHECK_OK(db_get(view, race->cf, str_z(race_keys[key]), &value, &err));
    CHECK_OK(str_u64(buf_str(&value), &step));
    buf_release(&value);
    return (int)step;
}

/* The row "odd" is there exactly in the states that odd steps have made. */
static void read_odd(struct race *race, struct db_view *view)
{
    int before = read_step(race, view, 0);
    struct buf value = BUF_INIT(0);
    int code = db_get(view, race->cf, STR("odd"), &value, NULL);

    buf_release(&value);
    if (read_step(race, view, 0) == before)
        CHECK_INT(code, before % 2 ? 0 : ERR_NOT_FOUND);
}

/* Never older than what was acknowledged, never back in time, and a snapshot is one moment. */
static void read_all(void *ctx)
{
    struct race *race = ctx;
    int last = 0, step;

    while (last < STEPS) {
        int acknowledged = race->written;
        for (int i = 0; i < KEYS; i++, last = step) {
            step = read_step(race, db_latest(race->db), i);
            CHECK(step >= acknowledged);
            CHECK(step >= last);
        }
        read_odd(race, db_latest(race->db));
        struct db_view *snapshot;
        struct err err = {0};
        CHECK_OK(db_snapshot(&snapshot, race->db, &err));
        step = read_step(race, snapshot, 0);
        CHECK(step >= last);
        for (int i = 1; i < KEYS; i++)
            CHECK_INT(read_step(race, snapshot, i), step);
        read_odd(race, snapshot);
        db_snapshot_free(snapshot);
    }
}

TEST(rows, readers_see_every_acknowledged_write_and_never_go_back)
{
    struct db *db = dbtest_open(dbtest_path("db"));
    struct race race = {.db = db, .cf = db_cf(db, "a")};
    struct thread readers[READERS] = {0};
    struct err err = {0};

    CHECK_OK(db_apply(db, DB_VOLATILE, write_step, &race, &err));
    race.written = 1;
    for (int i = 0; i < READERS; i++)
        CHECK_OK(thread_start(&readers[i], "reader", 0, read_all, &race, &err));
    while (race.written < STEPS) {
        CHECK_OK(
            db_apply(db, race.written % 8 ? DB_VOLATILE : DB_DURABLE, write_step, &race, &err));
        race.written++;
    }
    for (int i = 0; i < READERS; i++)
        thread_join(&readers[i]);
    db_close(db);
}
