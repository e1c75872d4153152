/* The room (room/room.h) that copies buckets between storages: its state, routes, commands and
 * metrics. docs/replication.md describes what it does. */
#ifndef REPLICA_ROOM_H
#define REPLICA_ROOM_H

#include "command/command.h"
#include "replica/clean.h"
#include "replica/switch/switch.h"
#include "room/room.h"

extern const struct room replica_room;

/* The room's state. Routes may use `services`, `taps` and `store_keep`; the rest is for the room's
 * parts. */
struct replica_room {
    struct services *services;
    struct taps *taps; /* capture changes (replica/tap/tap.h); NULL: replication is off */
    struct sides *sides;
    struct store_keep *store_keep; /* keeps a copy of the configuration (replica/store_keep.h) */
    /* This member and the following ones are NULL or unset in a process that runs no tasks. */
    struct keyring *keys;
    struct tasks *tasks;
    struct switcher switcher;
    struct cleaner cleaner;
    struct keeper *keeper;
};

/* The tables that struct room refers to: REST routes (replica/rest/), commands (replica/commands/)
 * and metrics (replica/metrics.c). */
extern const struct rest_table replica_list_routes, replica_add_routes, replica_change_routes,
    replica_switch_routes, replica_diff_routes, replica_claim_routes, replica_store_routes;
extern const struct command replicate_commands[], switch_commands[], diff_commands[];
enum { REPLICA_METRICS = 8 };
extern const struct metric replica_metrics[REPLICA_METRICS];
void replica_count(void *state, struct metric_numbers *out);

#endif
