/* Making a plain bucket a sharded one. */
#ifndef SHARD_ENABLE_H
#define SHARD_ENABLE_H

#include "shard/shards.h"

enum { SHARD_THRESHOLD_KEEP = -1 };

/* Shards the bucket, or changes the threshold of a bucket that is sharded already. A threshold of 0
 * is the configured one; SHARD_THRESHOLD_KEEP: a sharded bucket keeps its own. The home must have
 * STORAGE_FOLDER (ERR_UNSUPPORTED). ERR_NO_BUCKET: there is no such bucket. ERR_EXISTS: another
 * bucket has the name of the map bucket. ERR_BUSY: the bucket is being made plain. Requests that
 * are under way fail with ERR_BUSY (H5). */
int shard_enable(struct shards *s, struct storage *home, struct str name, int64_t threshold,
                 struct err *err) MUST_CHECK;

/* Sets the threshold of a sharded bucket. */
int shard_set_threshold(struct sharded *x, uint64_t threshold, struct err *err) MUST_CHECK;

/* Makes the map bucket of a bucket, or opens the one that an enabling has left without a map; *out
 * is a reference whose changes no tap sees. With `used`, it also opens one that has maps, or what
 * is left of them. ERR_EXISTS: a bucket of that name is there and is no such map bucket. */
int shard_make_log(struct bucket **out, struct storage *home, const struct bucket_info *of,
                   bool used, struct err *err) MUST_CHECK;

/* Checks that the storage keeps the promises that sharding needs, by writing into this bucket: of
 * several writers with If-None-Match: * exactly one wins, and a listing shows what was written.
 * ERR_UNSUPPORTED: the error says which promise it does not keep. Leaves no object. */
int shard_probe(struct bucket *b, struct err *err) MUST_CHECK;

#endif
