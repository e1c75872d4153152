/* Decides where requests go while their bucket is in a switch without downtime; implements
 * route/sides.h. docs/replication.md, "Reads during a switch" (D1 to D8). */
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
    uint64_t wait_ms; /* longest wait of a change until an older one is brought over; 0: 15 s */
};
struct sides *sides_new(const struct sides_options *o);
void sides_free(struct sides *s); /* NULL is fine */

/* For gateway_options.sides; borrowed. */
const struct bucket_sides *sides_of_buckets(struct sides *s);

/* Whether the bucket at the storage is a side of a switch; true while that is not known. Lifecycle
 * rules, which change objects by themselves, leave such a bucket alone. */
bool sides_has(struct sides *s, const struct storage *at, struct str bucket);

#endif
