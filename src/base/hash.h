/* Hashes for tables and checksums; cryptographic digests are elsewhere. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/str.h"

/* XXH3, 64 bits: fast. For keys that weir chose itself, and for checksums of stored data. */
uint64_t hash_xxh3(struct str s, uint64_t seed);

/* SipHash-2-4: for tables whose keys a peer chooses. A peer that does not know the hash key cannot
 * make keys collide. */
struct hash_key {
    uint64_t k0, k1;
};

void hash_key_random(struct hash_key *key);
uint64_t hash_sip(const struct hash_key *key, struct str s);

#endif
