/* Checks signatures of version 2, in the header and in the query. */
#include "base/clock.h"
#include "s3/access/auth_int.h"

#include <stdlib.h>

enum { MAX_TEXT = 4 * HTTP_MAX_HEAD };

static int check_allowed(const struct auth_options *o, struct err *err)
{
    return o->allow_v2 ? 0
                       : err_set(err, S3_INVALID_REQUEST,
                                 "The authorization mechanism you have provided is not supported. "
                                 "Please use AWS4-HMAC-SHA256.");
}

static int v2_match(const struct auth_request *r, struct str date, struct str secret,
                    struct str signature, struct err *err)
{
    struct sign_request request = {r->method,  r->path,         r->query,
                                   r->headers, r->header_count, STR_EMPTY};
    struct buf text = BUF_INIT(MAX_TEXT), wanted = BUF_INIT(0);
    int code = sign_v2_string(&text, &request, date, r->bucket);

    if (code < 0) {
        code = code == ERR_PARSE ? s3_fail(err, S3_INVALID_URI) : err_code(err, code);
    } else {
        sign_v2(&wanted, secret, buf_str(&text));
        if (!str_eq_secret(buf_str(&wanted), signature))
            code = s3_fail(err, S3_SIGNATURE_DOES_NOT_MATCH);
    }
    buf_release(&text);
    buf_release(&wanted);
    return code;
}

static int v2_check(struct identity *out, const struct auth_request *r,
                    const struct auth_options *o, struct str date, struct str signature,
                    struct err *err)
{
    struct auth_key key;
    int code = auth_find(&key, o, out->access_key, err);

    if (code == 0)
        code = v2_match(r, date, str_n(key.secret, key.secret_len), signature, err);
    secure_zero(key.secret, sizeof(key.secret));
    out->user = key.user;
    return code;
}

/* Parses a date. HTTP dates end in "GMT", but clients also send the other names that RFC 822 has
 * for that zone, and "UTC" (Go's time.RFC1123, as in rclone). AWS accepts them all. */
static bool v2_parse_date(struct str text, int64_t *time)
{
    static const char *const zones[] = {" +0000", " -0000", " UTC", " UT"};
    char gmt[64];

    if (clock_parse_http(text, time) == 0 || clock_parse_basic(text, time) == 0)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(zones); i++)
        if (str_ends(text, str_z(zones[i])) && text.len < sizeof(gmt) - 1) {
            size_t len = text.len - strlen(zones[i]);
            memcpy(gmt, text.p, len);
            memcpy(gmt + len, " GMT", 4);
            return clock_parse_http(str_n(gmt, len + 4), time) == 0;
        }
    return false;
}

static int check_date(const struct auth_request *r, int64_t *out, struct err *err)
{
    struct str amz = auth_header_of(r, "x-amz-date"), date = auth_header_of(r, "date");

    /* An empty x-amz-date is invalid; Date does not replace it. */
    if (!v2_parse_date(amz.p ? amz : date, out))
        return err_set(err, S3_ACCESS_DENIED,
                       "AWS authentication requires a valid Date or x-amz-date header");
    return llabs(*out - r->now_ms) > AUTH_SKEW_MS ? s3_fail(err, S3_REQUEST_TIME_TOO_SKEWED) : 0;
}

int auth_v2_header(struct identity *out, const struct auth_request *r, const struct auth_options *o,
                   struct str rest, struct err *err)
{
    struct str signature, date = auth_header_of(r, "date");
    int code;

    if (!str_cut(rest, ':', &out->access_key, &signature) || !out->access_key.len)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "AWS authorization header is invalid.  Expected AwsAccessKeyId:signature");
    if ((code = check_allowed(o, err)) < 0 || (code = check_date(r, &out->signed_ms, err)) < 0)
        return code;
    out->kind = AUTH_V2_HEADER;
    if (auth_header_of(r, "x-amz-date").len)
        date = STR_EMPTY;
    return v2_check(out, r, o, date, signature, err);
}

int auth_v2_query(struct identity *out, struct arena *a, const struct auth_request *r,
                  const struct auth_options *o, struct err *err)
{
    struct str key, signature, expires;
    int64_t until;
    int code = check_allowed(o, err);

    if (code < 0)
        return code;
    if (!auth_parameter(r, "AWSAccessKeyId", &key) || !auth_parameter(r, "Expires", &expires) ||
        !auth_parameter(r, "Signature", &signature))
        return err_set(err, S3_ACCESS_DENIED,
                       "Query-string authentication requires the Signature, Expires and "
                       "AWSAccessKeyId parameters");
    if ((code = auth_decode(&out->access_key, a, key, err)) < 0 ||
        (code = auth_decode(&signature, a, signature, err)) < 0)
        return code;
    if (str_i64(expires, &until) < 0)
        return err_set(err, S3_ACCESS_DENIED, "Invalid date (should be seconds since epoch)");
    if (until < r->now_ms / MS_PER_S)
        return err_set(err, S3_ACCESS_DENIED, "Request has expired");
    out->kind = AUTH_V2_QUERY;
    return v2_check(out, r, o, expires, signature, err);
}
