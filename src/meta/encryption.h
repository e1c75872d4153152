/* Which encryption a request, or a bucket's default, asks for: the headers of a request, and the
 * document of PutBucketEncryption. Messages of errors are AWS's. Any thread, no state. */
#ifndef META_ENCRYPTION_H
#define META_ENCRYPTION_H

#include "http/wire.h"
#include "meta/document.h"
#include "meta/envelope.h"

struct sse_customer {
    bool given;
    struct sealed_key key; /* wipe it after use */
    struct str md5;        /* MD5 of the key, base64, which the answer repeats */
};

struct sse_asked {
    enum sse_kind kind;
    struct str key_id;  /* SSE_KMS; empty: the default key */
    struct str context; /* SSE_KMS; base64 */
    bool bucket_key;
    struct sse_customer customer; /* SSE_C */
};

/* Reads the headers x-amz-server-side-encryption-customer-*; with `source` those for the source of
 * a copy. InvalidArgument: they are incomplete or do not fit together.
 * InvalidEncryptionAlgorithmError. */
int sse_customer_read(struct sse_customer *out, const struct http_head *head, bool source,
                      struct err *err) MUST_CHECK;

/* Reads all headers x-amz-server-side-encryption* of a request that makes an object. */
int sse_read(struct sse_asked *out, const struct http_head *head, struct err *err) MUST_CHECK;

/* Whether any of these headers is there, those for a copy's source aside. Cheap. */
bool sse_given(const struct http_head *head);
/* Whether a header other than the customer's is there; requests that read refuse those. */
bool sse_managed_given(const struct http_head *head);

/* "AES256", "aws:kms" */
const char *sse_algorithm(enum sse_kind kind);

/* The document of a bucket's default: kind, key_id and bucket_key of `out`. MalformedXML,
 * InvalidArgument. */
int sse_default_read(struct sse_asked *out, struct arena *a, struct str xml,
                     struct err *err) MUST_CHECK;
void sse_default_write(struct buf *out, const struct sse_asked *rule);

#endif
