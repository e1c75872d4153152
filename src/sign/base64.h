/* Base64 (RFC 4648 section 4), strict: padding in full, no blanks, no bits left over. */
#ifndef SIGN_BASE64_H
#define SIGN_BASE64_H

#include "base/buf.h"

void base64_encode(struct buf *out, struct str bytes);
/* Appends. ERR_PARSE; ERR_TOO_LARGE past the buf's limit. On an error `out` may hold a part. */
int base64_decode(struct buf *out, struct str text) MUST_CHECK;
/* A text that stands for exactly `len` bytes. ERR_PARSE; `out` is then as it was. */
int base64_decode_exact(void *out, size_t len, struct str text) MUST_CHECK;

#endif
