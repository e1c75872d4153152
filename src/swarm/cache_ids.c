/* Finds a user's passkey by the user's id. */
#include "swarm/cache_int.h"

int cache_find_passkey(struct cache *c, uint64_t id, char out[PASSKEY_LEN + 1], struct err *err)
{
    struct arena a = {0};
    struct reply *reply;
    int code = store_call(c->o.store, &a, &reply, err, STR("HGET"),
                          cache_key(c, &a, "user_ids", STR_EMPTY), base36(&a, id));

    if (code == 0 && reply_is_nil(reply))
        code = err_code(err, ERR_NOT_FOUND);
    if (code == 0)
        code = reply_expect(reply, REPLY_BULK, err);
    if (code == 0 && reply->str.len > PASSKEY_LEN)
        code = err_set(err, ERR_CORRUPT, "the passkey of a user is too long");
    if (code == 0) {
        memcpy(out, reply->str.p, reply->str.len);
        out[reply->str.len] = 0;
    }
    arena_release(&a);
    return code;
}
