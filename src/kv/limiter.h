/* A key-value store that makes at most so many calls a second, for work in the background: the
 * calls of those who serve clients go to the store itself and are not held up. */
#ifndef KV_LIMITER_H
#define KV_LIMITER_H

#include "kv/kv.h"

/* Opens a kv whose calls are passed on to `under`, each when its turn has come; a scan counts when
 * it is opened. per_second 0: no limit. kv_close() closes this kv and not `under`, which is
 * borrowed and must outlive it. Its views and those of `under` are the same. */
void kv_limiter_open(struct kv **out, struct kv *under, uint64_t per_second);

#endif
