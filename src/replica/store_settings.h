/* Checks what weir needs of a Redis (docs/operations.md, "What is asked of Redis"): when it is
 * first reached, and after each restart or failover, as a replica may be set up differently. */
#ifndef REPLICA_STORE_SETTINGS_H
#define REPLICA_STORE_SETTINGS_H

#include "base/log.h"
#include "store/store.h"

/* Warns about settings that would lose data. It is no error if the store does not tell (INFO is
 * forbidden). */
void store_settings_look(struct store *s, const struct log *log);

#endif
