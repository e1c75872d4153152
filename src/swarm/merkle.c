/* Computes hash trees level by level. */
#include "swarm/merkle.h"

#include <openssl/evp.h>

static void hash_pair(EVP_MD_CTX *ctx, uint8_t *out, const uint8_t *left, const uint8_t *right)
{
    BUG_ON(EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1 ||
           EVP_DigestUpdate(ctx, left, SHA256_LEN) != 1 ||
           EVP_DigestUpdate(ctx, right, SHA256_LEN) != 1 ||
           EVP_DigestFinal_ex(ctx, out, NULL) != 1);
}

void merkle_root(uint8_t out[SHA256_LEN], uint8_t *nodes, size_t count, size_t width,
                 const uint8_t *pad)
{
    uint8_t fill[SHA256_LEN] = {0};
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    BUG_ON(!ctx || count == 0 || width < count || (width & (width - 1)) != 0);
    if (pad)
        memcpy(fill, pad, sizeof(fill));
    for (; width > 1; width /= 2) {
        for (size_t i = 0; i < count; i += 2) {
            const uint8_t *right = i + 1 < count ? nodes + (i + 1) * SHA256_LEN : fill;
            hash_pair(ctx, nodes + i / 2 * SHA256_LEN, nodes + i * SHA256_LEN, right);
        }
        hash_pair(ctx, fill, fill, fill);
        count = (count + 1) / 2;
    }
    memcpy(out, nodes, SHA256_LEN);
    EVP_MD_CTX_free(ctx);
}

void merkle_empty(uint8_t out[SHA256_LEN], size_t width)
{
    uint8_t leaf[SHA256_LEN] = {0};

    merkle_root(out, leaf, 1, width, NULL);
}

size_t merkle_width(size_t count)
{
    size_t width = 1;

    while (width < count)
        width *= 2;
    return width;
}
