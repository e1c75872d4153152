/* The encryption that a request, or a bucket's default, asks for: the headers of a request, and the
 * document of PutBucketEncryption. Messages of errors are AWS's. There is no state, and any thread
 * may call. */
#ifndef META_ENCRYPTION_H
#define META_ENCRYPTION_H

#include "http/wire.h"
#include "meta/document.h"
#include "meta/envelope.h"
#include "object/digest.h"

struct sse_customer {
    bool given;
    struct sealed_key key; /* overwrite it after use */
    struct str md5;        /* MD5 of the key, base64, which the answer repeats */
};

struct sse_asked {
    enum sse_kind kind;
    struct str key_id;  /* for SSE_KMS: name of the key; empty: the default key */
    struct str context; /* for SSE_KMS: the encryption context in base64 */
    bool bucket_key;
    struct sse_customer customer; /* for SSE_C */
};

/* Reads the headers x-amz-server-side-encryption-customer-*; with `source`, the headers for the
 * source of a copy. InvalidArgument: the headers are incomplete or do not fit together.
 * InvalidEncryptionAlgorithmError: the algorithm is not AES256. */
int sse_customer_read(struct sse_customer *out, const struct http_head *head, bool source,
                      struct err *err) MUST_CHECK;

/* Reads all headers x-amz-server-side-encryption* of a request that makes an object. */
int sse_read(struct sse_asked *out, const struct http_head *head, struct err *err) MUST_CHECK;

/* Whether the request has any header that sse_read() reads. Headers for a copy's source do not
 * count. The call is cheap. */
bool sse_given(const struct http_head *head);
/* Whether the request has an encryption header other than the customer's. Requests that read an
 * object refuse such headers. */
bool sse_managed_given(const struct http_head *head);

/* Returns S3's name of the algorithm: "AES256", "aws:kms". */
const char *sse_algorithm(enum sse_kind kind);
/* Returns the kind of checksum to make for a new object with this encryption whose client claims
 * none; DIGEST_MD5: none is made. An object that hides its MD5 must not show another fingerprint of
 * its plain bytes, unless the client asked for it. */
enum digest_kind sse_checksum(enum sse_kind kind);

/* Read and write the document of a bucket's default encryption. Only the members kind, key_id and
 * bucket_key of the struct are used. MalformedXML, InvalidArgument: the document is not valid. */
int sse_default_read(struct sse_asked *out, struct arena *a, struct str xml,
                     struct err *err) MUST_CHECK;
void sse_default_write(struct buf *out, const struct sse_asked *rule);

#endif
