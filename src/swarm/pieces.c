/* Hashes the pieces of a body. The SHA-1 and the SHA-256 digest get the same blocks, because a
 * piece is a whole number of blocks. */
#include "swarm/pieces.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum { READ_BYTES = 256 * 1024, PIECE_LENGTH_MAX = 16 * 1024 * 1024 };
#define PROGRESS_BYTES ((uint64_t)8 * MIB)

/* Chooses the piece length that libtorrent chooses. libtorrent wants the list of hashes to be about
 * as long as twice the square root of the size. A measurement of all lengths showed: libtorrent
 * takes the next larger length when the size exceeds a hundredth of the square of the length,
 * rounded. */
uint32_t piece_length(uint64_t size)
{
    uint64_t length = MERKLE_BLOCK;

    while (length < PIECE_LENGTH_MAX && size > (length * length + 50) / 100)
        length *= 2;
    return (uint32_t)length;
}

size_t piece_count(uint64_t size, uint32_t length)
{
    return (size_t)((size + length - 1) / length);
}

struct hashing {
    struct pieces *out;
    const struct pieces_plan *plan;
    EVP_MD_CTX *sha1, *sha256;
    uint8_t *v1, *layer; /* hashes of all pieces so far, for version 1 and version 2 */
    uint8_t *leaves;     /* hashes of the blocks of the current piece */
    size_t leaf_count, pieces;
    uint32_t block_fill;
    uint64_t done, told;
};

static void begin_hash(EVP_MD_CTX *ctx, const EVP_MD *kind)
{
    BUG_ON(EVP_DigestInit_ex(ctx, kind, NULL) != 1);
}

static int hashing_init(struct hashing *h, struct err *err)
{
    struct pieces *p = h->out;

    h->sha1 = EVP_MD_CTX_new();
    h->sha256 = EVP_MD_CTX_new();
    h->v1 = malloc(p->count * SHA1_LEN);
    h->layer = malloc(p->count * SHA256_LEN);
    h->leaves = malloc((size_t)p->length / MERKLE_BLOCK * SHA256_LEN);
    if (!h->sha1 || !h->sha256 || !h->v1 || !h->layer || !h->leaves)
        return err_code(err, ERR_NO_MEMORY);
    begin_hash(h->sha1, EVP_sha1());
    begin_hash(h->sha256, EVP_sha256());
    return 0;
}

static void end_block(struct hashing *h)
{
    BUG_ON(EVP_DigestFinal_ex(h->sha256, h->leaves + h->leaf_count * SHA256_LEN, NULL) != 1);
    begin_hash(h->sha256, EVP_sha256());
    h->leaf_count++;
    h->block_fill = 0;
}

/* Finishes the piece's hash of version 1 and its hash tree of version 2. The tree has a leaf for
 * each block of a whole piece, even if the last piece is shorter. In a body of one piece the tree
 * has only as many leaves as its blocks need. */
static void end_piece(struct hashing *h)
{
    size_t width = h->out->count == 1 ? merkle_width(h->leaf_count) : h->out->length / MERKLE_BLOCK;

    BUG_ON(EVP_DigestFinal_ex(h->sha1, h->v1 + h->pieces * SHA1_LEN, NULL) != 1);
    begin_hash(h->sha1, EVP_sha1());
    merkle_root(h->layer + h->pieces * SHA256_LEN, h->leaves, h->leaf_count, width, NULL);
    h->pieces++;
    h->leaf_count = 0;
}

static void hash_bytes(struct hashing *h, const uint8_t *p, size_t len)
{
    while (len > 0) {
        size_t n = size_min(len, MERKLE_BLOCK - h->block_fill);
        BUG_ON(EVP_DigestUpdate(h->sha1, p, n) != 1 || EVP_DigestUpdate(h->sha256, p, n) != 1);
        h->block_fill += (uint32_t)n;
        h->done += n;
        p += n;
        len -= n;
        bool last = h->done == h->out->size;
        if (h->block_fill == MERKLE_BLOCK || last)
            end_block(h);
        if (h->done % h->out->length == 0 || last)
            end_piece(h);
    }
}

static int tell_progress(struct hashing *h, struct err *err)
{
    if (!h->plan->progress || h->done - h->told < PROGRESS_BYTES)
        return 0;
    h->told = h->done;
    return h->plan->progress(h->plan->ctx, h->done, err);
}

static int hash_body(struct hashing *h, struct reader *body, struct err *err)
{
    uint8_t *buffer = xzalloc(READ_BYTES);
    size_t got = 1;
    int code = 0;

    while (code == 0 && got > 0) {
        code = reader_read(body, buffer, READ_BYTES, &got, err);
        if (code == 0 && got > h->out->size - h->done)
            code = err_set(err, ERR_CONFLICT, "the body is longer than it was said to be");
        if (code == 0 && got > 0) {
            hash_bytes(h, buffer, got);
            code = tell_progress(h, err);
        }
    }
    if (code == 0 && h->done < h->out->size)
        code = err_set(err, ERR_CONFLICT, "the body is shorter than it was said to be");
    free(buffer);
    return code;
}

/* Computes the root of the tree above the layer of pieces. The layer is filled up with the roots of
 * pieces of zeros. */
static int hash_finish(struct hashing *h, struct err *err)
{
    struct pieces *p = h->out;
    size_t bytes = p->count * SHA256_LEN;
    uint8_t empty[SHA256_LEN];
    uint8_t *nodes = malloc(bytes);

    if (!nodes)
        return err_code(err, ERR_NO_MEMORY);
    memcpy(nodes, h->layer, bytes);
    merkle_empty(empty, p->length / MERKLE_BLOCK);
    merkle_root(p->root, nodes, p->count, merkle_width(p->count), empty);
    free(nodes);
    p->v1 = str_n(h->v1, p->count * SHA1_LEN);
    h->v1 = NULL;
    if (p->count > 1) {
        p->layer = str_n(h->layer, bytes);
        h->layer = NULL;
    }
    return 0;
}

int pieces_hash(struct pieces *out, struct reader *body, const struct pieces_plan *plan,
                struct err *err)
{
    uint32_t length = plan->length ? plan->length : piece_length(plan->size);
    struct pieces p = {.size = plan->size, .length = length};
    struct hashing h = {.out = &p, .plan = plan};
    int code = 0;

    BUG_ON(length < MERKLE_BLOCK || (length & (length - 1)) != 0);
    if (plan->size == 0 || plan->size > PIECES_SIZE_MAX)
        return err_set(err, plan->size ? ERR_TOO_LARGE : ERR_INVALID, "%s",
                       plan->size ? "it is too large for a torrent" : "it is empty");
    p.count = piece_count(p.size, length);
    code = hashing_init(&h, err);
    if (code == 0)
        code = hash_body(&h, body, err);
    if (code == 0)
        code = hash_finish(&h, err);
    if (code == 0)
        *out = p;
    EVP_MD_CTX_free(h.sha1);
    EVP_MD_CTX_free(h.sha256);
    free(h.v1);
    free(h.layer);
    free(h.leaves);
    return code;
}

void pieces_release(struct pieces *p)
{
    free((void *)(uintptr_t)p->v1.p);
    free((void *)(uintptr_t)p->layer.p);
    *p = (struct pieces){0};
}
