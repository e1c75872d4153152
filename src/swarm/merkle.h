/* The hash trees of BEP 52: SHA-256 over blocks of 16 KiB, pairs hashed until one is left. What is
 * missing up to a power of two is, among leaves, 32 zero bytes, and above them the tree of such. */
#ifndef SWARM_MERKLE_H
#define SWARM_MERKLE_H

#include "base/str.h"

enum { SHA1_LEN = 20, SHA256_LEN = 32, MERKLE_BLOCK = 16 * 1024 };

/* The root over `count` nodes (1 at least), filled up to `width` (a power of two, not less) with
 * `pad`; NULL: zeros. `nodes` are overwritten. */
void merkle_root(uint8_t out[SHA256_LEN], uint8_t *nodes, size_t count, size_t width,
                 const uint8_t *pad);

/* The root over `width` leaves that are all missing. */
void merkle_empty(uint8_t out[SHA256_LEN], size_t width);

size_t merkle_width(size_t count); /* the next power of two; 1 of 0 */

#endif
