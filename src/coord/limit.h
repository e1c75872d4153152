/* Limits on requests and bytes per second, which all processes share. Each limit is a hash in
 * appDB: `w:rate:requests:<storage>`, `w:rate:bytes:<storage>` or, for the requests of a forge's
 * token, `w:rate:forge:<host>:<token>`. Any thread may call these functions. */
#ifndef COORD_LIMIT_H
#define COORD_LIMIT_H

#include "base/err.h"
#include "store/store.h"

enum limit_kind { LIMIT_REQUESTS, LIMIT_BYTES, LIMIT_FORGE };

/* Takes `wanted` requests or bytes from a bucket of tokens. The bucket is filled at `per_second`
 * and holds one second's worth, at least one token. *wait_ms 0: the tokens were taken. Otherwise
 * nothing was taken, and the caller asks again after *wait_ms. A caller that wants more tokens than
 * the bucket holds gets them when the bucket is full, and the following callers wait longer.
 * per_second 0: there is no limit. */
int limit_take(struct store *app, struct str storage, enum limit_kind kind, double per_second,
               uint64_t wanted, uint64_t *wait_ms, struct err *err) MUST_CHECK;

#endif
