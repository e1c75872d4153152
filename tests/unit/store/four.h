/* The four databases of one server, of either engine, joined: for suites that run over both. */
#ifndef TESTS_UNIT_STORE_FOUR_H
#define TESTS_UNIT_STORE_FOUR_H

#include "store/store.h"
#include "unit/store/redis_server.h"
#include "unit/test.h"

enum { DB_APP, DB_QUEUE, DB_LOCK, DB_CONFIG };

struct four {
    struct store *stores[STORE_DATABASES]; /* by number */
    struct redis_server server;            /* of the redis engine */
    struct db *db;                         /* of the embedded engine */
};

typedef void four_open_fn(struct four *f);
four_open_fn four_open_embedded, four_open_redis;
void four_close(struct four *f);

/* Two tests of one function `static void fn(struct four *f)`, one for each engine. */
#define TEST_FOUR(suite, name)                                                                     \
    static void four_##suite##_##name(struct four *f);                                             \
    TEST(suite, embedded_##name)                                                                   \
    {                                                                                              \
        struct four f_ = {0};                                                                      \
        four_open_embedded(&f_);                                                                   \
        four_##suite##_##name(&f_);                                                                \
        four_close(&f_);                                                                           \
    }                                                                                              \
    TEST(suite, redis_##name)                                                                      \
    {                                                                                              \
        struct four f_ = {0};                                                                      \
        four_open_redis(&f_);                                                                      \
        four_##suite##_##name(&f_);                                                                \
        four_close(&f_);                                                                           \
    }                                                                                              \
    static void four_##suite##_##name(struct four *f)

#endif
