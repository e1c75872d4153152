/* Limits with token buckets how fast keys can be guessed, and reads the keys of HTTP Basic. */
#include "rest/guesses.h"

#include <openssl/evp.h>

void guesses_init(struct guesses *g)
{
    memset(g, 0, sizeof(*g));
    hash_key_random(&g->key);
}

static _Atomic(uint64_t) *guesses_bucket(struct guesses *g, const struct sock_addr *peer)
{
    unsigned char address[16];

    sock_addr_key(peer, address);
    return &g->full_at[hash_sip(&g->key, str_n(address, sizeof(address))) % GUESSES_BUCKETS];
}

/* Removes a token from the bucket of the address. One token is added to a bucket in each
 * GUESSES_REFILL_MS. So the time at which the bucket will be full again also tells how many tokens
 * it lacks, and no other state is needed. */
void guesses_count(struct guesses *g, const struct sock_addr *peer, uint64_t now)
{
    _Atomic(uint64_t) *full_at = guesses_bucket(g, peer);
    uint64_t old = atomic_load(full_at), next;

    do {
        next = (old > now ? old : now) + GUESSES_REFILL_MS;
    } while (!atomic_compare_exchange_weak(full_at, &old, next));
    atomic_fetch_add(&g->failures, 1);
}

bool guesses_allowed(struct guesses *g, const struct sock_addr *peer, uint64_t now)
{
    return atomic_load(guesses_bucket(g, peer)) + GUESSES_REFILL_MS <=
           now + (uint64_t)GUESSES_BURST * GUESSES_REFILL_MS;
}

bool guesses_same(struct str real, struct str given)
{
    return str_eq_secret(real, given.len ? given : STR("?"));
}

bool basic_read(struct basic *out, struct str header)
{
    struct str scheme, token;
    size_t padding = 0;

    str_cut(header, ' ', &scheme, &token);
    token = str_trim(token);
    if (!str_ieq(scheme, STR("basic")) || token.len == 0 || token.len % 4 != 0 ||
        token.len > BASIC_MAX)
        return false;
    while (padding < 2 && token.p[token.len - 1 - padding] == '=')
        padding++;
    int len =
        EVP_DecodeBlock((unsigned char *)out->text, (const unsigned char *)token.p, (int)token.len);
    if (len < (int)padding)
        return false;
    str_cut(str_n(out->text, (size_t)len - padding), ':', &out->user, &out->password);
    return true;
}

void basic_release(struct basic *b)
{
    secure_zero(b->text, sizeof(b->text));
}
