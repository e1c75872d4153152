/* The room of the lake: its part of a running weir (room/room.h), with its tasks, routes, commands
 * and metrics (docs/lake.md). */
#ifndef LAKE_ROOM_H
#define LAKE_ROOM_H

#include "lake/lake.h"
#include "lake/mover.h"
#include "lake/rest/rest.h"
#include "lake/space.h"
#include "lake/tasks.h"
#include "room/room.h"

extern const struct room lake_room;

/* The queue of the lake's tasks. */
#define LAKE_QUEUE "lake"
enum { LAKE_QUEUE_WEIGHT = 2 };

/* The room's state. */
struct lake_room {
    const struct services *services;
    struct lake *lake;
    struct lake_space *space;     /* repositories as buckets */
    struct lake_web web;          /* the REST API with lakeFS's calls */
    char *folder;                 /* folder in which tree nodes of remote storages are cached */
    char *gc_folder;              /* folder in which collections sort long lists */
    struct lake_actions *actions; /* hooks of repositories */
    struct keyring *keys;         /* keys of encrypted objects */
    struct lake_tasks tasks;
    struct lake_keeper keeper;
    struct lake_mover *mover; /* runs the migration from an old lakeFS */
};

/* The table of the lake's metrics, and the function that fills in their values (lake/metrics.c),
 * for struct room. */
enum { LAKE_METRICS = 15 };
extern const struct metric lake_metrics[LAKE_METRICS];
void lake_count(void *state, struct metric_numbers *out);

#endif
