/* A key-value store that makes a limited number of calls a second, for work in the background.
 * Calls that serve clients go to the store itself and are not held up. */
#ifndef KV_LIMITER_H
#define KV_LIMITER_H

#include "kv/kv.h"

/* Opens a kv that passes its calls on to `under`, each when its turn has come. A scan is one call,
 * whatever number of rows it reads. per_second 0: no limit. kv_close() closes this kv but not
 * `under`, which is borrowed and must outlive it. A view that either kv has opened can be used with
 * both. */
void kv_limiter_open(struct kv **out, struct kv *under, uint64_t per_second);

#endif
