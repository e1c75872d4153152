/* A lake for tests: a key-value store of each driver, with nodes in memory or in a local storage,
 * and one repository, "repo", whose default branch is "main".
 *
 * A suite that must hold on every driver writes its tests with LAKE_LAB_TEST. Each becomes one test
 * per driver, in the suites <suite>_embedded, <suite>_redis and <suite>_postgres:
 *
 *     LAKE_LAB_TEST(lake_tag, deleting_a_tag_that_is_absent_is_not_found)
 *     {
 *         struct err err = {0};
 *         CHECK_ERR(lake_tag_delete(lab->lake, &lab->arena, &lab->repo, STR("t"), false, &err),
 *                   ERR_NOT_FOUND);
 *     }
 */
#ifndef TESTS_UNIT_LAKE_LAKE_LAB_H
#define TESTS_UNIT_LAKE_LAKE_LAB_H

#include "base/map.h"
#include "lake/lake_int.h"
#include "os/thread.h"
#include "unit/kv/kv_lab.h"
#include "unit/s3/remote_lab.h"

enum lake_lab_nodes {
    LAKE_LAB_MEMORY,
    LAKE_LAB_STORAGE, /* a local storage */
    LAKE_LAB_REMOTE,  /* a remote storage, whose peer is a gateway of this process */
};

#define LAKE_LAB_OWNER  "owner"     /* id of the user who owns repositories and buckets */
#define LAKE_LAB_BUCKET "lake-data" /* with nodes in a storage: a bucket of the owner there */

enum { LAKE_LAB_PART_MIN = 1000 }; /* with LAKE_LAB_STORAGE: bytes of a part but the last */

struct lake_lab {
    struct kv_lab *kv_lab; /* borrowed */
    struct lake *lake;
    struct lake_repo repo; /* in the arena */
    struct arena arena;    /* for results; released by the close */

    /* LAKE_LAB_MEMORY: node files by id, of all repositories. */
    struct mutex lock;         /* guards the members below */
    struct map nodes;          /* id to struct lake_lab_node */
    size_t written, read;      /* how often a node was written, and read */
    int fail_write, fail_read; /* not 0: writing or reading a node fails with this code */

    /* LAKE_LAB_STORAGE and LAKE_LAB_REMOTE: the storage has the bucket LAKE_LAB_BUCKET. */
    struct db *db;
    struct store *config;
    struct routes *routes;
    struct storage *storage;
    struct remote_lab *far;
};

/* Opens the lake and makes the repository. Each of these functions ends the test when it fails. */
void lake_lab_open(struct lake_lab *lab, struct kv_lab *kv_lab, enum lake_lab_nodes nodes);
/* Opens a second lake over the same rows and nodes, as another process would. `kv` gets its
 * key-value store; the caller closes the lake, then the kv. */
struct lake *lake_lab_open_second(struct lake_lab *lab, struct kv **kv);
/* Opens a lake over the rows of `kv` and the lab's nodes; the caller closes both. */
struct lake *lake_lab_open_on(struct lake_lab *lab, struct kv *kv);
void lake_lab_close(struct lake_lab *lab);
/* Opens a lake with nodes in memory, calls the function, closes the lake. */
void lake_lab_run(struct kv_lab *kv_lab, void (*fn)(struct lake_lab *lab));

#define LAKE_LAB_TEST(suite, name)                                                                 \
    static void lake_##suite##_##name(struct lake_lab *lab);                                       \
    KV_LAB_TEST(suite, name)                                                                       \
    {                                                                                              \
        lake_lab_run(lab, lake_##suite##_##name);                                                  \
    }                                                                                              \
    static void lake_##suite##_##name(struct lake_lab *lab)

/* Makes a repository with this name; its namespace is s3://lake-data/<name>. */
struct lake_repo lake_lab_repo(struct lake_lab *lab, const char *name);

/* Forgets the node file, as a storage that lost it. */
void lake_lab_lose_node(struct lake_lab *lab, struct str id);
size_t lake_lab_node_count(struct lake_lab *lab);

/* --- history without trees --- */

/* Writes a commit of the repository with these parents and returns its id, in the arena. The
 * generation follows from the parents unless it is given. Members that are empty get values. */
struct str lake_lab_commit(struct lake_lab *lab, const struct lake_commit *c);
/* The same, with `count` parents and a time in ms since 1970. */
struct str lake_lab_commit_at(struct lake_lab *lab, int64_t created_ms, const char *message,
                              const struct str *parents, size_t count);
/* Sets the head of a branch, which must exist. */
void lake_lab_set_head(struct lake_lab *lab, const char *branch, struct str commit_id);
/* The id of the branch's head. */
struct str lake_lab_head(struct lake_lab *lab, const char *branch);

#endif
