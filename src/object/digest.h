/* Digests and checksums of a body as it flows: any number of kinds in one pass.
 *
 * MD5 is computed by md5.h; SHA-1 and SHA-256 by OpenSSL; CRC-32 and CRC-32C by ISA-L; CRC-64/NVME
 * by crc.h. A struct digests has one owner at a time. */
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
    unsigned char bytes[DIGEST_MAX]; /* a CRC is big-endian, as S3 sends it */
    size_t len;
};

struct digests;

/* Makes a set of digests. `wanted` has a bit 1 << DIGEST_* for each kind to compute. With 0 nothing
 * is computed. */
struct digests *digests_new(unsigned wanted);
void digests_update(struct digests *d, struct str bytes);
/* Ends the digest of one kind, which must have been wanted, and stores its value in *out. Call it
 * once for each kind, at the end. */
void digests_final(struct digests *d, enum digest_kind kind, struct digest_value *out);
void digests_free(struct digests *d); /* `d` may be NULL */

/* Computes the digest of bytes in memory. */
void digest_of(enum digest_kind kind, struct str bytes, struct digest_value *out);
size_t digest_size(enum digest_kind kind);
bool digest_is(const struct digest_value *a, const struct digest_value *b);

/* Returns the value in base64, as S3 writes checksums; empty when the arena is full. */
struct str digest_text(struct arena *a, const struct digest_value *value);

/* Joins the CRCs of two parts without their bytes, for the full-object checksum of an upload.
 * `left` becomes the CRC of left followed by right; `right_len` is the length of right in bytes. */
void digest_combine(enum digest_kind kind, struct digest_value *left,
                    const struct digest_value *right, uint64_t right_len);

#endif
