/* Limits of a storage that all processes share: requests and bytes (appDB, `w:rate:<storage>`, one
 * hash for each). Any thread. */
#ifndef COORD_LIMIT_H
#define COORD_LIMIT_H

#include "base/err.h"
#include "store/store.h"

enum limit_kind { LIMIT_REQUESTS, LIMIT_BYTES };

/* Takes `wanted` of what the storage may be asked for, at `per_second`; a second's worth may be
 * taken at once, at least one. *wait_ms 0: taken; else after how long it is to be asked again,
 * nothing taken. More than a second's worth is given when there is a whole one, and others then
 * wait for it. per_second 0: no limit. */
int limit_take(struct store *app, struct str storage, enum limit_kind kind, double per_second,
               uint64_t wanted, uint64_t *wait_ms, struct err *err) MUST_CHECK;

#endif
