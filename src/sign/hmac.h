/* HMAC (RFC 2104) and SHA-256, with contexts that each thread keeps. Any thread. */
#ifndef SIGN_HMAC_H
#define SIGN_HMAC_H

#include "base/str.h"

enum { SHA256_LEN = 32, HMAC_SHA256_LEN = 32, HMAC_SHA1_LEN = 20 };

void sha256(struct str bytes, unsigned char out[SHA256_LEN]);
void hmac_sha256(struct str key, struct str bytes, unsigned char out[HMAC_SHA256_LEN]);
void hmac_sha1(struct str key, struct str bytes, unsigned char out[HMAC_SHA1_LEN]);

#endif
