/* When a sharded bucket is split or merged. A thread checks every sharded bucket of the process: it
 * counts the objects of its shards, decides, and begins moves (docs/sharding.md, "When a bucket is
 * split").
 *
 * - A shard with more objects than the threshold is split. The boundary is the shortest string that
 *   separates two neighbouring keys between 45 % and 55 % of the segment. A boundary that ends with
 *   `/` is preferred, so that few common prefixes are cut by a boundary.
 * - The keys *grow* when at least 90 % of the keys that were put since the last sample sort above
 *   the 99th percentile of the earlier keys. A shard whose keys grow is split above its greatest
 *   key as soon as it has 95 % of the threshold, and hardly any row moves.
 * - A split in the middle is not made if one half would have less than 40 % of the threshold. Then
 *   the shard is split above its greatest key if its keys grow.
 * - Two neighbours that together have less than half of the threshold are merged, but only if this
 *   process has seen them with more. So shards that somebody has made in advance stay.
 * - A bucket that was split is not merged automatically for an hour, and the other way round.
 *
 * Any thread may call these functions. */
#ifndef SHARD_PLAN_H
#define SHARD_PLAN_H

#include "shard/move.h"

struct plan;

struct plan_options {
    struct mover *mover;
    const struct log *log;
    /* Calls each() for every sharded bucket of the process, without a lock that the mover or the
     * plan may need. */
    void (*list)(void *ctx, void (*each)(void *arg, struct sharded *s), void *arg);
    /* Shards the plain buckets that are to be sharded without a command. Called once in each round.
     * NULL: no bucket is sharded in this way. */
    void (*enable)(void *ctx);
    void *ctx;
    uint64_t threshold; /* number of objects beyond which a shard is split, for buckets without a
                           threshold of their own */
    bool automatic;     /* false: the plan never splits or merges */
    uint64_t every_ms;  /* time between two rounds; 0: 1 s */
    uint64_t calm_ms;   /* time between two moves in opposite directions; 0: an hour */
};

/* Makes a plan whose thread does not run yet. */
struct plan *plan_new(const struct plan_options *o);
int plan_start(struct plan *p, struct err *err) MUST_CHECK;
void plan_stop(struct plan *p);
void plan_free(struct plan *p); /* NULL is fine; the thread must not run */
/* Sets the values that come from the configuration. */
void plan_configure(struct plan *p, uint64_t threshold, bool automatic);
/* Makes the next round begin now. */
void plan_wake(struct plan *p);
/* Checks one bucket now, on the caller's thread, and begins a move if the bucket needs one. */
int plan_look(struct plan *p, struct sharded *s, struct err *err) MUST_CHECK;

/* Returns a sentence in the arena that says why the bucket is not split at the moment. Empty: it is
 * being split, or no shard has more objects than the threshold. */
struct str plan_why(struct plan *p, struct sharded *s, struct arena *a);

struct shard_count {
    uint32_t place;
    struct bucket_usage usage;
};
/* Returns the usage of each place of the newest map, as of one moment. The array is in the arena,
 * in the order of the map's places. */
int shard_counts(struct sharded *s, struct arena *a, struct shard_count **out, size_t *count,
                 struct err *err) MUST_CHECK;

/* --- choosing a boundary; pure functions --- */

/* Returns a string s with below <= s < above, in the arena: the shortest beginning of `above` that
 * ends with `/` and is greater than `below`, if there is one, else the shortest string in that
 * range. `below` must be less than `above`. */
struct str boundary_between(struct str below, struct str above, struct arena *a);
/* Returns the best boundary to cut a sorted sample of keys into two halves, in the arena. Empty:
 * the keys cannot be split, because there are fewer than two. */
struct str boundary_of_sample(const struct str *keys, size_t count, struct arena *a);

#endif
