/* Checks whether the settings of a Redis are those that weir needs (docs/operations.md, "What is
 * asked of Redis"). They are checked when the Redis is first reached, and after each restart or
 * failover, because a replica may be set up differently. */
#ifndef REPLICA_STORE_SETTINGS_H
#define REPLICA_STORE_SETTINGS_H

#include "base/log.h"
#include "store/store.h"

/* Logs a warning for each setting that would lose data. Does nothing if INFO is forbidden, because
 * the settings cannot be read then. */
void store_settings_look(struct store *s, const struct log *log);

#endif
