/* A sharded bucket as a bucket (object/bucket.h): each call takes a pass for its keys, and asks the
 * shard that owns them. */
#ifndef SHARD_BUCKET_H
#define SHARD_BUCKET_H

#include "shard/sharded.h"

/* Returns a new reference to the bucket; its `storage` is NULL and its `home` is the home. */
struct bucket *sharded_bucket(struct sharded *s);

#endif
