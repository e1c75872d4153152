/* Digests in one pass: each block goes through all of them while it is in the cache.
 *
 * OpenSSL's algorithms are fetched once per process, and each thread keeps the last struct digests
 * that it freed. Making a new struct digests would cost three allocations and a look-up per
 * algorithm, which for a small object is as much as the hashing. */
#include "object/digest.h"
#include "base/bytes.h"
#include "object/crc.h"
#include "object/md5.h"
#include "sign/base64.h"

#include <isa-l/crc.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

enum { BLOCK = 16 * 1024, EVP_FIRST = DIGEST_SHA1, EVP_KINDS = DIGEST_SHA256 + 1 };

struct digests {
    unsigned wanted;
    EVP_MD_CTX *evp[EVP_KINDS]; /* made at the first use, and kept for later uses */
    struct md5 md5;
    uint32_t crc32, crc32c;
    uint64_t crc64;
};

static const struct {
    const char *name; /* OpenSSL's name of the algorithm; NULL: not from OpenSSL */
    size_t size;
    unsigned bits; /* width of a CRC */
    uint64_t poly;
} kinds[DIGEST_KINDS] = {
    [DIGEST_MD5] = {NULL, MD5_LEN},
    [DIGEST_SHA1] = {"SHA1", 20},
    [DIGEST_SHA256] = {"SHA256", 32},
    [DIGEST_CRC32] = {NULL, 4, 32, CRC32_POLY},
    [DIGEST_CRC32C] = {NULL, 4, 32, CRC32C_POLY},
    [DIGEST_CRC64NVME] = {NULL, 8, 64, CRC64NVME_POLY},
};

/* Set once, by digest_methods_load(); constant after that. */
static EVP_MD *algorithms[EVP_KINDS];
static pthread_key_t spare_key; /* the struct digests that this thread freed last */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void destroy(void *set)
{
    struct digests *d = set;

    for (int kind = EVP_FIRST; kind < EVP_KINDS; kind++)
        EVP_MD_CTX_free(d->evp[kind]);
    free(d);
}

static void digest_methods_load(void)
{
    for (int kind = EVP_FIRST; kind < EVP_KINDS; kind++) {
        algorithms[kind] = EVP_MD_fetch(NULL, kinds[kind].name, NULL);
        BUG_ON(!algorithms[kind]);
    }
    BUG_ON(pthread_key_create(&spare_key, destroy) != 0);
}

struct digests *digests_new(unsigned wanted)
{
    struct digests *d;

    pthread_once(&once, digest_methods_load);
    d = pthread_getspecific(spare_key);
    if (d)
        pthread_setspecific(spare_key, NULL);
    else
        d = xcalloc(1, sizeof(*d));
    d->wanted = wanted;
    if (wanted & 1u << DIGEST_MD5)
        md5_init(&d->md5);
    d->crc32 = 0;
    d->crc32c = UINT32_MAX;
    d->crc64 = 0;
    for (int kind = EVP_FIRST; kind < EVP_KINDS; kind++) {
        if (!(wanted & 1u << kind))
            continue;
        if (!d->evp[kind])
            d->evp[kind] = EVP_MD_CTX_new();
        BUG_ON(!d->evp[kind] || !EVP_DigestInit_ex2(d->evp[kind], algorithms[kind], NULL));
    }
    return d;
}

static void update_block(struct digests *d, struct str block)
{
    if (d->wanted & 1u << DIGEST_MD5)
        md5_update(&d->md5, block);
    for (int kind = EVP_FIRST; kind < EVP_KINDS; kind++)
        if (d->wanted & 1u << kind)
            BUG_ON(!EVP_DigestUpdate(d->evp[kind], block.p, block.len));
    if (d->wanted & 1u << DIGEST_CRC32)
        d->crc32 = crc32_gzip_refl(d->crc32, (const unsigned char *)block.p, block.len);
    if (d->wanted & 1u << DIGEST_CRC32C)
        d->crc32c = crc32_iscsi((unsigned char *)(uintptr_t)block.p, (int)block.len, d->crc32c);
    if (d->wanted & 1u << DIGEST_CRC64NVME)
        d->crc64 = crc64_nvme(d->crc64, block);
}

void digests_update(struct digests *d, struct str bytes)
{
    if (d->wanted == 0)
        return;
    for (; bytes.len; bytes = str_skip(bytes, BLOCK))
        update_block(d, str_head(bytes, BLOCK));
}

static void put_crc(enum digest_kind kind, uint64_t crc, struct digest_value *out)
{
    out->len = kinds[kind].size;
    be_write(out->bytes, crc, out->len);
}

static uint64_t get_crc(enum digest_kind kind, const struct digest_value *value)
{
    BUG_ON(value->len != kinds[kind].size);
    return be_read(value->bytes, value->len);
}

void digests_final(struct digests *d, enum digest_kind kind, struct digest_value *out)
{
    BUG_ON(!(d->wanted & 1u << kind));
    switch (kind) {
    case DIGEST_MD5:
        md5_final(&d->md5, out->bytes);
        out->len = MD5_LEN;
        break;
    case DIGEST_CRC32:
        put_crc(kind, d->crc32, out);
        break;
    case DIGEST_CRC32C:
        put_crc(kind, (uint32_t)~d->crc32c, out);
        break;
    case DIGEST_CRC64NVME:
        put_crc(kind, d->crc64, out);
        break;
    default:
        BUG_ON(!EVP_DigestFinal_ex(d->evp[kind], out->bytes, NULL));
        out->len = kinds[kind].size;
    }
}

void digests_free(struct digests *d)
{
    if (!d)
        return;
    if (pthread_getspecific(spare_key) || pthread_setspecific(spare_key, d) != 0)
        destroy(d);
}

void digest_of(enum digest_kind kind, struct str bytes, struct digest_value *out)
{
    struct digests *d = digests_new(1u << kind);

    digests_update(d, bytes);
    digests_final(d, kind, out);
    digests_free(d);
}

struct str digest_text(struct arena *a, const struct digest_value *value)
{
    struct buf text = BUF_INIT(0);

    base64_encode(&text, str_n(value->bytes, value->len));
    struct str kept = arena_str(a, buf_str(&text));
    buf_release(&text);
    return kept;
}

bool digest_is(const struct digest_value *a, const struct digest_value *b)
{
    return str_eq(str_n(a->bytes, a->len), str_n(b->bytes, b->len));
}

size_t digest_size(enum digest_kind kind)
{
    return kinds[kind].size;
}

void digest_combine(enum digest_kind kind, struct digest_value *left,
                    const struct digest_value *right, uint64_t right_len)
{
    BUG_ON(!kinds[kind].bits);
    put_crc(kind,
            crc_combine(kinds[kind].poly, kinds[kind].bits, get_crc(kind, left),
                        get_crc(kind, right), right_len),
            left);
}
