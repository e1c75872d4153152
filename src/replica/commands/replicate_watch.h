/* Shows the progress of replications: as cells of a table, and as progress bars. */
#ifndef REPLICA_COMMANDS_REPLICATE_WATCH_H
#define REPLICA_COMMANDS_REPLICATE_WATCH_H

#include "command/manage.h"

/* Adds the members "rate" and "left", written for people, to `row`, which is a replication in an
 * answer of the API. */
void replicate_describe(json_t *row);

/* Asks for the replications at `path` again and again, until the initial copy of each is done, and
 * shows their progress. The function shows bars on a terminal, else a line for each change; with
 * --json it prints one JSON object a line. ERR_PEER: some objects could not be copied. */
int replicate_watch(struct api_client *r, const struct invocation *inv, const char *path,
                    struct err *err) MUST_CHECK;

#endif
