/* All torrents, users and clients; the reaper. */
#include "swarm/cache_int.h"

int cache_reap(struct cache *c, uint64_t timeout_s, size_t limit, size_t *gone, struct err *err)
{
    struct cache_call k;
    int64_t n = 0;

    call_init(&k, c);
    call_u64(&k, timeout_s);
    call_u64(&k, limit);
    int code = call_integer(&k, SCRIPT_swarm_reap, &n, err);
    call_release(&k);
    *gone = code == 0 ? (size_t)n : 0;
    return code;
}
