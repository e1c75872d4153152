/* A local storage with a bucket and a shard of it. */
#ifndef TESTS_UNIT_OBJECT_SHARD_LAB_H
#define TESTS_UNIT_OBJECT_SHARD_LAB_H

#include "object/local/local_adopt.h"
#include "unit/object/local_lab.h"

struct shard_lab {
    struct local_lab l;
    struct arena a;
    struct bucket *whole; /* the logical bucket */
    struct bucket *shard;
};

/* Opens a storage without buckets, and closes it. */
void shard_lab_open(struct shard_lab *lab);
void shard_lab_close(struct shard_lab *lab);
/* Makes the buckets whole-<letter> and shard-<letter>; the first with these versions and lock. */
void shard_lab_begin(struct shard_lab *lab, char letter, const struct bucket_info *state);
/* Releases the buckets, and checks that the storage is whole. */
void shard_lab_end(struct shard_lab *lab);
struct bucket *shard_lab_bucket(struct shard_lab *lab, struct str name); /* opens it */

/* Appends everything that can be seen of a bucket: all versions with their meta, bytes and parts,
 * all uploads with their parts, and the usage. */
void shard_lab_describe(struct bucket *b, struct buf *out);
/* The key of the bodies that are sealed. */
extern const struct sealed_key shard_lab_key;

#endif
