/* One sharded bucket in this process: its table of requests, its log, and the buckets of its
 * shards. shards.h has the table of all sharded buckets; bucket.h makes a `struct bucket` of one.
 *
 * Reference counted. Any thread may call these functions. */
#ifndef SHARD_SHARDED_H
#define SHARD_SHARDED_H

#include "object/bucket.h"
#include "os/thread.h"
#include "shard/place.h"
#include "shard/table.h"

struct routes;

struct sharded {
    struct storage *home;          /* borrowed from the routes */
    const struct place_ops *place; /* the calls for the home's buckets */
    struct str name, owner;        /* valid as long as the struct */
    uint64_t id; /* id of the bucket (place_id()); a later bucket with this name has
                    another id */
    struct str house;
    struct routes *routes; /* find the storages of the shards */
    struct shard_table *table;
    struct bucket *log; /* the map bucket */
    /* Held while this process makes the next map, and while it changes the state of the bucket on
     * all shards (versions, object lock), so that no shard is made meanwhile. Lock class
     * "shard.changes"; taken before the table's locks. */
    struct mutex changes;
    /* Called after a map of this process was written to the log and installed here, so that other
     * processes learn of it (agree.h). NULL: there are none. Set before the bucket is served. */
    void (*published)(void *ctx, struct sharded *s, const struct shard_map *m);
    void *published_ctx;
    uint64_t commit_ms; /* how long a commit tries to find out whether its map was written;
                           shorter in tests */
    _Atomic(unsigned) refs;
};

/* Makes the sharded bucket whose newest map is `head`. `home` and `routes` are borrowed. The
 * function takes over the caller's references to `log` (the map bucket) and to `head`.
 *
 * A request that has waited for long opens a window that is closed with SHARD_CLOSED_COPY or
 * SHARD_CLOSED_NONE (H11). Windows that are closed in another way are opened only by the mover
 * (move_repair()), because adopted rows must go back first. */
struct sharded *sharded_new(struct routes *routes, struct storage *home, struct bucket *log,
                            struct shard_map *head);
struct sharded *sharded_ref(struct sharded *s);
void sharded_unref(struct sharded *s); /* NULL is fine */

/* Opens the bucket itself: *out is a reference. ERR_NO_BUCKET: it was removed; another bucket may
 * have its name. */
int sharded_open_home(struct sharded *s, struct bucket **out, struct err *err) MUST_CHECK;
/* Opens the bucket of a shard; *out is a reference. ERR_CORRUPT: the shard is missing, or another
 * bucket has its name. ERR_NO_BUCKET is never returned. */
int sharded_open_place(struct sharded *s, const struct shard_place *p, struct bucket **out,
                       struct err *err) MUST_CHECK;
/* Reads the id (place_id()) of the bucket on the home that now has this name. */
int sharded_id_now(struct storage *home, struct str name, uint64_t *out,
                   struct err *err) MUST_CHECK;
/* Publishes the next map: writes it to the log, then installs it. The map must pass map_check().
 * The caller holds s->changes. The caller keeps its reference to the map, and must not change the
 * map any more.
 *
 * Errors are those of log_commit(). After ERR_CONFLICT and ERR_TIMEOUT the function has read the
 * head of the log and installed it, if it could be read. */
int sharded_publish(struct sharded *s, struct shard_map *next, struct err *err) MUST_CHECK;

#endif
