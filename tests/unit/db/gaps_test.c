/* Known gaps between rows: what they say is true of the committed rows, whoever writes meanwhile
 * (G1 to G4). */
#include "unit/db/dbtest.h"

#include "base/clock.h"
#include "db/gaps.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <stdio.h>

enum { MODEL_STEPS = 20000, KEYS = 64, TOGGLES = 3000, WRITERS = 2, READERS = 2 };

static void expect_known(struct gaps *g, const char *from, const char *want)
{
    struct buf row = BUF_INIT(0);
    bool found = gaps_find(g, str_z(from), &row);

    CHECK_INT(found, want != NULL);
    if (found)
        CHECK_STR(buf_str(&row), str_z(want));
    buf_release(&row);
}

/* By a reader of its own, so that nothing stands against it. */
static void bring(struct gaps *g, const char *from, const char *row)
{
    struct gaps_reader r;

    gaps_enter(g, &r, STR_EMPTY, STR_EMPTY);
    gaps_keep(g, &r, str_z(from), str_z(row));
    gaps_leave(g, &r);
}

static void write_one(struct gaps *g, const char *key, enum gaps_writing what)
{
    gaps_write(g, 0, str_z(key), what);
    gaps_settled(g, 0);
}

TEST(gaps, a_gap_is_known_from_everywhere_inside_it)
{
    struct gaps *g = gaps_new(MIB);

    bring(g, "b", "d");
    expect_known(g, "a", NULL);
    expect_known(g, "b", "d");
    expect_known(g, "c", "d");
    expect_known(g, "d", "d");
    expect_known(g, "d!", NULL);
    bring(g, "a", "d");
    expect_known(g, "a", "d");
    bring(g, "e", "f");
    expect_known(g, "d!", NULL);
    expect_known(g, "e", "f");
    gaps_free(g);
}

TEST(gaps, a_gap_leaves_when_a_change_touches_it)
{
    static const struct {
        const char *key;
        enum gaps_writing what;
        bool stays;
    } rows[] = {
        {"a", GAPS_PUT, true},  {"b", GAPS_PUT, false},    {"c", GAPS_PUT, false},
        {"d", GAPS_PUT, true},  {"d", GAPS_DELETE, false}, {"c", GAPS_DELETE, false},
        {"d!", GAPS_PUT, true}, {"e", GAPS_DELETE, true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct gaps *g = gaps_new(MIB);
        bring(g, "b", "d");
        gaps_write(g, 0, str_z(rows[i].key), rows[i].what);
        expect_known(g, "b", rows[i].stays ? "d" : NULL);
        gaps_free(g);
    }
}

TEST(gaps, what_a_reader_found_does_not_enter_when_it_was_written_since)
{
    struct gaps *g = gaps_new(MIB);
    struct gaps_reader r;

    gaps_enter(g, &r, STR("a"), STR("z"));
    write_one(g, "c", GAPS_PUT);
    write_one(g, "zz", GAPS_PUT);
    gaps_keep(g, &r, STR("b"), STR("d"));
    gaps_keep(g, &r, STR("e"), STR("f"));
    expect_known(g, "b", NULL);
    expect_known(g, "e", "f");
    gaps_leave(g, &r);
    bring(g, "b", "c");
    expect_known(g, "b", "c");
    gaps_free(g);
}

TEST(gaps, what_is_pending_when_a_reader_enters_counts_as_written)
{
    struct gaps *g = gaps_new(MIB);
    struct gaps_reader r;

    gaps_write(g, 0, STR("c"), GAPS_DELETE);
    gaps_enter(g, &r, STR_EMPTY, STR_EMPTY);
    gaps_settled(g, 0);
    gaps_keep(g, &r, STR("b"), STR("c"));
    expect_known(g, "b", NULL);
    gaps_leave(g, &r);
    bring(g, "b", "d");
    expect_known(g, "b", "d");
    gaps_free(g);
}

static void write_many(struct gaps *g, int count)
{
    char key[16];

    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        gaps_write(g, 0, str_z(key), GAPS_PUT);
    }
}

TEST(gaps, a_reader_past_which_too_much_was_written_brings_nothing)
{
    struct gaps *g = gaps_new(MIB);
    struct gaps_reader before, beside, elsewhere;

    gaps_enter(g, &before, STR_EMPTY, STR_EMPTY);
    gaps_enter(g, &elsewhere, STR("a"), STR("c"));
    write_many(g, 1000);
    gaps_enter(g, &beside, STR_EMPTY, STR_EMPTY);
    gaps_settled(g, 0);
    gaps_keep(g, &before, STR("a"), STR("b"));
    gaps_keep(g, &beside, STR("a"), STR("b"));
    expect_known(g, "a", NULL);
    gaps_keep(g, &elsewhere, STR("a"), STR("b"));
    expect_known(g, "a", "b");
    gaps_leave(g, &before);
    gaps_leave(g, &beside);
    gaps_leave(g, &elsewhere);
    gaps_free(g);
}

TEST(gaps, beside_a_batch_that_is_too_large_nobody_brings_anything)
{
    struct gaps *g = gaps_new(MIB);
    struct gaps_reader r;

    write_many(g, 10 * 1000);
    gaps_enter(g, &r, STR("a"), STR("c"));
    gaps_settled(g, 0);
    gaps_keep(g, &r, STR("a"), STR("b"));
    expect_known(g, "a", NULL);
    gaps_leave(g, &r);
    bring(g, "a", "b");
    expect_known(g, "a", "b");
    gaps_free(g);
}

TEST(gaps, nothing_is_known_during_the_write_of_a_range)
{
    struct gaps *g = gaps_new(MIB);
    struct gaps_reader r;

    bring(g, "a", "b");
    gaps_enter(g, &r, STR_EMPTY, STR_EMPTY);
    gaps_range_begin(g);
    expect_known(g, "a", NULL);
    bring(g, "a", "b");
    expect_known(g, "a", NULL);
    gaps_range_end(g);
    gaps_keep(g, &r, STR("a"), STR("b"));
    expect_known(g, "a", NULL);
    gaps_leave(g, &r);
    bring(g, "a", "b");
    expect_known(g, "a", "b");
    gaps_free(g);
}

TEST(gaps, memory_stays_under_its_limit_and_what_is_used_stays_longest)
{
    struct gaps *g = gaps_new(MIB);
    char from[16], row[16];

    bring(g, "hot", "hot!");
    for (int i = 0; i < 50 * 1000; i++) {
        unsigned at = (unsigned)i * 7919 % 50000;
        snprintf(from, sizeof(from), "k%05u", at);
        snprintf(row, sizeof(row), "k%05u!", at);
        bring(g, from, row);
        expect_known(g, from, row);
        expect_known(g, "hot", "hot!");
    }
    CHECK(gaps_bytes(g) < MIB + MIB / 8);
    CHECK(gaps_bytes(g) > MIB / 2);
    gaps_free(g);
}

/* --- through the database --- */

static struct str key_name(char out[16], int key)
{
    return str_n(out, (size_t)snprintf(out, 16, "k%02d", key));
}

static int key_number(struct str key)
{
    uint64_t number;

    CHECK_INT(str_u64(str_skip(key, 1), &number), 0);
    return (int)number;
}

static struct db_iter *open_skipping(struct db *db)
{
    static const struct db_range all = {.skips = true};
    struct db_iter *it = NULL;
    struct err err = {0};

    CHECK_OK(db_iter_open(&it, db_latest(db), db_cf(db, "a"), &all, &err));
    return it;
}

/* The number of the first key at or behind `from`, or KEYS. */
static int skip_to(struct db_iter *it, int from)
{
    struct str key;
    struct err err = {0};
    char name[16];
    int code = db_iter_skip(it, key_name(name, from), &key, &err);

    if (code == ERR_END)
        return KEYS;
    CHECK_OK(code);
    return key_number(key);
}

static void toggle(struct db *db, int key, bool there)
{
    struct err err = {0};
    char name[16];
    struct str row = key_name(name, key);

    CHECK_OK(there ? db_delete(db, db_cf(db, "a"), row, DB_VOLATILE, &err)
                   : db_put(db, db_cf(db, "a"), row, STR("v"), DB_VOLATILE, &err));
}

TEST(gaps, skips_agree_with_a_model)
{
    struct db *db = dbtest_open(test_dir());
    struct db_iter *it = open_skipping(db);
    bool there[KEYS] = {0}, then[KEYS] = {0};
    uint64_t random = 1;

    for (int i = 0; i < MODEL_STEPS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int key = (int)(random >> 33) % KEYS;
        if (random >> 60 < 4) {
            toggle(db, key, there[key]);
            there[key] = !there[key];
        } else if (random >> 60 < 6) {
            db_iter_close(it);
            it = open_skipping(db);
            memcpy(then, there, sizeof(then));
        }
        int found = skip_to(it, key);
        CHECK(found == KEYS || there[found] || then[found]);
        for (int k = key; k < found; k++)
            CHECK(!there[k] || !then[k]);
    }
    db_iter_close(it);
    db_close(db);
}

TEST(gaps, the_row_behind_a_skip_is_the_next)
{
    struct db *db = dbtest_open(test_dir());
    struct str key, value;
    struct err err = {0};

    for (int i = 10; i < 40; i += 10)
        toggle(db, i, false);
    for (int round = 0; round < 2; round++) {
        struct db_iter *it = open_skipping(db);
        CHECK_INT(skip_to(it, 5), 10);
        CHECK_OK(db_iter_next(it, &key, &value, &err));
        CHECK_INT(key_number(key), 10);
        CHECK_STR(value, STR("v"));
        CHECK_INT(skip_to(it, 11), 20);
        CHECK_INT(skip_to(it, 21), 30);
        CHECK_OK(db_iter_next(it, &key, &value, &err));
        CHECK_INT(key_number(key), 30);
        CHECK_INT(skip_to(it, 31), KEYS);
        CHECK_ERR(db_iter_next(it, &key, &value, &err), ERR_END);
        db_iter_close(it);
    }
    db_close(db);
}

TEST(gaps, a_skip_stays_inside_the_range)
{
    struct db *db = dbtest_open(test_dir());
    struct db_range range = {.to = STR("k20"), .skips = true};
    struct db_iter *it = NULL;
    struct str key, value;
    struct err err = {0};

    toggle(db, 30, false);
    it = open_skipping(db);
    CHECK_INT(skip_to(it, 10), 30);
    db_iter_close(it);
    CHECK_OK(db_iter_open(&it, db_latest(db), db_cf(db, "a"), &range, &err));
    CHECK_INT(skip_to(it, 10), KEYS);
    CHECK_ERR(db_iter_next(it, &key, &value, &err), ERR_END);
    db_iter_close(it);
    db_close(db);
}

TEST(gaps, a_range_that_is_deleted_is_not_known_any_more)
{
    struct db *db = dbtest_open(test_dir());
    struct db_iter *it;
    struct err err = {0};

    toggle(db, 10, false);
    toggle(db, 20, false);
    it = open_skipping(db);
    CHECK_INT(skip_to(it, 5), 10);
    db_iter_close(it);
    CHECK_OK(db_delete_range(db, db_cf(db, "a"), STR("k"), STR("k15"), &err));
    it = open_skipping(db);
    CHECK_INT(skip_to(it, 5), 20);
    db_iter_close(it);
    db_close(db);
}

/* Of each key how often it has begun or ended to change: odd while it does; every second change
 * is a removal. */
struct race {
    struct db *db;
    _Atomic(unsigned) states[KEYS];
    _Atomic(int) writing;
    _Atomic(int) next_writer;
};

static bool changing(unsigned state)
{
    return state % 2;
}

static bool present(unsigned state)
{
    return state % 4 == 2;
}

static void toggle_own(void *ctx)
{
    struct race *race = ctx;
    int self = atomic_fetch_add(&race->next_writer, 1);
    uint64_t random = (uint64_t)self;

    for (int i = 0; i < TOGGLES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int key = (int)(random >> 33) % (KEYS / WRITERS) * WRITERS + self;
        bool there = present(race->states[key]);
        atomic_fetch_add(&race->states[key], 1);
        toggle(race->db, key, there);
        atomic_fetch_add(&race->states[key], 1);
    }
    atomic_fetch_sub(&race->writing, 1);
}

/* What did not change meanwhile is found when it is there and passed over when it is not. */
static void skip_all(void *ctx)
{
    struct race *race = ctx;
    unsigned before[KEYS];

    while (race->writing > 0) {
        for (int i = 0; i < KEYS; i++)
            before[i] = race->states[i];
        struct db_iter *it = open_skipping(race->db);
        for (int from = 0, found; from < KEYS; from = found + 1) {
            found = skip_to(it, from);
            for (int k = from; k < KEYS && k <= found; k++) {
                unsigned now = race->states[k];
                if (now == before[k] && !changing(now))
                    CHECK_INT(k == found, present(now));
            }
        }
        db_iter_close(it);
    }
}

TEST_TIMEOUT(gaps, skips_beside_writers_miss_nothing_and_invent_nothing, 600)
{
    struct race race = {.db = dbtest_open(test_dir()), .writing = WRITERS};
    struct thread threads[WRITERS + READERS] = {0};
    struct err err = {0};

    for (int i = 0; i < WRITERS + READERS; i++)
        CHECK_OK(thread_start(&threads[i], "racer", 0, i < WRITERS ? toggle_own : skip_all, &race,
                              &err));
    for (int i = 0; i < WRITERS + READERS; i++)
        thread_join(&threads[i]);
    db_close(race.db);
}
