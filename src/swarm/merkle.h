/* The hash trees of BEP 52. The leaves are the SHA-256 hashes of blocks of 16 KiB. Pairs of hashes
 * are hashed until one hash, the root, is left. Leaves of 32 zero bytes are added until the number
 * of leaves is a power of two. */
#ifndef SWARM_MERKLE_H
#define SWARM_MERKLE_H

#include "base/str.h"
#include "sign/hmac.h"

enum { SHA1_LEN = 20, MERKLE_BLOCK = 16 * 1024 };

/* Computes the root over `count` nodes (at least 1). Nodes with the value `pad` (NULL: zeros) are
 * added until there are `width` nodes (a power of two). `nodes` is overwritten. */
void merkle_root(uint8_t out[SHA256_LEN], uint8_t *nodes, size_t count, size_t width,
                 const uint8_t *pad);

/* Computes the root over `width` leaves of 32 zero bytes each. */
void merkle_empty(uint8_t out[SHA256_LEN], size_t width);

size_t merkle_width(size_t count); /* the least power of two that is at least `count` */

#endif
