/* The arithmetic of AWS signatures, version 4 and 2. It is used to verify clients
 * (s3/access/auth.h, s3/gateway/framing.h, s3/gateway/form.h) and to sign requests to remote
 * storages (object/remote/remote.h). It does no I/O and does not decide whether a request is
 * allowed. Any thread may call these functions.
 *
 * Version 4 signs the SHA-256 of a canonical form of the request. The key is derived from the
 * secret, the day, the region and the service. An example of a canonical form:
 *
 *     GET                                        method
 *     /photos/a%20b                              path, decoded and encoded again, not normalised
 *     prefix=x&versions=                         query, decoded, encoded, sorted
 *     host:s3.example.com                        signed headers: lower case, trimmed, inner blanks
 *     x-amz-date:20130524T000000Z                as one, repeated ones joined by ','
 *                                                (empty line)
 *     host;x-amz-date                            their names
 *     UNSIGNED-PAYLOAD                           hash of the body, or a word in its place
 *
 * Path and query are decoded first because clients differ in which characters they leave unescaped
 * in the request; they all sign the fully escaped form. '+' in a query is a blank, as everywhere in
 * s3/. */
#ifndef SIGN_SIGN_H
#define SIGN_SIGN_H

#include "base/arena.h"
#include "http/wire.h"
#include "sign/hmac.h"

enum { SIGN_HASH_LEN = 32, SIGN_HEX_LEN = 64, SIGN_DATE_LEN = 8, SIGN_TIME_LEN = 16 };

#define SIGN_ALGORITHM     "AWS4-HMAC-SHA256"
#define SIGN_UNSIGNED      "UNSIGNED-PAYLOAD"
#define SIGN_EMPTY_SHA256  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SIGN_EXPIRES_MAX_S UINT64_C(604800)

/* The parts of a request that are signed; all borrowed. */
struct sign_request {
    struct str method;
    struct str path;  /* as in the request, percent-encoded */
    struct str query; /* as in the request, without '?' */
    const struct http_header *headers;
    size_t header_count;
    struct str payload_hash; /* the value of the header x-amz-content-sha256 */
};

struct sign_scope {
    struct str date; /* such as "20130524" */
    struct str region, service;
};

struct sign_key { /* a derived key; it is secret, so secure_zero() it after use */
    struct hmac_key hmac;
};

/* Appends the canonical request. `signed_headers` ("host;x-amz-date") names the headers in the
 * order in which they were signed; a header that is missing counts as empty. The query parameter
 * X-Amz-Signature is left out. ERR_PARSE: path or query has a malformed escape. ERR_TOO_LARGE: the
 * text is past the buf's limit. */
int sign_canonical(struct buf *out, const struct sign_request *r,
                   struct str signed_headers) MUST_CHECK;
/* Takes the next name off a list such as "host;x-amz-date". Returns false at the end. */
bool sign_next_name(struct str *rest, struct str *name);
/* Appends the scope, such as "20130524/us-east-1/s3/aws4_request". */
void sign_append_scope(struct buf *out, const struct sign_scope *scope);
/* Appends the string to sign: the text from which sign_hex() computes the signature. */
void sign_string(struct buf *out, struct str timestamp, const struct sign_scope *scope,
                 struct str canonical);
/* Writes the HMAC of `bytes` as hex in lower case, without a NUL. */
void sign_hex(char out[SIGN_HEX_LEN], const struct sign_key *key, struct str bytes);

/* Derives the signing key from the secret and the scope. This costs four HMACs. */
void sign_derive(struct sign_key *out, struct str secret, const struct sign_scope *scope);

/* A bounded cache of derived keys, shared by threads. An entry is found by a keyed hash of secret
 * and scope; the secret itself is not stored. Call sign_keys_keep() only after a signature made
 * with the key was right. Otherwise anybody could send requests that push out keys in use. */
struct sign_keys;
struct sign_keys *sign_keys_new(void);
void sign_keys_free(struct sign_keys *keys); /* overwrites the keys; NULL is allowed */
/* Copies the key from the cache to `out`, or derives it. Returns whether the key was in the cache.
 * With `keys` NULL there is no cache. */
bool sign_keys_get(struct sign_keys *keys, struct sign_key *out, struct str secret,
                   const struct sign_scope *scope);
void sign_keys_keep(struct sign_keys *keys, const struct sign_key *key, struct str secret,
                    const struct sign_scope *scope);

/* --- signing the requests that weir sends --- */

struct sign_credentials {
    struct str access_key, secret;
    struct str region, service;
    struct sign_keys *keys; /* cache of derived keys; NULL: none */
};

/* The headers that signing adds to a request; their text is in the arena. */
struct signed_headers {
    struct str authorization, date,
        content_sha256; /* Authorization, x-amz-date, x-amz-content-sha256 */
};

/* Signs a request by making headers for it. Host, Content-MD5, Content-Type and x-amz-* are signed.
 * `r->headers` must have Host, and must not have x-amz-date and x-amz-content-sha256 yet.
 * ERR_PARSE: path or query has a malformed escape. ERR_NO_MEMORY: the arena failed. */
int sign_headers(struct signed_headers *out, struct arena *a, const struct sign_request *r,
                 const struct sign_credentials *c, int64_t now_ms) MUST_CHECK;

/* Appends the query of a presigned request: the query of `r`, then the parameters of the signature.
 * All headers of `r` are signed. Host must be among them, and the request must be sent with the
 * same values. `r->payload_hash` is usually UNSIGNED-PAYLOAD. ERR_PARSE: path or query has a
 * malformed escape. ERR_RANGE: expires_s is more than a week. */
int sign_query(struct buf *out, const struct sign_request *r, const struct sign_credentials *c,
               int64_t now_ms, uint64_t expires_s) MUST_CHECK;

/* --- version 2 --- */

/* Appends the string to sign of version 2. `date` is the value of the header Date (empty when there
 * is x-amz-date), or of the query parameter Expires. `bucket` is the bucket that the host names; it
 * is empty when the path names the bucket. ERR_PARSE: the query has a malformed escape. */
int sign_v2_string(struct buf *out, const struct sign_request *r, struct str date,
                   struct str bucket) MUST_CHECK;
/* Whether a signature of version 2 covers the query parameter of this name. The name is still
 * encoded. */
bool sign_v2_covers(struct str parameter);
/* Appends the HMAC-SHA1 of `bytes`, in base64. */
void sign_v2(struct buf *out, struct str secret, struct str bytes);

#endif
