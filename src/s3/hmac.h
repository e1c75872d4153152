/* HMAC (RFC 2104), with a context that each thread keeps. Any thread. */
#ifndef S3_HMAC_H
#define S3_HMAC_H

#include "base/str.h"

enum { HMAC_SHA256_LEN = 32, HMAC_SHA1_LEN = 20 };

void hmac_sha256(struct str key, struct str bytes, unsigned char out[HMAC_SHA256_LEN]);
void hmac_sha1(struct str key, struct str bytes, unsigned char out[HMAC_SHA1_LEN]);

#endif
