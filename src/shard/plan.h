/* When a sharded bucket is split or merged: a thread looks at every sharded bucket of the process,
 * counts, decides, and begins moves (docs/sharding.md, "When a bucket is split").
 *
 * - A shard with more objects than the threshold is split. The boundary is the shortest string that
 *   separates two neighbouring keys between 45 % and 55 % of the segment, and one that ends with a
 *   `/` is preferred, so that few common prefixes lie over a boundary.
 * - When 90 % of the keys that were put since the last count sort above the 99th percentile of the
 *   keys before, the keys grow: the boundary is above the greatest key, and nothing moves.
 * - A split that would make a half with less than 40 % of the threshold is not made. Two neighbours
 *   that together have less than half of the threshold are merged, if this process has seen them
 *   with more. So shards that somebody made before there are objects for them stay.
 * - A bucket that was split is not merged by itself for an hour, and the other way round.
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
    /* Shards the plain buckets that are to be sharded without a command. NULL: there are none.
     * Called once in each round. */
    void (*enable)(void *ctx);
    void *ctx;
    uint64_t threshold; /* for buckets without a threshold of their own */
    bool automatic;     /* false: nothing is split or merged by itself */
    uint64_t every_ms;  /* between two rounds; 0: 1 s */
    uint64_t calm_ms;   /* between two moves in opposite directions; 0: an hour */
};

/* Makes a plan whose thread does not run yet. */
struct plan *plan_new(const struct plan_options *o);
int plan_start(struct plan *p, struct err *err) MUST_CHECK;
void plan_stop(struct plan *p);
void plan_free(struct plan *p); /* NULL is fine; the thread must not run */
/* Changes the numbers of the configuration. */
void plan_configure(struct plan *p, uint64_t threshold, bool automatic);
/* Makes the next round begin now. */
void plan_wake(struct plan *p);
/* Looks at one bucket now, on the caller's thread, and begins a move if the bucket needs one. */
int plan_look(struct plan *p, struct sharded *s, struct err *err) MUST_CHECK;

/* Returns a sentence in the arena that says why the bucket is not split at the moment. Empty: it is
 * being split, or no shard has more objects than the threshold. */
struct str plan_why(struct plan *p, struct sharded *s, struct arena *a);

struct shard_count {
    uint32_t place;
    struct bucket_usage usage;
};
/* Returns the usage of each place of the newest map, in the arena, in the map's order, as of one
 * moment. */
int shard_counts(struct sharded *s, struct arena *a, struct shard_count **out, size_t *count,
                 struct err *err) MUST_CHECK;

/* --- choosing a boundary; pure functions --- */

/* Returns the shortest string s with below <= s < above, in the arena. One that ends with `/` is
 * returned instead if there is any that begins `above`. `below` must be less than `above`. */
struct str boundary_between(struct str below, struct str above, struct arena *a);
/* Returns the best boundary for a split in two halves of a sorted sample of keys, in the arena;
 * empty: the keys cannot be split (fewer than two). */
struct str boundary_of_sample(const struct str *keys, size_t count, struct arena *a);

#endif
