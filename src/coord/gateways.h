/* Which process holds which epoch of the policies: the hash `w:gateways` in configDB
 * (docs/replication.md, "Epochs"). Ages are measured by the store's clock. Any thread; each call is
 * one script. */
#ifndef COORD_GATEWAYS_H
#define COORD_GATEWAYS_H

#include "base/err.h"
#include "store/store.h"

enum { GATEWAY_LIFE_S = 10 }; /* nobody waits for a process whose last word is older */

/* Removes the entry of a process that ends, so that nobody waits for it. `id` is the one that the
 * process gave to installation_tell(), by which it writes its entry. */
int gateways_forget(struct store *config, struct str id, struct err *err) MUST_CHECK;
/* Whether every process that is waited for holds this epoch or a later one. */
int gateways_reached(struct store *config, int64_t epoch, bool *out, struct err *err) MUST_CHECK;
/* As gateways_reached(), for the epoch of the last change of one replication, by its name in
 * w:epochs. */
int gateways_reached_name(struct store *config, struct str name, bool *out,
                          struct err *err) MUST_CHECK;

/* A process with local storages tells the others up to which moment (ms, the store's clock) all
 * changes of a storage that clients had an answer for are recorded; the hash is `w:settled`.
 *
 * Writes that the changes of these storages are recorded up to `since_ms`. `count` may be 0.
 * *now_ms is the store's time, for the next call. */
int gateways_settle(struct store *config, const struct str *storages, size_t count,
                    int64_t since_ms, int64_t *now_ms, struct err *err) MUST_CHECK;
/* Reads that moment. *settled_ms is 0 when no process has written one. */
int gateways_settled(struct store *config, struct str storage, int64_t *settled_ms, int64_t *now_ms,
                     struct err *err) MUST_CHECK;

#endif
