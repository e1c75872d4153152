/* The envelope of a sealed object: how the object was encrypted, and its data key, wrapped with
 * another key. The envelope is kept in the object's meta (docs/encryption.md has the format). There
 * is no state, and any thread may call. */
#ifndef META_ENVELOPE_H
#define META_ENVELOPE_H

#include "object/sealed.h"

enum { ENVELOPE_CONTEXT_MAX = 2048, ENVELOPE_MAX = 4096 };

enum sse_kind { SSE_NONE, SSE_C, SSE_S3, SSE_KMS };

struct envelope {
    enum sse_kind kind;
    bool bucket_key;     /* shown to clients; it has no effect here */
    struct str name, id; /* the key that wraps the data key; empty for SSE_C */
    struct str context;  /* encryption context of the client, base64 */
    /* The next three members are set by envelope_read(). */
    const unsigned char *salt, *wrapped;
    struct str head; /* all bytes before the salt */
};

/* The object that the wrapped key is bound to. */
struct envelope_place {
    struct str bucket, key;
};

/* Appends the envelope of the data key `data` to `out`. `with` is the key that wraps it: the master
 * key, the KMS key or the customer's key. */
void envelope_seal(struct buf *out, const struct envelope *e, const struct envelope_place *at,
                   const struct sealed_key *with, const struct sealed_key *data);

/* Parses an envelope strictly; *out points into `bytes`. ERR_CORRUPT: `bytes` is not an
 * envelope. */
int envelope_read(struct envelope *out, struct str bytes, struct err *err) MUST_CHECK;

/* Opens the data key into *data. ERR_DENIED: the data key was wrapped with another key, or for
 * another place. */
int envelope_open(const struct envelope *e, const struct envelope_place *at,
                  const struct sealed_key *with, struct sealed_key *data) MUST_CHECK;

#endif
