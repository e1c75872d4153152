/* What is asked of a Redis (docs/operations.md, "What is asked of Redis"), looked at when it is
 * first reached and each time that it is another run of itself, as a replica may be set up
 * differently. */
#ifndef REPLICA_STORE_SETTINGS_H
#define REPLICA_STORE_SETTINGS_H

#include "base/log.h"
#include "store/store.h"

/* Warns of what would lose data. A store that does not tell (INFO is forbidden) is no error. */
void store_settings_look(struct store *s, const struct log *log);

#endif
