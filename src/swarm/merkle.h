/* The hash trees of BEP 52: the leaves are SHA-256 of blocks of 16 KiB, and pairs are hashed until
 * one hash is left. The leaves are filled up to a power of two with 32 zero bytes each. */
#ifndef SWARM_MERKLE_H
#define SWARM_MERKLE_H

#include "base/str.h"

enum { SHA1_LEN = 20, SHA256_LEN = 32, MERKLE_BLOCK = 16 * 1024 };

/* Computes the root over `count` nodes (at least 1), filled up to `width` nodes (a power of two)
 * with `pad` (NULL: zeros). `nodes` is overwritten. */
void merkle_root(uint8_t out[SHA256_LEN], uint8_t *nodes, size_t count, size_t width,
                 const uint8_t *pad);

/* Computes the root over `width` leaves that are all zero. */
void merkle_empty(uint8_t out[SHA256_LEN], size_t width);

size_t merkle_width(size_t count); /* the least power of two that is at least `count` */

#endif
