/* The hashes of a body for torrents of both versions, computed in one pass over the body: for
 * version 1 the SHA-1 of each piece; for version 2 the root of the hash tree, and the tree's layer
 * that has one hash for each piece. The hashes of a piece take 52 bytes of memory. A struct pieces
 * belongs to one thread at a time. */
#ifndef SWARM_PIECES_H
#define SWARM_PIECES_H

#include "os/stream.h"
#include "swarm/merkle.h"

#define PIECES_SIZE_MAX ((uint64_t)8192 * GIB) /* largest body: 512 Ki pieces, 26 MiB of hashes */

/* Chooses the length of a piece as libtorrent does: 16 KiB to 16 MiB, growing with the square root
 * of the size. */
uint32_t piece_length(uint64_t size);
size_t piece_count(uint64_t size, uint32_t length);

struct pieces {
    uint64_t size;
    uint32_t length;
    size_t count;
    struct str v1;    /* version 1: SHA1_LEN bytes for each piece */
    struct str layer; /* version 2: SHA256_LEN bytes for each piece; empty: the body is one piece */
    uint8_t root[SHA256_LEN]; /* version 2: "pieces root" in BEP 52 */
};

struct pieces_plan {
    uint64_t size; /* size of the body in bytes: 1 to PIECES_SIZE_MAX */
    /* Length of a piece in bytes: a power of two, at least MERKLE_BLOCK; 0: piece_length(size). */
    uint32_t length;
    /* Called now and then with the number of bytes that are hashed. A negative code ends the
     * hashing and is returned. May be NULL. */
    int (*progress)(void *ctx, uint64_t done, struct err *err);
    void *ctx;
};

/* Reads the whole body and hashes it. ERR_CONFLICT: the body does not have the size of the plan.
 * The caller owns *out and frees it with pieces_release(). */
int pieces_hash(struct pieces *out, struct reader *body, const struct pieces_plan *plan,
                struct err *err) MUST_CHECK;
void pieces_release(struct pieces *p);

#endif
