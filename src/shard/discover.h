/* Finding the sharded buckets of a storage by its buckets alone (docs/sharding.md, "Crash points").
 */
#ifndef SHARD_DISCOVER_H
#define SHARD_DISCOVER_H

#include "shard/shards.h"

/* Looks at all buckets of a storage with STORAGE_FOLDER that are plain or broken: reads the log of
 * each map bucket, and serves the bucket or says why it cannot be served. A bucket that has shards
 * but no log is broken. A map bucket is believed only if it belongs to the owner of the bucket, and
 * its map has the id of the bucket and names shards of it; others are ignored.
 * An error means that the storage's buckets could not be listed, or that its folder is missing
 * (ERR_OFFLINE: its sharded buckets are broken with this code until a later call). */
int discover_storage(struct shards *s, struct storage *home, struct err *err) MUST_CHECK;

/* Looks at one bucket, unless it is served. ERR_NO_BUCKET: it is not sharded. ERR_EXISTS: its map
 * bucket is not its own and is ignored. ERR_BUSY: another thread is at work with it. 0: it is
 * served, or it was sharded and is plain now. */
int discover_bucket(struct shards *s, struct storage *home, struct str name,
                    struct err *err) MUST_CHECK;
/* The same for a caller that has claimed the name (shards_recover()), which ends the claim. */
int discover_claimed(struct shards *s, struct storage *home, struct str name,
                     const struct err *before, struct err *err) MUST_CHECK;
/* Reads the newest map of a bucket and checks that it is the bucket's own, without acting on it.
 * ERR_NO_BUCKET, ERR_NOT_FOUND: there is no such map. Other errors: those of log_head(). */
int discover_check(struct storage *home, struct str name, struct err *err) MUST_CHECK;

/* Opens the map bucket of a bucket: *out is a reference whose changes no tap sees. ERR_NO_BUCKET:
 * there is none. */
int discover_open_log(struct bucket **out, struct storage *home, struct str name,
                      struct err *err) MUST_CHECK;

/* A shard that was found by its name. */
struct found_shard {
    struct str name, mark; /* in the arena */
    uint32_t number;
};
/* Finds the shards of this bucket on the storage, sorted by name. Buckets that have the name of a
 * shard but are none are left out. */
int discover_shards(struct storage *home, struct arena *a, struct str name,
                    struct found_shard **out, size_t *count, struct err *err) MUST_CHECK;

#endif
