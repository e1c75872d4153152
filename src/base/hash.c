/* XXH3 and SipHash. XXH3 is inlined from the library's header, which makes it 9 times as fast as
 * the shared library. */
#include "base/hash.h"
#include "base/bytes.h"
#include "base/ids.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_xxh3(struct str s, uint64_t seed)
{
    return XXH3_64bits_withSeed(s.p, s.len, seed);
}

void hash_key_random(struct hash_key *key)
{
    random_bytes(key, sizeof(*key));
}

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotl(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotl(s->v1, 13) ^ s->v0;
    s->v0 = rotl(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotl(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotl(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotl(s->v1, 17) ^ s->v2;
    s->v2 = rotl(s->v2, 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    sip_round(s);
    s->v0 ^= word;
}

/* Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012. */
uint64_t hash_sip(const struct hash_key *key, struct str in)
{
    struct sip s = {
        key->k0 ^ 0x736f6d6570736575,
        key->k1 ^ 0x646f72616e646f6d,
        key->k0 ^ 0x6c7967656e657261,
        key->k1 ^ 0x7465646279746573,
    };
    uint64_t last = (uint64_t)in.len << 56;

    for (; in.len >= 8; in = str_skip(in, 8)) {
        sip_word(&s, le64_read(in.p));
    }
    for (size_t i = 0; i < in.len; i++)
        last |= (uint64_t)(unsigned char)in.p[i] << (8 * i);
    sip_word(&s, last);
    s.v2 ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
