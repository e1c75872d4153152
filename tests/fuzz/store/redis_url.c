/* Urls of Redis: whatever is accepted has one place to go to, within the limits, and what is said
 * of a refused one shows no password. */
#include "store/redis_int.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_target(const struct redis_target *t)
{
    BUG_ON((t->host != NULL) + (t->path != NULL) + (t->master != NULL) != 1);
    BUG_ON(t->host && (!t->host[0] || strlen(t->host) > REDIS_HOST_MAX || !t->port));
    BUG_ON(t->user && !t->password);
    BUG_ON((t->master != NULL) != (t->sentinel_count > 0));
    BUG_ON(t->sentinel_count > REDIS_MAX_SENTINELS || t->database < 0);
    for (size_t i = 0; i < t->sentinel_count; i++) {
        BUG_ON(!t->sentinels[i].host || t->sentinels[i].tls != t->tls);
        check_target(&t->sentinels[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct redis_target t;
    struct err err = {0};

    if (redis_target_parse(&t, str_n(data, size), 0, &err) == 0) {
        check_target(&t);
        BUG_ON(!redis_target_is_same(&t, &t));
        redis_target_release(&t);
    } else {
        BUG_ON(err.code != ERR_INVALID || !err.text[0] || strstr(err.text, "hunter2"));
    }
    return 0;
}
