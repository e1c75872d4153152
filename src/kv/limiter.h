/* A key-value store that makes a limited number of calls a second, for work in the background.
 * Calls that serve clients use the underlying store directly, so they never wait for the limit. */
#ifndef KV_LIMITER_H
#define KV_LIMITER_H

#include "kv/kv.h"

/* Opens a kv that passes each call on to `under` as soon as the limit allows it. A scan counts as
 * one call, however many rows it reads. per_second 0: no limit. kv_close() closes this kv but not
 * `under`, which is borrowed and must outlive it. A view that was opened with one of the two can be
 * used with the other. */
void kv_limiter_open(struct kv **out, struct kv *under, uint64_t per_second);

#endif
