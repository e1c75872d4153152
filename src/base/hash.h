/* Hashes for tables and checksums. They are not cryptographic digests. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/str.h"

/* Returns the 64-bit XXH3 hash. It is fast; use it for keys that weir itself chose and for
 * checksums of stored data, not for keys that a peer chooses. */
uint64_t hash_xxh3(struct str s, uint64_t seed);

/* The secret key of SipHash-2-4, the hash for tables whose keys a peer chooses. A peer that does
 * not know the hash key cannot make keys collide. */
struct hash_key {
    uint64_t k0, k1;
};

void hash_key_random(struct hash_key *key);
uint64_t hash_sip(const struct hash_key *key, struct str s);

#endif
