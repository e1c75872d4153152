/* The hash `w:gateways` in configDB, which says which epoch of the policies each process holds
 * (docs/replication.md, "Epochs"). Ages are measured by the store's clock. Any thread; each call is
 * one script. */
#ifndef COORD_GATEWAYS_H
#define COORD_GATEWAYS_H

#include "base/err.h"
#include "store/store.h"

/* Nobody waits for a process whose last word (coord/lease.h) is older than these seconds. */
enum { GATEWAY_LIFE_S = 10 };

/* Removes the entry of a process that ends, so that nobody waits for it. `id` is the `process` of
 * its calls of installation_tell(), which wrote the entry. */
int gateways_forget(struct store *config, struct str id, struct err *err) MUST_CHECK;
/* Sets *out to whether every process that is waited for holds this epoch or a later one. */
int gateways_reached(struct store *config, int64_t epoch, bool *out, struct err *err) MUST_CHECK;
/* As gateways_reached(), for the epoch of the last change of the replication `name`, which is read
 * from `w:epochs`. */
int gateways_reached_name(struct store *config, struct str name, bool *out,
                          struct err *err) MUST_CHECK;

/* A process with local storages writes a time for each of them to the hash `w:settled` (ms, the
 * store's clock). It promises that every change of the storage that clients had an answer for by
 * that time is recorded for replication.
 *
 * Writes `since_ms` as the time of each storage in `storages`; `count` may be 0. *now_ms is set to
 * the store's present time, which may be the `since_ms` of a later call. */
int gateways_settle(struct store *config, const struct str *storages, size_t count,
                    int64_t since_ms, int64_t *now_ms, struct err *err) MUST_CHECK;
/* Reads the time that gateways_settle() wrote for a storage. *settled_ms is 0 when there is none.
 * *now_ms is the store's time. */
int gateways_settled(struct store *config, struct str storage, int64_t *settled_ms, int64_t *now_ms,
                     struct err *err) MUST_CHECK;

#endif
