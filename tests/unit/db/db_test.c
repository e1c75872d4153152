/* Opening, reading, writing. */
#include "unit/test.h"
#include "db/db.h"

static struct db *open_at(const char *path)
{
    static const struct db_cf_spec cfs[] = {{"a", NULL}, {"b", NULL}};
    struct db_options o = {.path = path, .cfs = cfs, .cf_count = 2};
    struct db *db = NULL;
    struct err err = {0};
    CHECK_OK(db_open(&db, &o, &err));
    return db;
}

TEST(db, a_row_written_is_read_back_after_reopening)
{
    struct err err = {0};
    struct buf value = BUF_INIT(0);
    struct db *db = open_at(test_dir());

    CHECK_OK(db_put(db, db_cf(db, "a"), STR("k"), STR("v"), DB_DURABLE, &err));
    CHECK_OK(db_get(db_latest(db), db_cf(db, "a"), STR("k"), &value, &err));
    CHECK_STR(buf_str(&value), STR("v"));
    CHECK_ERR(db_get(db_latest(db), db_cf(db, "b"), STR("k"), &value, &err), ERR_NOT_FOUND);
    db_close(db);

    db = open_at(test_dir());
    buf_reset(&value);
    CHECK_OK(db_get(db_latest(db), db_cf(db, "a"), STR("k"), &value, &err));
    CHECK_STR(buf_str(&value), STR("v"));
    db_close(db);
    buf_release(&value);
}
