/* Shards of one bucket in one folder: rows of objects that change their bucket without being copied
 * (docs/local-storage.md, "Shards"; docs/sharding.md, "Adopting").
 *
 * A shard is a bucket that was made for a *logical* bucket of the same storage. To taps, change
 * notes and access logs its objects are objects of the logical bucket: `bucket` and `owner` in
 * struct tapped are those of the logical bucket. Ids of versions are computed with the logical
 * bucket, so that an id stays valid when a version changes its shard. A shard that is made or
 * removed tells no tap.
 *
 * Any thread may call these functions. All buckets are of one local storage. */
#ifndef OBJECT_LOCAL_LOCAL_ADOPT_H
#define OBJECT_LOCAL_LOCAL_ADOPT_H

#include "object/local/local.h"

enum { LOCAL_ADOPT_MAX = 1000 }; /* keys that one call moves */

/* Makes a bucket with this name as a shard of the logical bucket, whose owner, versions and object
 * lock it gets. ERR_EXISTS: the name is taken. */
int local_make_shard(struct bucket *logical, struct str name, struct err *err) MUST_CHECK;
/* Removes the shard. ERR_CONFLICT: it is not empty. */
int local_remove_shard(struct storage *s, struct str name, struct err *err) MUST_CHECK;

/* Moves all rows (current and old versions, markers, open and finished uploads) of the keys above
 * `after`, up to and including `upto` (empty: no upper end), from one bucket to another one, in one
 * durable change, with their counts. At most `limit` keys are moved; *last is the last key that was
 * moved, in the arena, and *more says whether there are others behind it. Both buckets are the
 * logical bucket or shards of it. The target must have no rows in the window (ERR_CONFLICT).
 * Nothing is told to taps. Times, ids of versions, ETags, bytes and locks stay as they are. */
int local_adopt(struct bucket *to, struct bucket *from, struct str after, struct str upto,
                size_t limit, struct arena *a, struct str *last, bool *more,
                struct err *err) MUST_CHECK;

/* Counts the keys above `after`, up to `upto`, that have rows of any kind, exactly, and keeps every
 * so many of them: *sample has at most `samples` keys at even distances, in the arena. */
int local_sample_keys(struct bucket *b, struct str after, struct str upto, size_t samples,
                      struct arena *a, uint64_t *count, struct str **sample, size_t *sample_count,
                      struct err *err) MUST_CHECK;

/* Sums the usage of several buckets of one storage as of one moment. */
int local_usage_of(struct bucket *const *buckets, size_t count, struct bucket_usage *out,
                   struct err *err) MUST_CHECK;

#endif
