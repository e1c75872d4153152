/* What is kept beside a sealed object: how it was encrypted, and its data key, wrapped
 * (docs/encryption.md has the bytes). Any thread, no state. */
#ifndef META_ENVELOPE_H
#define META_ENVELOPE_H

#include "object/sealed.h"

enum { ENVELOPE_CONTEXT_MAX = 2048, ENVELOPE_MAX = 4096 };

enum sse_kind { SSE_NONE, SSE_C, SSE_S3, SSE_KMS };

struct envelope {
    enum sse_kind kind;
    bool bucket_key;     /* told to clients, means nothing here */
    struct str name, id; /* of the key that wraps; empty for SSE_C */
    struct str context;  /* as the client gave it, base64 */
    /* Of one that was read: */
    const unsigned char *salt, *wrapped;
    struct str head; /* all that is before the salt */
};

/* What the wrapped key is bound to. */
struct envelope_place {
    struct str bucket, key;
};

/* Appends; `with` is the master key, the KMS key or the customer's. */
void envelope_seal(struct buf *out, const struct envelope *e, const struct envelope_place *at,
                   const struct sealed_key *with, const struct sealed_key *data);

/* Strict; what is read points into the bytes. ERR_CORRUPT. */
int envelope_read(struct envelope *out, struct str bytes, struct err *err) MUST_CHECK;

/* ERR_DENIED: wrapped with another key, or for another place. */
int envelope_open(const struct envelope *e, const struct envelope_place *at,
                  const struct sealed_key *with, struct sealed_key *data) MUST_CHECK;

#endif
