/* What the tests of db/ share. */
#ifndef TESTS_UNIT_DB_DBTEST_H
#define TESTS_UNIT_DB_DBTEST_H

#include "db/db.h"
#include "os/thread.h"
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

/* Rows hold a decimal number; absent is 0. */
int dbtest_get_number(struct db_view *view, struct db_cf *cf, struct str key, uint64_t *out,
                      struct err *err);
void dbtest_put_number(struct db_tx *tx, struct db_cf *cf, struct str key, uint64_t n);
/* Change: adds one to the row "n" of the family that is its ctx. */
int dbtest_add_one(struct db_tx *tx, void *ctx, struct err *err);

/* A change that is handed in by a thread of its own. */
struct caller {
    struct thread thread;
    struct db *db;
    db_change_fn *fn;
    void *ctx;
    enum db_durability durability;
    int result;
    struct err err;
    _Atomic(bool) answered;
};
void dbtest_call(struct caller *c);

/* The disk of this process: from dbtest_sync_hold() on, each fdatasync waits until it is let pass,
 * or fails with EIO. */
void dbtest_sync_hold(void);
void dbtest_sync_await(void); /* until one waits */
void dbtest_sync_pass(void);  /* the one that waits; later ones are held again */
void dbtest_sync_fail(void);  /* the one that waits, and all later ones */
void dbtest_sync_release(void);

#endif
