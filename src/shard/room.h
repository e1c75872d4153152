/* The room (room/room.h) of sharding: the table of sharded buckets and its overlay, the mover, the
 * plan, REST routes, commands and metrics. docs/sharding.md describes it. */
#ifndef SHARD_ROOM_H
#define SHARD_ROOM_H

#include "command/command.h"
#include "os/loop.h"
#include "room/room.h"
#include "shard/plan.h"
#include "shard/shards.h"

extern const struct room shard_room;

/* The room's state. */
struct shard_room {
    const struct services *services;
    struct shards *shards;
    struct mover *mover;
    struct plan *plan;
    _Atomic(uint64_t) threshold; /* the configured threshold */
    /* Looks for sharded buckets again, as long as the folder of a storage is missing. */
    struct loop looker;
    bool looks; /* `looker` was started */
};

enum { SHARD_THRESHOLD_MIN = 10 };

/* Routes (shard/rest/), commands (shard/commands/) and metrics, for struct room. */
extern const struct rest_table shard_routes;
extern const struct command shard_commands[];
enum { SHARD_METRICS = 12 };
extern const struct metric shard_metrics[SHARD_METRICS];
void shard_count(void *state, struct metric_numbers *out);

#endif
