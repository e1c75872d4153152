/* Row logs: written with a change, read in order, forgotten. */
#include "db/row_log.h"
#include "unit/db/dbtest.h"

static struct row_log log_of(struct db *db, const char *prefix)
{
    return (struct row_log){db, db_cf(db, "a"), str_z(prefix)};
}

struct writing {
    const struct row_log *log;
    const char *places; /* one byte each; '!' lets the change fail */
};

static int write_run(struct db_tx *tx, void *ctx, struct err *err)
{
    const struct writing *w = ctx;

    for (const char *p = w->places; *p; p++) {
        if (*p == '!')
            return err_set(err, ERR_CONFLICT, "refused");
        row_log_put(w->log, tx, str_n(p, 1), STR("v"));
    }
    return 0;
}

static int write_rows(const struct row_log *log, const char *places)
{
    struct writing w = {log, places};
    struct err err = {0};

    return db_apply(log->db, DB_DURABLE, write_run, &w, &err);
}

static void expect_places(const struct row_log *log, struct row_log_span span, const char *want)
{
    struct arena a = ARENA_INIT(0);
    struct logged_row rows[8];
    struct buf text = BUF_INIT(0);
    struct err err = {0};
    size_t count = 0;

    CHECK_OK(row_log_read(log, &a, &span, rows, &count, &err));
    for (size_t i = 0; i < count; i++) {
        buf_append_str(&text, rows[i].place);
        CHECK_STR(rows[i].value, STR("v"));
    }
    CHECK_STR(buf_str(&text), str_z(want));
    buf_release(&text);
    arena_release(&a);
}

TEST(row_log, rows_are_there_exactly_when_their_change_is)
{
    struct db *db = dbtest_open(test_dir());
    struct row_log log = log_of(db, "log");

    CHECK_INT(write_rows(&log, "ab"), 0);
    CHECK_INT(write_rows(&log, "cd!"), ERR_CONFLICT);
    expect_places(&log, (struct row_log_span){.limit = 8}, "ab");
    db_close(db);
    db = dbtest_open(test_dir());
    log = log_of(db, "log");
    expect_places(&log, (struct row_log_span){.limit = 8}, "ab");
    db_close(db);
}

TEST(row_log, a_span_of_one_log_is_read_in_order)
{
    struct db *db = dbtest_open(test_dir());
    struct row_log log = log_of(db, "log"), before = log_of(db, "lof"), behind = log_of(db, "loh");
    struct err err = {0};
    uint64_t count = 0;

    CHECK_INT(write_rows(&log, "cabd"), 0);
    CHECK_INT(write_rows(&before, "xyz"), 0);
    CHECK_INT(write_rows(&behind, "z"), 0);
    expect_places(&log, (struct row_log_span){.limit = 8}, "abcd");
    expect_places(&log, (struct row_log_span){.limit = 2}, "ab");
    expect_places(&log, (struct row_log_span){.from = STR("b"), .limit = 8}, "bcd");
    expect_places(&log, (struct row_log_span){.from = STR("b"), .to = STR("d"), .limit = 8}, "bc");
    expect_places(&log, (struct row_log_span){.from = STR("e"), .limit = 8}, "");
    CHECK_OK(row_log_count(&log, &count, &err));
    CHECK_INT(count, 4);
    db_close(db);
}

TEST(row_log, rows_are_forgotten_one_by_one_or_up_to_a_place)
{
    struct db *db = dbtest_open(test_dir());
    struct row_log log = log_of(db, "log"), behind = log_of(db, "loh");
    const struct str some[] = {STR("b"), STR("d")};
    struct err err = {0};

    CHECK_INT(write_rows(&log, "abcdef"), 0);
    CHECK_INT(write_rows(&behind, "a"), 0);
    CHECK_OK(row_log_drop(&log, some, 2, &err));
    expect_places(&log, (struct row_log_span){.limit = 8}, "acef");
    CHECK_OK(row_log_drop_before(&log, STR("e"), &err));
    expect_places(&log, (struct row_log_span){.limit = 8}, "ef");
    CHECK_OK(row_log_settle(&log, &err));
    CHECK_OK(row_log_drop_before(&log, STR_EMPTY, &err));
    expect_places(&log, (struct row_log_span){.limit = 8}, "");
    expect_places(&behind, (struct row_log_span){.limit = 8}, "a");
    db_close(db);
}
