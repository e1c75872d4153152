/* How far replications are: as cells, and as bars that move. */
#ifndef REPLICA_COMMANDS_REPLICATE_WATCH_H
#define REPLICA_COMMANDS_REPLICATE_WATCH_H

#include "command/manage.h"

/* Adds the members "rate" and "left" to a replication of an answer, for people. */
void replicate_describe(json_t *row);

/* Asks for the replications at `path` again and again, until the initial copy of each is done, and
 * shows how far they are: bars on a terminal, else a line for each change; with --json one JSON
 * object a line. ERR_PEER: objects failed. */
int replicate_watch(struct api_client *r, const struct invocation *inv, const char *path,
                    struct err *err) MUST_CHECK;

#endif
