/* A local storage in the test's folder, all of whose buckets are sharded (sharded_home.h). */
#ifndef TESTS_UNIT_SHARD_SHARDED_LAB_H
#define TESTS_UNIT_SHARD_SHARDED_LAB_H

#include "unit/object/bucket_conformance.h"
#include "unit/shard/sharded_home.h"

struct sharded_lab {
    struct lab lab; /* its storage is the home */
    struct sharded_home home;
    struct db *db;
    struct store *store;
    struct routes *routes;
};

/* `layout` NULL: one segment. */
void sharded_lab_open(struct sharded_lab *l, const struct shard_layout *layout);
void sharded_lab_close(struct sharded_lab *l); /* all buckets must be released */
/* After the collector: the storage's rows and files are whole. */
void sharded_lab_expect_whole(struct sharded_lab *l);

#endif
