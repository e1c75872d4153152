/* Decides where requests go while their bucket is in a switch without downtime. Implements
 * route/sides.h. The rules are in docs/replication.md, "Reads during a switch" (D1 to D8). */
#ifndef REPLICA_SWITCH_SIDES_H
#define REPLICA_SWITCH_SIDES_H

#include "coord/replication.h"
#include "route/route.h"
#include "route/sides.h"

struct sides;
struct taps;

struct sides_options {
    struct replications *replications; /* borrowed, like the other pointers */
    struct routes *routes;
    struct taps *taps;
    struct store *app, *config;
    /* Longest time for which a change waits until newer state was copied; 0: 15 s. */
    uint64_t wait_ms;
};
struct sides *sides_new(const struct sides_options *o);
void sides_free(struct sides *s); /* NULL is fine */

/* Returns the functions for gateway_options.sides; borrowed from `s`. */
const struct bucket_sides *sides_of_buckets(struct sides *s);

/* Returns whether the bucket at the storage is a side of a switch that is in progress or, without
 * downtime, announced; true while that is not known. Lifecycle rules, which change objects by
 * themselves, and moves between shards leave such a bucket alone. */
bool sides_has(struct sides *s, const struct storage *at, struct str bucket);

#endif
