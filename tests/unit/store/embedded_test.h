/* An embedded store in the test's folder, and checks of its rows. */
#ifndef TESTS_UNIT_STORE_EMBEDDED_TEST_H
#define TESTS_UNIT_STORE_EMBEDDED_TEST_H

#include "db/db.h"
#include "store/embedded_int.h"
#include "unit/store/redis_test.h"
#include "unit/store/store_check.h"
#include "unit/test.h"

struct fixture {
    struct db *db;
    struct store *s;
    enum store_durability durability;
};

void fixture_open(struct fixture *f);
void fixture_close(struct fixture *f);
void fixture_restart(struct fixture *f);

/* Invariants hold; the numbers are returned. */
struct store_check fixture_check(struct fixture *f);
/* Nothing but the settings is there. */
void fixture_check_empty(struct fixture *f);

/* EVAL with arguments split at blanks behind the source; what it answers, printed, or the code's
 * name with '!'. */
void check_script(struct store *s, const char *source, const char *want);

#endif
