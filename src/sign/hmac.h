/* HMAC (RFC 2104) and SHA-256. No state is kept between calls, and nothing is allocated. Any thread
 * may call these functions. */
#ifndef SIGN_HMAC_H
#define SIGN_HMAC_H

#include "base/str.h"

enum { SHA256_LEN = 32, HMAC_SHA256_LEN = 32, HMAC_SHA1_LEN = 20 };

/* A prepared key of HMAC-SHA-256: the states of SHA-256 after the key's block, for the inner and
 * the outer hash. Preparing a key once saves half the work for each short text. A prepared key is
 * as secret as the key, so secure_zero() it after use. */
struct hmac_key {
    uint32_t inner[8], outer[8];
};

void sha256(struct str bytes, unsigned char out[SHA256_LEN]);
void hmac_key_init(struct hmac_key *out, struct str key);
void hmac_sha256_by(const struct hmac_key *key, struct str bytes,
                    unsigned char out[HMAC_SHA256_LEN]);
void hmac_sha256(struct str key, struct str bytes, unsigned char out[HMAC_SHA256_LEN]);
void hmac_sha1(struct str key, struct str bytes, unsigned char out[HMAC_SHA1_LEN]);

#endif
