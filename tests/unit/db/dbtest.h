/* What the tests of db/ share. */
#ifndef TESTS_UNIT_DB_DBTEST_H
#define TESTS_UNIT_DB_DBTEST_H

#include "db/db.h"
#include "unit/test.h"

/* Families "a" (which skips) and "b" in the folder; ends the test when that fails. */
struct db *dbtest_open(const char *path);

/* A path in this test's folder, valid until the next call. */
const char *dbtest_path(const char *name);

void dbtest_put(struct db *db, const char *cf, const char *key, const char *value);

/* The row's value must be `want`; NULL: there must be no row. */
void dbtest_expect(struct db_view *view, struct db_cf *cf, const char *key, const char *want);
#define EXPECT_ROW(db, cf, key, want) dbtest_expect(db_latest(db), db_cf(db, cf), key, want)

/* The keys of the range must be these, separated by one blank. */
void dbtest_expect_keys(struct db_view *view, struct db_cf *cf, const struct db_range *range,
                        const char *want);

#endif
