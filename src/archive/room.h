/* The room of the archive (room/room.h): its parts in a running weir, and its tasks, routes,
 * commands and metrics. docs/archive.md. */
#ifndef ARCHIVE_ROOM_H
#define ARCHIVE_ROOM_H

#include "archive/archive.h"
#include "rest/guesses.h"
#include "room/room.h"

extern const struct room archive_room;

/* The room's state. */
struct archive_room {
    struct archive archive;
    struct guesses guesses; /* counts of wrong keys from git clients, by address */
};

/* Routes (archive/rest/) and commands (archive/commands/), for struct room. */
extern const struct rest_table archive_account_routes, archive_repo_routes, archive_status_routes,
    archive_satellite_routes, archive_forge_routes, archive_giving_routes, archive_git_routes,
    archive_restore_routes, archive_option_routes;
extern const struct command archive_commands[], archive_satellite_commands[],
    archive_forge_commands[], archive_giving_commands[], archive_restore_commands[];

/* The table of the archive's metrics and the function that fills in their numbers
 * (archive/metrics.c), for struct room. */
enum { ARCHIVE_METRICS = 12 };
extern const struct metric archive_metrics[ARCHIVE_METRICS];
void archive_count(void *state, struct metric_numbers *out);

#endif
