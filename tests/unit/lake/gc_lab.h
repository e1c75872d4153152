/* A lake with real bodies for tests of the collector: short forms that put bodies, collect, and
 * read every live object in full. */
#ifndef TESTS_UNIT_LAKE_GC_LAB_H
#define TESTS_UNIT_LAKE_GC_LAB_H

#include "lake/gc_int.h"
#include "unit/lake/hand.h"

/* Opens a lake with a storage whose collector has a grace of 1 ms, calls the function, closes it.
 */
void gc_lab_run(struct kv_lab *kv_lab, enum lake_lab_nodes nodes, void (*fn)(struct lake_lab *lab));

#define GC_LAB_TEST(suite, name)                                                                   \
    static void gc_##suite##_##name(struct lake_lab *lab);                                         \
    KV_LAB_TEST(suite, name)                                                                       \
    {                                                                                              \
        gc_lab_run(lab, LAKE_LAB_STORAGE, gc_##suite##_##name);                                    \
    }                                                                                              \
    static void gc_##suite##_##name(struct lake_lab *lab)

/* The same, and once more in the suite <suite>_far, with the namespace on a remote storage. */
#define GC_PLACES_TEST(suite, name)                                                                \
    static void gc_##suite##_##name(struct lake_lab *lab);                                         \
    static void far_##suite##_##name(struct kv_lab *lab)                                           \
    {                                                                                              \
        gc_lab_run(lab, LAKE_LAB_REMOTE, gc_##suite##_##name);                                     \
    }                                                                                              \
    TEST(suite##_far, name)                                                                        \
    {                                                                                              \
        kv_lab_run(KV_LAB_EMBEDDED, far_##suite##_##name);                                         \
    }                                                                                              \
    GC_LAB_TEST(suite, name)

/* Puts a body at a new address and stages it. The entry is in the hand's arena. */
struct lake_entry gc_lab_put(struct hand *h, const char *branch, const char *path,
                             const char *content);
/* Stages an entry whose body is there already. */
int gc_lab_stage(struct hand *h, const char *branch, const char *path, const struct lake_entry *e,
                 const struct lake_keep *keep);
/* Puts a file below the namespace. */
void gc_lab_put_file(struct hand *h, struct str key, struct str content);
/* Puts a file as another system does: the repository need not be one of this lake. */
void gc_lab_put_foreign(struct hand *h, struct str key, struct str content);
bool gc_lab_has_file(struct hand *h, struct str key);
size_t gc_lab_count_files(struct hand *h, const char *folder);

/* Commits with a time that lies this many days back. */
struct str gc_lab_commit(struct hand *h, const char *branch, const char *message, int64_t days);
void gc_lab_rules(struct hand *h, uint32_t default_days);

/* Asks for a run and carries it out, when everything that was put so far is old enough. */
struct lake_gc_report gc_lab_collect(struct hand *h, bool mark_only);
int gc_lab_try_collect(struct hand *h, struct lake_gc_report *out);

/* Reads every object of the ref in full; each body must be the content that its entry names. */
size_t gc_lab_read_all(struct hand *h, struct str ref);
/* Reads all branches and tags, and returns the number of different bodies. */
void gc_lab_read_refs(struct hand *h);

#endif
