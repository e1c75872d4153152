/* The hash `w:gateways` in configDB. It says for each process the newest epoch whose policies every
 * change of the process obeys; the process *holds* this epoch. The epoch is a number that grows
 * with each change of a policy (docs/replication.md, "Epochs"). Ages are measured by the store's
 * clock. Each call is one script. Any thread may call these functions. */
#ifndef COORD_GATEWAYS_H
#define COORD_GATEWAYS_H

#include "base/err.h"
#include "store/store.h"

/* Seconds for which other processes wait for a process after its last word, which is its sign of
 * life (coord/lease.h). */
enum { GATEWAY_LIFE_S = 10 };

/* Removes the entry of a process that ends, so that other processes stop waiting for it. `id` is
 * the id with which the process called installation_tell(), which wrote the entry. */
int gateways_forget(struct store *config, struct str id, struct err *err) MUST_CHECK;
/* Sets *out to whether every process whose last word is younger than GATEWAY_LIFE_S holds this
 * epoch or a later one. */
int gateways_reached(struct store *config, int64_t epoch, bool *out, struct err *err) MUST_CHECK;
/* Like gateways_reached(), but for the epoch of the last change of the replication `name`. The
 * epoch is read from `w:epochs`. */
int gateways_reached_name(struct store *config, struct str name, bool *out,
                          struct err *err) MUST_CHECK;

/* Writes `since_ms` to the hash `w:settled` as the time of each local storage in `storages`. The
 * time is in ms, by the store's clock. By this the caller promises that every change of the storage
 * that was acknowledged to a client by that time is recorded for replication. `count` may be 0.
 * *now_ms is set to the store's present time, which a later call may use as its `since_ms`. */
int gateways_settle(struct store *config, const struct str *storages, size_t count,
                    int64_t since_ms, int64_t *now_ms, struct err *err) MUST_CHECK;
/* Reads the time that gateways_settle() wrote for a storage. *settled_ms is 0 when no time was
 * written. *now_ms is the store's present time. */
int gateways_settled(struct store *config, struct str storage, int64_t *settled_ms, int64_t *now_ms,
                     struct err *err) MUST_CHECK;

#endif
