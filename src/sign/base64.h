/* Base64 (RFC 4648 section 4). Decoding is strict: it requires full padding, and accepts no blanks
 * and no unused bits that are set. */
#ifndef SIGN_BASE64_H
#define SIGN_BASE64_H

#include "base/buf.h"

void base64_encode(struct buf *out, struct str bytes);
/* Decodes the text and appends the bytes. ERR_PARSE: the text is malformed. ERR_TOO_LARGE: the
 * bytes are past the buf's limit. After an error `out` may have a part of the bytes. */
int base64_decode(struct buf *out, struct str text) MUST_CHECK;
/* Decodes a text that must stand for exactly `len` bytes, else ERR_PARSE. After ERR_PARSE `out` is
 * unchanged. */
int base64_decode_exact(void *out, size_t len, struct str text) MUST_CHECK;

/* As base64_encode(), in the alphabet for URLs and file names, without padding (RFC 4648 section
 * 5). */
void base64url_encode(struct buf *out, struct str bytes);
int base64url_decode(struct buf *out, struct str text) MUST_CHECK;

#endif
