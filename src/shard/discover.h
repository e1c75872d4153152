/* Finding the sharded buckets of a storage by its buckets alone (docs/sharding.md, "Crash points").
 */
#ifndef SHARD_DISCOVER_H
#define SHARD_DISCOVER_H

#include "shard/shards.h"

/* Looks at all buckets of a storage with STORAGE_FOLDER: reads the log of each map bucket, and
 * serves the bucket or says why it cannot be served. A bucket that has shards but no log is broken.
 * An error means that the storage's buckets could not be listed, or that its folder is missing
 * (ERR_OFFLINE: its sharded buckets are broken with this code until a later call). */
int discover_storage(struct shards *s, struct storage *home, struct err *err) MUST_CHECK;

/* Looks at one bucket that is not served. *found: it is served now. */
int discover_bucket(struct shards *s, struct storage *home, struct str name, bool *found,
                    struct err *err) MUST_CHECK;

/* Opens the map bucket of a bucket: *out is a reference whose changes no tap sees. ERR_NO_BUCKET:
 * there is none. */
int discover_open_log(struct bucket **out, struct storage *home, struct str name,
                      struct err *err) MUST_CHECK;

/* A shard that was found by its name. */
struct found_shard {
    struct str name, mark; /* in the arena */
    uint32_t number;
};
/* Finds the buckets on the storage that have the names of shards of this bucket, sorted by name. */
int discover_shards(struct storage *home, struct arena *a, struct str name,
                    struct found_shard **out, size_t *count, struct err *err) MUST_CHECK;

#endif
