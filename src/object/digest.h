/* Digests and checksums of a body as it flows: any set of them in one pass.
 *
 * MD5 by md5.h; SHA-1 and SHA-256 by OpenSSL; CRC-32 and CRC-32C by ISA-L; CRC-64/NVME by a
 * carry-less multiply of our own. One owner at a time. */
#ifndef OBJECT_DIGEST_H
#define OBJECT_DIGEST_H

#include "base/arena.h"
#include "base/str.h"

enum digest_kind {
    DIGEST_MD5,
    DIGEST_SHA1,
    DIGEST_SHA256,
    DIGEST_CRC32,
    DIGEST_CRC32C,
    DIGEST_CRC64NVME,
    DIGEST_KINDS
};

enum { DIGEST_MAX = 32 };

struct digest_value {
    unsigned char bytes[DIGEST_MAX]; /* CRCs big-endian, as S3 sends them */
    size_t len;
};

struct digests;

/* `wanted`: bits 1 << DIGEST_*. 0 is fine: nothing is computed. */
struct digests *digests_new(unsigned wanted);
void digests_update(struct digests *d, struct str bytes);
/* Once, at the end; `kind` must have been wanted. */
void digests_final(struct digests *d, enum digest_kind kind, struct digest_value *out);
void digests_free(struct digests *d); /* NULL is fine */

/* One shot. */
void digest_of(enum digest_kind kind, struct str bytes, struct digest_value *out);
size_t digest_size(enum digest_kind kind);

/* Base64, as S3 writes checksums; empty when the arena is full. */
struct str digest_text(struct arena *a, const struct digest_value *value);

/* The CRC of a whole from the CRCs of its parts, without the bytes (full-object checksums of
 * multipart uploads). `left` becomes the CRC of left followed by right, which is `right_len` bytes
 * long. */
void digest_combine(enum digest_kind kind, struct digest_value *left,
                    const struct digest_value *right, uint64_t right_len);

#endif
