/* Limits on the requests and bytes per second of storages, and on requests to forges. */
#include "coord/limit.h"

#include "coord/scripts.h"

static const char *const limit_prefixes[] = {
    [LIMIT_REQUESTS] = "w:rate:requests:",
    [LIMIT_BYTES] = "w:rate:bytes:",
    [LIMIT_FORGE] = "w:rate:forge:",
};

int limit_take(struct store *app, struct str storage, enum limit_kind kind, double per_second,
               uint64_t wanted, uint64_t *wait_ms, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct buf key = {0};
    struct reply *reply;

    *wait_ms = 0;
    if (per_second <= 0)
        return 0;
    buf_append_z(&key, limit_prefixes[kind]);
    store_key_part(&key, storage);
    const struct str args[] = {buf_str(&key), arena_fmt(&a, "%llu", (unsigned long long)wanted),
                               arena_fmt(&a, "%.6f", per_second),
                               arena_fmt(&a, "%.6f", per_second < 1 ? 1 : per_second)};
    int code = coord_eval(app, &a, &reply, SCRIPT_limit_take, args, ARRAY_SIZE(args), err);
    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    if (code == 0)
        *wait_ms = (uint64_t)reply->integer;
    buf_release(&key);
    arena_release(&a);
    return code;
}
