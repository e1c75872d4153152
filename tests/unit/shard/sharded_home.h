/* Sharded buckets on a storage of the caller's. Every bucket that is made there through
 * object/overlay.h is sharded at once, by a layout. Tests may look at the shards, and put maps of
 * their own in force. */
#ifndef TESTS_UNIT_SHARD_SHARDED_HOME_H
#define TESTS_UNIT_SHARD_SHARDED_HOME_H

#include "base/vec.h"
#include "object/overlay.h"
#include "route/route.h"
#include "shard/bucket.h"

/* Buckets whose names begin so are made as plain buckets. */
#define SHARDED_HOME_PLAIN "plain"

enum { SHARDED_HOME_PLACES = 64 }; /* the greatest number of a place in a layout */

/* How new buckets are cut. */
struct shard_layout {
    const struct str *bounds; /* the ends of all segments but the last, ascending */
    size_t count;             /* of bounds; 0: one segment on place 0 */
    /* Number of the place of each of the `count` + 1 segments. NULL: segment i is on place i. */
    const uint32_t *places;
};

/* The overlay that shards every bucket that is made on the routes' main storage. */
struct sharded_home {
    struct overlay overlay;
    struct routes *routes; /* borrowed */
    struct storage *storage;
    struct shard_layout layout; /* borrowed; may be set before a bucket is made */
    struct mutex lock;          /* guards `all` */
    VEC(struct sharded *) all;
};

/* `layout` NULL: one segment. */
void sharded_home_open(struct sharded_home *h, struct routes *routes,
                       const struct shard_layout *layout);
/* Before routes_close(); all buckets must be released. */
void sharded_home_close(struct sharded_home *h);

/* Returns the sharded bucket with this name; borrowed. NULL: there is none. */
struct sharded *sharded_home_find(struct sharded_home *h, struct str name);
/* Forgets the sharded bucket, so that the name is that of the plain bucket on the home. */
void sharded_home_forget(struct sharded_home *h, struct sharded *s);
/* Returns the bucket of one shard; a reference. */
struct bucket *sharded_home_place(struct sharded *s, uint32_t number);
/* Returns the newest map, for a look at it; a reference. */
struct shard_map *sharded_home_map(struct sharded *s);
/* Makes this the map that requests obey, without writing it to the log. Releases `next`. */
void sharded_home_install(struct sharded *s, struct shard_map *next);
/* Makes the bucket of a new shard for `next`, and adds its place. */
void sharded_home_add_place(struct sharded *s, struct shard_map *next, uint32_t number);

#endif
