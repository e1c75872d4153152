/* The room (room/room.h) of the BitTorrent tracker and of torrents of objects: its parts in a
 * running weir, and its tasks, gateway functions and metrics. docs/swarm.md and docs/torrents.md
 * describe it. */
#ifndef SWARM_ROOM_H
#define SWARM_ROOM_H

#include "command/command.h"
#include "room/room.h"
#include "swarm/service.h"
#include "swarm/torrents.h"

extern const struct room swarm_room;

/* The room's state. */
struct swarm_room {
    const struct services *services;
    /* The tracker of this process, and its models in the store (cache.h), which the API manages. */
    struct service service;
    struct torrents *torrents; /* the torrents of objects; NULL: no tracker is configured */
    struct keyring *keys;      /* keys of encrypted objects, to make torrents of them */
    char *snapshot;            /* path of the tracker's snapshot; the tracker borrows it */
};

/* Routes (swarm/rest/) and commands (swarm/commands/), for struct room. */
extern const struct rest_table swarm_object_routes, swarm_tracked_routes, swarm_user_routes,
    swarm_feed_routes;
extern const struct command swarm_commands[], torrent_commands[];

/* The table of the tracker's metrics and the function that fills in their numbers
 * (swarm/metrics.c), for struct room. */
enum { SWARM_METRICS = 23 };
extern const struct metric swarm_metrics[SWARM_METRICS];
void swarm_count(void *state, struct metric_numbers *out);

#endif
