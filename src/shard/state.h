/* The state that every shard has: versions and object lock (docs/sharding.md, H13). The
 * functions that take a sharded bucket are called under s->changes. */
#ifndef SHARD_STATE_H
#define SHARD_STATE_H

#include "shard/sharded.h"

struct state_change {
    bool lock; /* turns object lock on instead of setting versions */
    bool on;
    bool untapped; /* the tap does not see the change (place_hide()) */
};

/* Changes the state of one bucket. */
int state_change_one(const struct state_change *c, struct bucket *b, struct err *err) MUST_CHECK;
/* Changes the state of the bucket and of all its shards. After an error all of them have the same
 * state again or, if that has failed too, the newest map says that the state is being changed, and
 * the next change, move or start repairs it. ERR_NO_BUCKET: the bucket is plain or was removed.
 * ERR_CORRUPT: a shard is missing. ERR_BUSY: something in the bucket is closed and cannot be
 * opened. */
int state_change(struct sharded *s, const struct state_change *c, struct err *err) MUST_CHECK;
/* Brings all shards of the map to the strongest state that one of them has; called while the map
 * has SHARD_CLOSED_DOCUMENTS. */
int state_repair(struct sharded *s, const struct shard_map *m, struct err *err) MUST_CHECK;

#endif
