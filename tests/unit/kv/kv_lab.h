/* A key-value store of each driver for tests, empty at the beginning of each test.
 *
 * A suite that must hold on every driver writes its tests with KV_LAB_TEST. Each becomes one test
 * per driver, in the suites <suite>_embedded, <suite>_redis and <suite>_postgres:
 *
 *     KV_LAB_TEST(kv, a_row_that_was_set_is_read)
 *     {
 *         struct err err = {0};
 *         CHECK_OK(kv_set(lab->kv, KV_NAME("p", "k"), STR("v"), &err));
 *     }
 */
#ifndef TESTS_UNIT_KV_KV_LAB_H
#define TESTS_UNIT_KV_KV_LAB_H

#include "kv/kv.h"
#include "unit/store/redis_server.h"
#include "unit/test.h"

enum kv_lab_driver { KV_LAB_EMBEDDED, KV_LAB_REDIS, KV_LAB_POSTGRES, KV_LAB_DRIVERS };

struct db;
struct store;

struct kv_lab {
    struct kv *kv;
    enum kv_lab_driver driver;
    struct arena arena; /* for results; released by the close */

    struct db *db;             /* embedded */
    struct redis_server redis; /* redis: a server of this test's own */
    struct store *store;
    const char *url; /* postgres: a database of this test's own */
};

/* Opens an empty kv of the driver, in this test's folder or on a server. Ends the test when that
 * fails. */
void kv_lab_open(struct kv_lab *lab, enum kv_lab_driver driver);
/* Opens a second kv on the same rows, as another process would; the caller closes it. Embedded
 * rows have one process alone, so there it shares the database. */
struct kv *kv_lab_open_second(struct kv_lab *lab);
/* The same, and closes it again: for openings that fail. */
int kv_lab_try_second(struct kv_lab *lab, struct err *err);
void kv_lab_close(struct kv_lab *lab);

/* The URL of a PostgreSQL database of this test's own, with the tables of a key-value store.
 * postgres_shared_drop() removes it. */
const char *kv_lab_postgres_url(void);

/* Opens a kv, calls the function, closes it. */
void kv_lab_run(enum kv_lab_driver driver, void (*fn)(struct kv_lab *lab));

#define KV_LAB_TEST(suite, name)                                                                   \
    static void lab_##suite##_##name(struct kv_lab *lab);                                          \
    TEST(suite##_embedded, name)                                                                   \
    {                                                                                              \
        kv_lab_run(KV_LAB_EMBEDDED, lab_##suite##_##name);                                         \
    }                                                                                              \
    TEST(suite##_redis, name)                                                                      \
    {                                                                                              \
        kv_lab_run(KV_LAB_REDIS, lab_##suite##_##name);                                            \
    }                                                                                              \
    TEST(suite##_postgres, name)                                                                   \
    {                                                                                              \
        kv_lab_run(KV_LAB_POSTGRES, lab_##suite##_##name);                                         \
    }                                                                                              \
    static void lab_##suite##_##name(struct kv_lab *lab)

/* --- short forms --- */

#define KV_NAME(partition, key) ((struct kv_name){STR(partition), STR(key)})

/* Each ends the test when the call fails. */
void kv_lab_set(struct kv *kv, const char *partition, const char *key, const char *value);
void kv_lab_remove(struct kv *kv, const char *partition, const char *key);
/* The row's value must be `want`; NULL: there must be no row. */
void kv_lab_expect(struct kv *kv, const char *partition, const char *key, const char *want);
/* The keys that the scan still gives must be these, with a blank between them. */
void kv_lab_expect_rest(struct kv_scan *scan, const char *want);
/* The same for a scan of the range; NULL: of the whole partition. */
void kv_lab_expect_keys(struct kv *kv, const char *partition, const struct kv_range *range,
                        const char *want);

#endif
