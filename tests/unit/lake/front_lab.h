/* A lake with its space: repositories as buckets, over a local storage. */
#ifndef TESTS_UNIT_LAKE_FRONT_LAB_H
#define TESTS_UNIT_LAKE_FRONT_LAB_H

#include "lake/space.h"
#include "unit/lake/lake_lab.h"
#include "unit/object/bucket_conformance.h"

struct front_lab {
    struct lake_lab lake; /* with LAKE_LAB_STORAGE; has the repository "repo" */
    struct lake_space *space;
    struct storage refs; /* a storage whose buckets are the branch "main" of repositories */
};

void front_lab_open(struct front_lab *f, struct kv_lab *kv_lab);
void front_lab_close(struct front_lab *f);

/* Opens the repository "repo" as a bucket; the caller unrefs it. */
struct bucket *front_lab_bucket(struct front_lab *f);
/* Makes a branch of "repo" at the head of main. */
void front_lab_branch(struct front_lab *f, const char *name, bool hidden);
void front_lab_tag(struct front_lab *f, const char *name, const char *ref);
/* Commits what is staged on the branch. */
void front_lab_commit(struct front_lab *f, const char *branch);

/* A test for each driver, with a lab open. */
#define FRONT_TEST(suite, name)                                                                    \
    static void front_##suite##_##name(struct front_lab *f);                                       \
    KV_LAB_TEST(suite, name)                                                                       \
    {                                                                                              \
        struct front_lab front;                                                                    \
        front_lab_open(&front, lab);                                                               \
        front_##suite##_##name(&front);                                                            \
        front_lab_close(&front);                                                                   \
    }                                                                                              \
    static void front_##suite##_##name(struct front_lab *f)

#endif
