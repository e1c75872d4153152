/* Which processes hold which epoch of the policies: the hash `w:gateways` in configDB
 * (docs/replication.md, "Epochs"). The store's clock counts. Any thread; each call one script. */
#ifndef COORD_GATEWAYS_H
#define COORD_GATEWAYS_H

#include "base/err.h"
#include "store/store.h"

enum { GATEWAY_LIFE_S = 10 }; /* one that was not heard of for so long does not count */

/* A process tells its epoch by installation_tell(), well within its life again. At its end: nobody
 * need wait for it. `id` is the process's, without meaning. */
int gateways_forget(struct store *config, struct str id, struct err *err) MUST_CHECK;
/* Whether all that count hold this epoch or a later one. */
int gateways_reached(struct store *config, int64_t epoch, bool *out, struct err *err) MUST_CHECK;
/* The same of the last change of one replication, by its name in w:epochs. */
int gateways_reached_name(struct store *config, struct str name, bool *out,
                          struct err *err) MUST_CHECK;

/* Up to when (ms, the store's clock) everything that clients were told of changes of a local
 * storage is recorded; its process says so again and again (hash `w:settled`). Telling: of these
 * storages at `since_ms`, if there are any; *now_ms for the next time. Asking: 0 when nobody ever
 * said so. */
int gateways_settle(struct store *config, const struct str *storages, size_t count,
                    int64_t since_ms, int64_t *now_ms, struct err *err) MUST_CHECK;
int gateways_settled(struct store *config, struct str storage, int64_t *settled_ms, int64_t *now_ms,
                     struct err *err) MUST_CHECK;

#endif
