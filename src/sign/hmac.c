/* HMAC and SHA-256 over OpenSSL's plain hash functions. For texts as short as those of a signature,
 * the functions of OpenSSL's EVP layer cost twice as much. They also cannot store the state of a
 * hash after the key, as struct hmac_key does. */
#define OPENSSL_SUPPRESS_DEPRECATED /* OpenSSL 3.0 deprecated the plain functions */
#include "sign/hmac.h"

#include <openssl/sha.h>

enum { BLOCK = 64, INNER_PAD = 0x36, OUTER_PAD = 0x5c };

_Static_assert(sizeof(((struct hmac_key *)0)->inner) == sizeof(((SHA256_CTX *)0)->h),
               "a kept state is all of SHA-256's");

static void pad_key(unsigned char pad[BLOCK], struct str key, unsigned char with)
{
    memset(pad, with, BLOCK);
    for (size_t i = 0; i < key.len; i++)
        pad[i] ^= (unsigned char)key.p[i];
}

void sha256(struct str bytes, unsigned char out[SHA256_LEN])
{
    SHA256_CTX c;

    SHA256_Init(&c);
    SHA256_Update(&c, bytes.p, bytes.len);
    SHA256_Final(out, &c);
}

/* --- HMAC-SHA-256 --- */

static void take_block(uint32_t state[8], const unsigned char block[BLOCK])
{
    SHA256_CTX c;

    SHA256_Init(&c);
    SHA256_Transform(&c, block);
    memcpy(state, c.h, sizeof(c.h));
    secure_zero(&c, sizeof(c));
}

void hmac_key_init(struct hmac_key *out, struct str key)
{
    unsigned char pad[BLOCK], shorter[SHA256_LEN];

    if (key.len > BLOCK) {
        sha256(key, shorter);
        key = str_n(shorter, sizeof(shorter));
    }
    pad_key(pad, key, INNER_PAD);
    take_block(out->inner, pad);
    pad_key(pad, key, OUTER_PAD);
    take_block(out->outer, pad);
    secure_zero(pad, sizeof(pad));
    secure_zero(shorter, sizeof(shorter));
}

/* Computes the SHA-256 of one block followed by `bytes`. `state` is the state of the hash after
 * that block. */
static void hash_behind(const uint32_t state[8], struct str bytes, unsigned char out[SHA256_LEN])
{
    SHA256_CTX c;

    SHA256_Init(&c);
    memcpy(c.h, state, sizeof(c.h));
    c.Nl = BLOCK * 8; /* number of bits hashed so far */
    SHA256_Update(&c, bytes.p, bytes.len);
    SHA256_Final(out, &c);
    secure_zero(&c, sizeof(c));
}

void hmac_sha256_by(const struct hmac_key *key, struct str bytes,
                    unsigned char out[HMAC_SHA256_LEN])
{
    unsigned char inner[SHA256_LEN];

    hash_behind(key->inner, bytes, inner);
    hash_behind(key->outer, str_n(inner, sizeof(inner)), out);
    secure_zero(inner, sizeof(inner));
}

void hmac_sha256(struct str key, struct str bytes, unsigned char out[HMAC_SHA256_LEN])
{
    struct hmac_key ready;

    hmac_key_init(&ready, key);
    hmac_sha256_by(&ready, bytes, out);
    secure_zero(&ready, sizeof(ready));
}

/* --- HMAC-SHA-1 --- */

static void sha1_padded(const unsigned char pad[BLOCK], struct str bytes,
                        unsigned char out[HMAC_SHA1_LEN])
{
    SHA_CTX c;

    SHA1_Init(&c);
    SHA1_Update(&c, pad, BLOCK);
    SHA1_Update(&c, bytes.p, bytes.len);
    SHA1_Final(out, &c);
    secure_zero(&c, sizeof(c));
}

void hmac_sha1(struct str key, struct str bytes, unsigned char out[HMAC_SHA1_LEN])
{
    unsigned char pad[BLOCK], shorter[HMAC_SHA1_LEN], inner[HMAC_SHA1_LEN];

    if (key.len > BLOCK) {
        SHA1((const unsigned char *)key.p, key.len, shorter);
        key = str_n(shorter, sizeof(shorter));
    }
    pad_key(pad, key, INNER_PAD);
    sha1_padded(pad, bytes, inner);
    pad_key(pad, key, OUTER_PAD);
    sha1_padded(pad, str_n(inner, sizeof(inner)), out);
    secure_zero(pad, sizeof(pad));
    secure_zero(shorter, sizeof(shorter));
    secure_zero(inner, sizeof(inner));
}
