/* Finds out who sent a request by checking its signature, in the header or in the query, version 4
 * or 2.
 *
 * A request without a signature is anonymous. That is a result and not an error: ACLs and policies
 * say what anonymous requests may do. POST forms carry their signature in the body; form.h checks
 * it.
 *
 * Errors are those of S3 (codes of meta/error.h, with the text in struct err):
 *   InvalidArgument                    two signatures; an unknown kind of Authorization; a payload
 *                                      hash that is malformed
 *   AuthorizationHeaderMalformed       the header is malformed; the date, service or last part of
 *                                      the scope is wrong
 *   AuthorizationQueryParametersError  a presigned query is malformed; the date, service or last
 *                                      part of its scope is wrong
 *   InvalidRequest                     x-amz-content-sha256 missing; version 2 where not allowed
 *   AccessDenied                       no date; signed chunks without a signature of version 4; a
 *                                      presigned query before or after its time, or with a lifetime
 *                                      below zero or over a week; host or an x-amz-* header is sent
 *                                      but not signed
 *   RequestTimeTooSkewed               the date is more than 15 minutes from weir's clock
 *   InvalidAccessKeyId, SignatureDoesNotMatch, InvalidURI (malformed escapes)
 *
 * Any region is accepted, because clients are configured with many. The service must be s3.
 * Signatures are compared in constant time. Any thread may call these functions. */
#ifndef S3_ACCESS_AUTH_H
#define S3_ACCESS_AUTH_H

#include "base/clock.h"
#include "sign/sign.h"

enum { AUTH_SKEW_MS = 15 * MS_PER_MINUTE, AUTH_SECRET_MAX = 128, AUTH_ACCESS_KEY_MAX = 128 };

enum auth_kind { AUTH_ANONYMOUS, AUTH_V4_HEADER, AUTH_V4_QUERY, AUTH_V2_HEADER, AUTH_V2_QUERY };

/* What the header x-amz-content-sha256 says about the body. The header applies even when no
 * signature covers it: it still says how the body is framed, and a hash in it must still be
 * right. */
enum auth_payload {
    AUTH_PAYLOAD_UNSIGNED,        /* no hash: the body is not signed */
    AUTH_PAYLOAD_HASH,            /* the body's SHA-256 */
    AUTH_PAYLOAD_CHUNKS,          /* STREAMING-AWS4-HMAC-SHA256-PAYLOAD */
    AUTH_PAYLOAD_CHUNKS_TRAILER,  /* STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER */
    AUTH_PAYLOAD_UNSIGNED_TRAILER /* STREAMING-UNSIGNED-PAYLOAD-TRAILER */
};

struct auth_request {
    struct str method; /* as sent */
    struct str path;   /* the part before '?', as sent */
    struct str query;  /* the part behind '?', as sent */
    const struct http_header *headers;
    size_t header_count;
    struct str bucket; /* the bucket that the host names; empty in path style. Signatures of version
                          2 cover it */
    int64_t now_ms;    /* the present time, from clock_wall_ms() */
};

/* What find_key() knows about an access key. */
struct auth_key {
    char secret[AUTH_SECRET_MAX];
    size_t secret_len;
    void *user; /* the caller's own user; find_key() sets it, auth_verify() copies it to
                   identity.user */
};

struct auth_options {
    /* Looks up an access key. ERR_NOT_FOUND: there is no such key, or it may not be used.
     * auth_verify() returns other errors as they are. The secret is overwritten after use. */
    int (*find_key)(void *ctx, struct str access_key, struct auth_key *out, struct err *err);
    void *ctx;
    struct sign_keys *keys; /* cache of derived signing keys; may be NULL */
    bool allow_v2;
};

/* Who sent a request, and how it was signed. Strings are borrowed from the request or live in the
 * arena. auth_release() wipes the secrets. */
struct identity {
    enum auth_kind kind;
    struct str access_key; /* empty: anonymous */
    void *user;            /* as find_key() set it; NULL: anonymous */
    enum auth_payload payload;
    unsigned char payload_sha256[SIGN_HASH_LEN]; /* set for AUTH_PAYLOAD_HASH */
    struct str signed_headers;                   /* version 4: as in "host;x-amz-date" */
    struct str payload_hash; /* version 4: the payload hash that was signed, or UNSIGNED-PAYLOAD */
    int64_t signed_ms;       /* time of the signature; 0: unknown */
    /* The members below are set for version 4. The signatures of the body's chunks are checked with
     * them. */
    struct sign_scope scope;
    struct sign_key key;
    char timestamp[SIGN_TIME_LEN];
    char signature[SIGN_HEX_LEN]; /* the request's own signature; the first chunk's signature builds
                                     on it */
};

/* Checks the request's signature. Returns 0, an S3 code, or the error of find_key(). *out is filled
 * on success only. */
int auth_verify(struct identity *out, struct arena *a, const struct auth_request *r,
                const struct auth_options *o, struct err *err) MUST_CHECK;
static inline void auth_release(struct identity *auth)
{
    secure_zero(&auth->key, sizeof(auth->key));
}
/* Whether a signature of version 4 covers the header. */
bool auth_signs(const struct identity *auth, struct str header);

/* --- parts that form.h and the fuzz targets use --- */

/* The parts of a credential such as "AKID/20130524/us-east-1/s3/aws4_request". An access key may
 * have '/' in it. Parsing does not check the parts; ERR_PARSE: there are too few parts. */
struct auth_credential {
    struct str access_key;
    struct sign_scope scope;
    struct str end;
};
int auth_parse_credential(struct auth_credential *out, struct str text) MUST_CHECK;

/* The fields that follow "AWS4-HMAC-SHA256" in an Authorization header. */
struct auth_header {
    struct str credential, signed_headers, signature;
};
int auth_parse_header(struct auth_header *out, struct str text, struct err *err) MUST_CHECK;

/* Calls find_key() and translates its errors into those of S3. */
int auth_find(struct auth_key *out, const struct auth_options *o, struct str access_key,
              struct err *err) MUST_CHECK;

#endif
