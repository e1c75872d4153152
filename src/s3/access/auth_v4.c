/* Checks signatures of version 4, in the header and in the query. */
#include "base/clock.h"
#include "base/hex.h"
#include "s3/access/auth_int.h"

#include <stdlib.h>

/* Sizes of buffers, in bytes. MAX_TEXT is the largest canonical request. USUAL_TEXT and
 * USUAL_STRING are initial sizes; longer texts make the buffers grow. */
enum { MAX_TEXT = 4 * HTTP_MAX_HEAD, USUAL_TEXT = 1000, USUAL_STRING = 200 };

#define CREDENTIAL_FORM "\"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\""

/* The values of x-amz-content-sha256 that are not a hash. */
static const struct {
    struct str text;
    enum auth_payload payload;
} payloads[] = {
    {STR(SIGN_UNSIGNED), AUTH_PAYLOAD_UNSIGNED},
    {STR("STREAMING-UNSIGNED-PAYLOAD-TRAILER"), AUTH_PAYLOAD_UNSIGNED_TRAILER},
    {STR("STREAMING-AWS4-HMAC-SHA256-PAYLOAD"), AUTH_PAYLOAD_CHUNKS},
    {STR("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"), AUTH_PAYLOAD_CHUNKS_TRAILER},
};

/* The signature and the values sent with it, from the header or from the query. */
struct claim {
    struct auth_credential credential;
    struct str signed_headers, signature, timestamp, payload_hash;
    int64_t time_ms; /* the time that `timestamp` says */
};

static int parse_payload(struct identity *out, struct str text, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(payloads); i++) {
        if (!str_eq(text, payloads[i].text))
            continue;
        out->payload = payloads[i].payload;
        return 0;
    }
    out->payload = AUTH_PAYLOAD_HASH;
    if (hex_parse_any_case(text, out->payload_sha256, SIGN_HASH_LEN))
        return 0;
    return err_set(err, S3_INVALID_ARGUMENT,
                   "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, "
                   "STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, "
                   "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or a valid sha256 value.");
}

/* Cuts the text at slashes from the right, because only the access key, which comes first, may have
 * further slashes in it. */
int auth_parse_credential(struct auth_credential *out, struct str text)
{
    struct str *const parts[] = {&out->end, &out->scope.service, &out->scope.region,
                                 &out->scope.date};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        size_t at = text.len;
        while (at && text.p[at - 1] != '/')
            at--;
        if (at == 0)
            return ERR_PARSE;
        *parts[i] = str_skip(text, at);
        text = str_head(text, at - 1);
    }
    out->access_key = text;
    return text.len ? 0 : ERR_PARSE;
}

int auth_parse_header(struct auth_header *out, struct str text, struct err *err)
{
    static const struct str names[] = {STR("Credential"), STR("SignedHeaders"), STR("Signature")};
    struct str *const values[] = {&out->credential, &out->signed_headers, &out->signature};
    struct str part, name, value;

    *out = (struct auth_header){0};
    while (text.len) {
        size_t i = 0;
        str_cut(text, ',', &part, &text);
        str_cut(str_trim(part), '=', &name, &value);
        while (i < ARRAY_SIZE(names) && !str_eq(name, names[i]))
            i++;
        if (i == ARRAY_SIZE(names) || values[i]->len)
            return err_set(err, S3_AUTHORIZATION_HEADER_MALFORMED,
                           "The authorization header is malformed; the header is not a list of "
                           "Credential, SignedHeaders and Signature.");
        *values[i] = value;
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (!values[i]->len)
            return err_set(err, S3_AUTHORIZATION_HEADER_MALFORMED,
                           "The authorization header is malformed; missing %s.", names[i].p);
    return 0;
}

/* Whether a list such as "host;x-amz-date" has the name. `wanted` is the name of a header: it has
 * no ';' and is not empty. */
static bool has_name(struct str names, struct str wanted)
{
    while (names.len >= wanted.len) {
        bool ends = names.len == wanted.len || names.p[wanted.len] == ';';
        ptrdiff_t next = str_chr(names, ';');
        if (ends && str_ieq(str_head(names, wanted.len), wanted))
            return true;
        if (next < 0)
            return false;
        names = str_skip(names, (size_t)next + 1);
    }
    return false;
}

bool auth_signs(const struct identity *auth, struct str header)
{
    return header.len && has_name(auth->signed_headers, header);
}

/* Checks that host and all x-amz-* headers are signed. In a presigned request x-amz-content-sha256
 * may be unsigned, because it only adds a check of the body. */
static int check_signed_headers(const struct auth_request *r, struct str names, bool presigned,
                                struct err *err)
{
    bool ok = has_name(names, STR("host"));

    for (size_t i = 0; ok && i < r->header_count; i++) {
        struct str name = r->headers[i].name;
        if (str_ieq(str_head(name, 6), STR("x-amz-")) &&
            !(presigned && str_ieq(name, STR("x-amz-content-sha256"))))
            ok = has_name(names, name);
    }
    if (!ok)
        return err_set(err, S3_ACCESS_DENIED,
                       "There were headers present in the request which were not signed");
    return 0;
}

static int v4_match(struct identity *out, const struct auth_request *r,
                    const struct auth_options *o, const struct claim *c, struct str secret,
                    struct err *err)
{
    struct sign_request request = {r->method,  r->path,         r->query,
                                   r->headers, r->header_count, c->payload_hash};
    struct buf canonical = BUF_INIT(MAX_TEXT), text = BUF_INIT(0);

    buf_reserve(&canonical, USUAL_TEXT);
    buf_reserve(&text, USUAL_STRING);
    int code = sign_canonical(&canonical, &request, c->signed_headers);

    if (code < 0) {
        code = code == ERR_PARSE ? s3_fail(err, S3_INVALID_URI) : err_code(err, code);
        goto out;
    }
    sign_string(&text, c->timestamp, &c->credential.scope, buf_str(&canonical));
    bool kept = sign_keys_get(o->keys, &out->key, secret, &c->credential.scope);
    sign_hex(out->signature, &out->key, buf_str(&text));
    if (!str_eq_secret(str_n(out->signature, SIGN_HEX_LEN), c->signature))
        code = s3_fail(err, S3_SIGNATURE_DOES_NOT_MATCH);
    else if (o->keys && !kept)
        sign_keys_keep(o->keys, &out->key, secret, &c->credential.scope);
out:
    buf_release(&canonical);
    buf_release(&text);
    return code;
}

static int v4_check(struct identity *out, const struct auth_request *r,
                    const struct auth_options *o, const struct claim *c, struct err *err)
{
    struct auth_key key;
    int code = auth_find(&key, o, c->credential.access_key, err);

    if (code == 0)
        code = v4_match(out, r, o, c, str_n(key.secret, key.secret_len), err);
    secure_zero(key.secret, sizeof(key.secret));
    if (code < 0)
        return code;
    out->access_key = c->credential.access_key;
    out->user = key.user;
    out->scope = c->credential.scope;
    out->signed_headers = c->signed_headers;
    out->payload_hash = c->payload_hash;
    out->signed_ms = c->time_ms;
    memcpy(out->timestamp, c->timestamp.p, SIGN_TIME_LEN);
    return 0;
}

static int check_scope(enum s3_code code, const char *what, const struct auth_credential *c,
                       struct str timestamp, struct err *err)
{
    if (!str_eq(c->scope.date, str_head(timestamp, SIGN_DATE_LEN)))
        return err_set(err, code,
                       "%s; Invalid credential date \"" STR_FMT
                       "\". This date is not the same as X-Amz-Date: \"" STR_FMT "\".",
                       what, STR_ARG(str_head(c->scope.date, 64)),
                       STR_ARG(str_head(timestamp, SIGN_DATE_LEN)));
    if (!str_eq(c->scope.service, STR("s3")))
        return err_set(err, code,
                       "%s; incorrect service \"" STR_FMT "\". This endpoint belongs to \"s3\".",
                       what, STR_ARG(str_head(c->scope.service, 64)));
    if (!str_eq(c->end, STR("aws4_request")))
        return err_set(err, code,
                       "%s; incorrect terminal \"" STR_FMT
                       "\". This endpoint uses \"aws4_request\".",
                       what, STR_ARG(str_head(c->end, 64)));
    return 0;
}

/* Reads the time of the request from x-amz-date, or else from Date; also writes it as a timestamp
 * to `text`. */
static int header_time(const struct auth_request *r, char text[CLOCK_BASIC_LEN + 1], int64_t *out,
                       struct err *err)
{
    struct str date = auth_header_of(r, "x-amz-date");
    int64_t time;

    if (!date.len)
        date = auth_header_of(r, "date");
    bool basic = date.len == CLOCK_BASIC_LEN && clock_parse_basic(date, &time) == 0;
    if (!basic && clock_parse_http(date, &time) < 0)
        return err_set(err, S3_ACCESS_DENIED,
                       "AWS authentication requires a valid Date or x-amz-date header");
    if (llabs(time - r->now_ms) > AUTH_SKEW_MS)
        return s3_fail(err, S3_REQUEST_TIME_TOO_SKEWED);
    if (basic)
        memcpy(text, date.p, CLOCK_BASIC_LEN);
    else
        clock_basic(time, text);
    *out = time;
    return 0;
}

int auth_v4_header(struct identity *out, const struct auth_request *r, const struct auth_options *o,
                   struct str rest, struct err *err)
{
    static const char malformed[] = "The authorization header is malformed";
    char time[CLOCK_BASIC_LEN + 1];
    struct auth_header header;
    struct claim c = {.timestamp = str_n(time, CLOCK_BASIC_LEN)};
    int code = auth_parse_header(&header, rest, err);

    if (code < 0)
        return code;
    c.signed_headers = header.signed_headers;
    c.signature = header.signature;
    c.payload_hash = auth_header_of(r, "x-amz-content-sha256");
    if (auth_parse_credential(&c.credential, header.credential) < 0)
        return err_set(err, S3_AUTHORIZATION_HEADER_MALFORMED,
                       "%s; the Credential is mal-formed; expecting " CREDENTIAL_FORM ".",
                       malformed);
    if (!c.payload_hash.len)
        return err_set(err, S3_INVALID_REQUEST,
                       "Missing required header for this request: x-amz-content-sha256");
    if ((code = header_time(r, time, &c.time_ms, err)) < 0 ||
        (code = check_scope(S3_AUTHORIZATION_HEADER_MALFORMED, malformed, &c.credential,
                            c.timestamp, err)) < 0 ||
        (code = parse_payload(out, c.payload_hash, err)) < 0 ||
        (code = check_signed_headers(r, c.signed_headers, false, err)) < 0)
        return code;
    out->kind = AUTH_V4_HEADER;
    return v4_check(out, r, o, &c, err);
}

static int check_lifetime(const struct auth_request *r, struct str timestamp, struct str expires,
                          int64_t *out, struct err *err)
{
    int64_t time, lifetime;

    if (timestamp.len != CLOCK_BASIC_LEN || clock_parse_basic(timestamp, &time) < 0)
        return err_set(err, S3_AUTHORIZATION_QUERY_PARAMETERS_ERROR,
                       "X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"");
    if (str_i64(expires, &lifetime) < 0)
        return err_set(err, S3_AUTHORIZATION_QUERY_PARAMETERS_ERROR,
                       "X-Amz-Expires should be a number");
    /* AWS answers 400 to a lifetime that is not allowed. Ceph and the public test suite expect 403,
     * as for a presigned query that has expired. */
    if (lifetime < 0)
        return err_set(err, S3_ACCESS_DENIED, "X-Amz-Expires must be non-negative");
    if (lifetime > (int64_t)SIGN_EXPIRES_MAX_S)
        return err_set(err, S3_ACCESS_DENIED,
                       "X-Amz-Expires must be less than a week (in seconds); that is, the given "
                       "X-Amz-Expires must be less than 604800 seconds");
    if (time > r->now_ms + AUTH_SKEW_MS)
        return err_set(err, S3_ACCESS_DENIED, "Request is not yet valid");
    if (r->now_ms > time + lifetime * MS_PER_S)
        return err_set(err, S3_ACCESS_DENIED, "Request has expired");
    *out = time;
    return 0;
}

enum {
    ALGORITHM,
    CREDENTIAL,
    DATE,
    EXPIRES,
    SIGNED_HEADERS,
    SIGNATURE,
    CONTENT_SHA256,
    PARAMETERS
};

/* Decodes the signature's query parameters into the arena. */
static int query_parameters(struct str out[PARAMETERS], struct arena *a,
                            const struct auth_request *r, struct err *err)
{
    static const char *const names[PARAMETERS] = {
        "X-Amz-Algorithm",     "X-Amz-Credential", "X-Amz-Date",          "X-Amz-Expires",
        "X-Amz-SignedHeaders", "X-Amz-Signature",  "X-Amz-Content-Sha256"};

    for (int i = 0; i < PARAMETERS; i++) {
        struct str value;
        bool found = auth_parameter(r, names[i], &value);
        if (!found && i != CONTENT_SHA256)
            return err_set(err, S3_AUTHORIZATION_QUERY_PARAMETERS_ERROR,
                           "Query-string authentication version 4 requires the X-Amz-Algorithm, "
                           "X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, "
                           "and X-Amz-Expires parameters.");
        int code = auth_decode(&out[i], a, value, err);
        if (code < 0)
            return code;
    }
    return 0;
}

int auth_unsigned_payload(struct identity *out, const struct auth_request *r, struct err *err)
{
    struct str header = auth_header_of(r, "x-amz-content-sha256");
    int code = header.len ? parse_payload(out, header, err) : 0;

    if (code == 0 && out->kind != AUTH_V4_QUERY &&
        (out->payload == AUTH_PAYLOAD_CHUNKS || out->payload == AUTH_PAYLOAD_CHUNKS_TRAILER))
        code = err_set(err, S3_ACCESS_DENIED,
                       "A body of signed chunks needs a signature of version 4");
    return code;
}

/* Returns the payload hash that was signed: the hash in the query, else the hash in the header if
 * that header is signed, else UNSIGNED-PAYLOAD. */
static struct str query_payload(const struct auth_request *r, const struct str p[PARAMETERS])
{
    struct str header = auth_header_of(r, "x-amz-content-sha256");

    if (p[CONTENT_SHA256].len)
        return p[CONTENT_SHA256];
    if (header.len && has_name(p[SIGNED_HEADERS], STR("x-amz-content-sha256")))
        return header;
    return STR(SIGN_UNSIGNED);
}

static int verify_query(struct identity *out, const struct auth_request *r,
                        const struct auth_options *o, const struct str p[PARAMETERS],
                        struct err *err)
{
    struct claim c = {.signed_headers = p[SIGNED_HEADERS],
                      .signature = p[SIGNATURE],
                      .timestamp = p[DATE],
                      .payload_hash = query_payload(r, p)};
    int code;

    if (!str_eq(p[ALGORITHM], STR(SIGN_ALGORITHM)))
        return err_set(err, S3_AUTHORIZATION_QUERY_PARAMETERS_ERROR,
                       "X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"");
    if (auth_parse_credential(&c.credential, p[CREDENTIAL]) < 0)
        return err_set(err, S3_AUTHORIZATION_QUERY_PARAMETERS_ERROR,
                       "Error parsing the X-Amz-Credential parameter; the Credential is "
                       "mal-formed; expecting " CREDENTIAL_FORM ".");
    if ((code = check_lifetime(r, p[DATE], p[EXPIRES], &c.time_ms, err)) < 0 ||
        (code = check_scope(S3_AUTHORIZATION_QUERY_PARAMETERS_ERROR,
                            "Error parsing the X-Amz-Credential parameter", &c.credential, p[DATE],
                            err)) < 0 ||
        (code = check_signed_headers(r, p[SIGNED_HEADERS], true, err)) < 0)
        return code;
    out->kind = AUTH_V4_QUERY;
    code = p[CONTENT_SHA256].len ? parse_payload(out, p[CONTENT_SHA256], err)
                                 : auth_unsigned_payload(out, r, err);
    if (code < 0)
        return code;
    return v4_check(out, r, o, &c, err);
}

int auth_v4_query(struct identity *out, struct arena *a, const struct auth_request *r,
                  const struct auth_options *o, struct err *err)
{
    struct str p[PARAMETERS];
    int code = query_parameters(p, a, r, err);

    return code < 0 ? code : verify_query(out, r, o, p, err);
}
