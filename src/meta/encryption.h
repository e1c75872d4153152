/* What a request, or a bucket's default, asks to be encrypted with: headers and the document of
 * PutBucketEncryption. Words of errors are AWS's. Any thread, no state. */
#ifndef META_ENCRYPTION_H
#define META_ENCRYPTION_H

#include "http/wire.h"
#include "meta/document.h"
#include "meta/envelope.h"

struct sse_customer {
    bool given;
    struct sealed_key key; /* wipe it after use */
    struct str md5;        /* of the key, base64; for the answer */
};

struct sse_asked {
    enum sse_kind kind;
    struct str key_id;  /* SSE_KMS; empty: the default key */
    struct str context; /* SSE_KMS; base64 */
    bool bucket_key;
    struct sse_customer customer; /* SSE_C */
};

/* x-amz-server-side-encryption-customer-*, or with `source` those of a copy's source.
 * InvalidArgument when they are incomplete or do not fit together, InvalidEncryptionAlgorithmError.
 */
int sse_customer_read(struct sse_customer *out, const struct http_head *head, bool source,
                      struct err *err) MUST_CHECK;

/* All of x-amz-server-side-encryption*, for a new object. */
int sse_read(struct sse_asked *out, const struct http_head *head, struct err *err) MUST_CHECK;

/* Any of them is there, those of a copy's source apart. Cheap. */
bool sse_given(const struct http_head *head);
/* x-amz-server-side-encryption and what belongs to it is there, which reading refuses. */
bool sse_managed_given(const struct http_head *head);

/* "AES256", "aws:kms" */
const char *sse_algorithm(enum sse_kind kind);

/* The document: kind, key_id and bucket_key of `out` alone. MalformedXML; InvalidArgument. */
int sse_default_read(struct sse_asked *out, struct arena *a, struct str xml,
                     struct err *err) MUST_CHECK;
void sse_default_write(struct buf *out, const struct sse_asked *rule);

#endif
