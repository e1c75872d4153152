/* Making a plain bucket a sharded one. */
#ifndef SHARD_ENABLE_H
#define SHARD_ENABLE_H

#include "shard/shards.h"

enum { SHARD_THRESHOLD_KEEP = -1 };

/* Shards the bucket, or changes the threshold of a bucket that is sharded already. Threshold 0: the
 * configured one. SHARD_THRESHOLD_KEEP: a bucket that is sharded already keeps its own. Requests
 * that are under way fail with ERR_BUSY (H5). ERR_UNSUPPORTED: place_of() has no
 * table for the home. ERR_NO_BUCKET: there is no such bucket. ERR_EXISTS: another bucket has the
 * name of the map bucket. ERR_CONFLICT: a move is making the bucket plain. ERR_BUSY: another thread
 * is sharding the bucket, or the bucket is just becoming plain. */
int shard_enable(struct shards *s, struct storage *home, struct str name, int64_t threshold,
                 struct err *err) MUST_CHECK;

/* Sets the threshold of a sharded bucket. */
int shard_set_threshold(struct sharded *x, uint64_t threshold, struct err *err) MUST_CHECK;

/* Makes the map bucket of a bucket, or opens an empty one that an interrupted enabling has left.
 * With `used`, also opens one that has maps or other objects. *out is a reference, and the tap does
 * not see changes made through it. ERR_EXISTS: a bucket of that name exists and cannot be used. */
int shard_make_log(struct bucket **out, struct storage *home, const struct bucket_info *of,
                   bool used, struct err *err) MUST_CHECK;

/* Checks that the storage keeps the promises that sharding needs, by writing into this bucket: when
 * several writers write with If-None-Match: *, exactly one must win, and a listing must show the
 * object. ERR_UNSUPPORTED: the storage does not keep a promise; the error says which. Leaves no
 * object in the bucket. */
int shard_probe(struct bucket *b, struct err *err) MUST_CHECK;

#endif
