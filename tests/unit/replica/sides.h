/* Two storages, of the kinds that a test asks for, with a bucket "box" on each. */
#ifndef TESTS_UNIT_REPLICA_SIDES_H
#define TESTS_UNIT_REPLICA_SIDES_H

#include "copy/copy.h"
#include "unit/object/bucket_conformance.h"
#include "unit/s3/remote_lab.h"

enum { SIDE_PART_MIN = 100 };

enum side_kind { SIDE_LOCAL, SIDE_REMOTE };

struct sides {
    struct db *db;
    struct storage *locals[2];
    struct remote_lab *far;
    char far_dir[256];
    struct bucket *from, *to;
    struct arena a;
    struct copy_options o;
};

void sides_open(struct sides *s, enum side_kind from, enum side_kind to);
void sides_close(struct sides *s);

/* A copy of `key` from one side to the other; in `s`'s arena. */
struct copy sides_copy(struct sides *s, const char *key);
/* The same, done: ends the test when it fails. */
struct copy_result sides_bring(struct sides *s, const char *key);
/* Both sides have the same bytes, ETag, headers. */
void sides_expect_same(struct sides *s, const char *key);
struct object_info sides_head(struct sides *s, struct bucket *b, const char *key);

/* One test for each way: static void fn(struct sides *s). */
#define TEST_SIDES(suite, name)                                                                    \
    static void sides_##suite##_##name(struct sides *s);                                           \
    static void run_##suite##_##name(enum side_kind from, enum side_kind to)                       \
    {                                                                                              \
        struct sides s;                                                                            \
        sides_open(&s, from, to);                                                                  \
        sides_##suite##_##name(&s);                                                                \
        sides_close(&s);                                                                           \
    }                                                                                              \
    TEST(suite, local_to_local_##name)                                                             \
    {                                                                                              \
        run_##suite##_##name(SIDE_LOCAL, SIDE_LOCAL);                                              \
    }                                                                                              \
    TEST(suite, local_to_remote_##name)                                                            \
    {                                                                                              \
        run_##suite##_##name(SIDE_LOCAL, SIDE_REMOTE);                                             \
    }                                                                                              \
    TEST(suite, remote_to_local_##name)                                                            \
    {                                                                                              \
        run_##suite##_##name(SIDE_REMOTE, SIDE_LOCAL);                                             \
    }                                                                                              \
    static void sides_##suite##_##name(struct sides *s)

#endif
