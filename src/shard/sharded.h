/* One sharded bucket in this process: its table of requests, its log, and the buckets of its
 * shards. shards.h has all of them, and bucket.h makes a `struct bucket` of one.
 *
 * Counted by references. Any thread may call. */
#ifndef SHARD_SHARDED_H
#define SHARD_SHARDED_H

#include "object/bucket.h"
#include "os/thread.h"
#include "shard/table.h"

struct routes;

struct sharded {
    struct storage *home;   /* borrowed from the routes */
    struct str name, owner; /* live as long as the struct */
    uint64_t id;            /* of the bucket: a later bucket with this name has another id */
    struct str house;
    struct routes *routes; /* find the storages of the shards */
    struct shard_table *table;
    struct bucket *log; /* the map bucket */
    /* Held while this process makes the next map, and while it changes the state of the bucket on
     * all shards (versions, object lock), so that no shard is made meanwhile. Lock class
     * "shard.changes"; taken before the table's locks. */
    struct mutex changes;
    uint64_t commit_ms; /* how long the outcome of a commit is looked for; tests make it shorter */
    _Atomic(unsigned) refs;
};

/* Makes the sharded bucket whose newest map is `head`. `home` and `routes` are borrowed; references
 * to `log` (the map bucket) and to `head` are taken over. A request that has waited for a window
 * that is closed with SHARD_CLOSED_COPY or SHARD_CLOSED_NONE opens it (H11). The other kinds are
 * opened by the thread that closed them, or at the next start: rows that were adopted go back
 * first. */
struct sharded *sharded_new(struct routes *routes, struct storage *home, struct bucket *log,
                            struct shard_map *head);
struct sharded *sharded_ref(struct sharded *s);
void sharded_unref(struct sharded *s); /* NULL is fine */

/* Opens the bucket itself: *out is a reference. ERR_NO_BUCKET: it was removed; another bucket may
 * have its name. */
int sharded_open_home(struct sharded *s, struct bucket **out, struct err *err) MUST_CHECK;
/* Opens the bucket of a shard; *out is a reference. ERR_NO_BUCKET is never returned: a shard that
 * is missing, or whose name another bucket has, is ERR_CORRUPT. */
int sharded_open_place(struct sharded *s, const struct shard_place *p, struct bucket **out,
                       struct err *err) MUST_CHECK;
/* Reads the id (local_bucket_id()) of the bucket on the home that now has this name. */
int sharded_id_now(struct storage *home, struct str name, uint64_t *out,
                   struct err *err) MUST_CHECK;
/* Publishes the next map: writes it to the log, then installs it. A map that does not pass
 * map_check() is a bug. The caller holds s->changes, and keeps its reference to the map, which it
 * does not change any more.
 * Errors are those of log_commit(); after ERR_CONFLICT and ERR_TIMEOUT the head of the log was read
 * and installed, if it could be read. */
int sharded_publish(struct sharded *s, struct shard_map *next, struct err *err) MUST_CHECK;

#endif
