/* The query of an announce and of a scrape, and passkeys: whatever comes, what is taken is inside
 * its room, and a scrape's hashes are sorted, each once. */
#include "swarm/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_announce(struct str in)
{
    struct announce_query q;

    if (query_announce(&q, in))
        return;
    BUG_ON(q.key_len > sizeof(q.key) || q.passkey_len > sizeof(q.passkey));
    BUG_ON(q.numwant < NUMWANT_DEFAULT || q.left > QUERY_LEFT_UNKNOWN);
    for (size_t i = 0; i < ARRAY_SIZE(q.ip); i++)
        BUG_ON(!memchr(q.ip[i], 0, sizeof(q.ip[i])));
}

static void check_scrape(struct str in)
{
    enum { MAX = 4 };
    uint8_t room[MAX * INFO_HASH_LEN];
    struct scrape_query q = {.hashes = room, .max = MAX};

    if (query_scrape(&q, in))
        return;
    BUG_ON(q.count == 0 || q.count > MAX);
    for (size_t i = 1; i < q.count; i++)
        BUG_ON(memcmp(room + (i - 1) * INFO_HASH_LEN, room + i * INFO_HASH_LEN, INFO_HASH_LEN) >=
               0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = str_n(data, size), passkey;

    check_announce(in);
    check_scrape(in);
    query_path(in, &passkey);
    BUG_ON(passkey.len > size);
    passkey = query_passkey(in);
    BUG_ON(passkey.len > size);
    return 0;
}
