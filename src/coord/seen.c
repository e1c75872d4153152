/* Numbers the steps that the store has acknowledged (coord/seen.h). */
#include "coord/seen.h"

#include <stdio.h>

struct store_args seen_ask(const struct seen *s, struct seen_keys *out)
{
    if (!s)
        return (struct store_args){0};
    snprintf(out->floor, sizeof(out->floor), "%llu", (unsigned long long)atomic_load(s->floor));
    out->keys[0] = str_z(s->folder);
    out->keys[1] = str_z(out->floor);
    return (struct store_args){out->keys, ARRAY_SIZE(out->keys)};
}

void seen_took(struct seen *s, uint64_t number)
{
    if (!s)
        return;
    uint64_t have = atomic_load(s->floor);
    while (have < number && !atomic_compare_exchange_weak(s->floor, &have, number))
        ;
}

int seen_check(struct seen *s, const struct reply *answer, struct err *err)
{
    if (!s || !reply_is_error(answer, "WENTBACK"))
        return 0;
    atomic_store(&s->lost, true);
    return err_set(err, ERR_UNAVAILABLE, "the store has lost what it had acknowledged");
}
