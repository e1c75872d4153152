/* What the tests of db/ share. */
#include "unit/db/dbtest.h"

#include <stdio.h>

struct db *dbtest_open(const char *path)
{
    static const struct db_cf_spec cfs[] = {{.name = "a", .skips = true}, {.name = "b"}};
    struct db_options o = {.path = path, .cfs = cfs, .cf_count = ARRAY_SIZE(cfs)};
    struct db *db = NULL;
    struct err err = {0};

    CHECK_OK(db_open(&db, &o, &err));
    return db;
}

const char *dbtest_path(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    return path;
}

void dbtest_put(struct db *db, const char *cf, const char *key, const char *value)
{
    struct err err = {0};

    CHECK_OK(db_put(db, db_cf(db, cf), str_z(key), str_z(value), DB_VOLATILE, &err));
}

void dbtest_expect(struct db_view *view, struct db_cf *cf, const char *key, const char *want)
{
    struct buf value = BUF_INIT(0);
    struct err err = {0};
    int code = db_get(view, cf, str_z(key), &value, &err);

    if (!want) {
        CHECK_ERR(code, ERR_NOT_FOUND);
    } else {
        CHECK_OK(code);
        CHECK_STR(buf_str(&value), str_z(want));
    }
    buf_release(&value);
}

void dbtest_expect_keys(struct db_view *view, struct db_cf *cf, const struct db_range *range,
                        const char *want)
{
    struct db_iter *it = NULL;
    struct buf keys = BUF_INIT(0);
    struct str key, value;
    struct err err = {0};
    int code;

    CHECK_OK(db_iter_open(&it, view, cf, range, &err));
    while ((code = db_iter_next(it, &key, &value, &err)) == 0) {
        if (keys.len > 0)
            buf_append_char(&keys, ' ');
        buf_append_str(&keys, key);
    }
    CHECK_ERR(code, ERR_END);
    CHECK_ERR(db_iter_next(it, &key, &value, &err), ERR_END);
    CHECK_STR(buf_str(&keys), str_z(want));
    db_iter_close(it);
    buf_release(&keys);
}
