/* Finding the sharded buckets of a storage by its buckets alone (docs/sharding.md, "Crash points").
 */
#ifndef SHARD_DISCOVER_H
#define SHARD_DISCOVER_H

#include "shard/shards.h"

/* Handles all plain and all broken buckets of a storage for which place_of() has a table: reads the
 * log of each map bucket, and either serves the bucket or notes why it cannot be served. A bucket
 * that has shards but no log is broken. A map bucket is used only if it has the same owner as the
 * bucket, and its newest map has the id of the bucket and names only shards of the bucket. Other
 * map buckets are ignored. A bucket is broken, too, if its map is one of another installation of
 * weir, or if the map is active and the bucket itself does not exist.
 *
 * An error means that the storage's buckets could not be listed, or that its folder is missing. A
 * missing folder is ERR_OFFLINE; then the storage's sharded buckets stay broken with this code
 * until a later call. */
int discover_storage(struct shards *s, struct storage *home, struct err *err) MUST_CHECK;

/* Handles one bucket in the same way, unless it is served already. 0: the bucket is served, or was
 * sharded and is plain now. ERR_NO_BUCKET: it is not sharded. ERR_EXISTS: its map bucket belongs to
 * something else and is ignored. ERR_BUSY: another thread has claimed the bucket. */
int discover_bucket(struct shards *s, struct storage *home, struct str name,
                    struct err *err) MUST_CHECK;
/* Does the same for a caller that has claimed the name (shards_recover()). The call ends the
 * claim. */
int discover_claimed(struct shards *s, struct storage *home, struct str name,
                     const struct err *before, struct err *err) MUST_CHECK;
/* Reads the newest map of a bucket and checks that it belongs to the bucket. Nothing else happens.
 * ERR_NO_BUCKET, ERR_NOT_FOUND: there is no such map. Other errors are those of log_head(). */
int discover_check(struct storage *home, struct str name, struct err *err) MUST_CHECK;
/* Does the same, and returns what it has read. The caller calls discovered_release(), also after an
 * error. */
struct discovered {
    struct bucket *log;     /* a reference */
    struct shard_map *head; /* a reference */
    bool exists;            /* the bucket itself exists */
};
int discover_read(struct discovered *out, struct storage *home, struct str name,
                  struct err *err) MUST_CHECK;
void discovered_release(struct discovered *d);

/* Opens the map bucket of a bucket; *out is a reference, and the tap does not see changes made
 * through it. ERR_NO_BUCKET: there is no map bucket. */
int discover_open_log(struct bucket **out, struct storage *home, struct str name,
                      struct err *err) MUST_CHECK;

/* A shard that was found by its name. */
struct found_shard {
    struct str name, mark; /* in the arena */
    uint32_t number;
};
/* Finds the shards of this bucket on the storage, sorted by name. A bucket that only has the name
 * of a shard, but is no shard, is left out. */
int discover_shards(struct storage *home, struct arena *a, struct str name,
                    struct found_shard **out, size_t *count, struct err *err) MUST_CHECK;

#endif
