/* A sharded bucket as a `struct bucket` (object/bucket.h): each call takes a pass for its keys
 * (table.h), and calls the shard that owns them. */
#ifndef SHARD_BUCKET_H
#define SHARD_BUCKET_H

#include "shard/sharded.h"

/* Returns a new reference to the bucket. Its `storage` is NULL, and its `home` is the storage on
 * which the bucket was made. */
struct bucket *sharded_bucket(struct sharded *s);

#endif
