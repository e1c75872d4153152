/* The hashes of a body for torrents of both versions, in one pass over a reader: SHA-1 of each
 * piece (version 1), and of version 2 the hash tree's layer of pieces and its root. Memory follows
 * the number of pieces (52 bytes each), not the body. One owner at a time. */
#ifndef SWARM_PIECES_H
#define SWARM_PIECES_H

#include "os/stream.h"
#include "swarm/merkle.h"

#define PIECES_SIZE_MAX ((uint64_t)8192 * GIB) /* 512 Ki pieces, 26 MiB of hashes */

/* As libtorrent chooses it by itself: 16 KiB to 16 MiB, about the size's square root. */
uint32_t piece_length(uint64_t size);
size_t piece_count(uint64_t size, uint32_t length);

struct pieces {
    uint64_t size;
    uint32_t length;
    size_t count;
    struct str v1;            /* SHA1_LEN each */
    struct str layer;         /* SHA256_LEN each; empty: all is one piece */
    uint8_t root[SHA256_LEN]; /* "pieces root" */
};

struct pieces_plan {
    uint64_t size;   /* 1 to PIECES_SIZE_MAX */
    uint32_t length; /* a power of two, MERKLE_BLOCK at least; 0: piece_length(size) */
    /* Told now and then how many bytes are done; a negative code ends it. May be NULL. */
    int (*progress)(void *ctx, uint64_t done, struct err *err);
    void *ctx;
};

/* Reads all of the body. ERR_CONFLICT: it has not the size that the plan says. pieces_release(). */
int pieces_hash(struct pieces *out, struct reader *body, const struct pieces_plan *plan,
                struct err *err) MUST_CHECK;
void pieces_release(struct pieces *p);

#endif
