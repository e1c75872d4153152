/* Finds out which kind of signature a request has. Also has the functions that all kinds share. */
#include "s3/access/auth.h"
#include "s3/access/auth_int.h"

bool auth_parameter(const struct auth_request *r, const char *name, struct str *value)
{
    struct str rest = r->query, found;

    while (url_query_next(&rest, &found, value))
        if (str_eq(found, str_z(name)))
            return true;
    *value = STR_EMPTY;
    return false;
}

int auth_decode(struct str *out, struct arena *a, struct str value, struct err *err)
{
    struct buf b = BUF_INIT(HTTP_MAX_HEAD);
    int code = url_decode(&b, value, true);

    if (code == 0)
        *out = arena_str(a, buf_str(&b));
    buf_release(&b);
    if (code == 0 && arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    return code < 0 ? s3_fail(err, S3_INVALID_URI) : 0;
}

int auth_find(struct auth_key *out, const struct auth_options *o, struct str access_key,
              struct err *err)
{
    int code = ERR_NOT_FOUND;

    memset(out, 0, sizeof(*out));
    if (access_key.len && access_key.len <= AUTH_ACCESS_KEY_MAX)
        code = o->find_key(o->ctx, access_key, out, err);
    BUG_ON(out->secret_len > sizeof(out->secret));
    return code == ERR_NOT_FOUND ? s3_fail(err, S3_INVALID_ACCESS_KEY_ID) : code;
}

static int by_header(struct identity *out, const struct auth_request *r,
                     const struct auth_options *o, struct str header, struct err *err)
{
    struct str scheme, rest;

    str_cut(header, ' ', &scheme, &rest);
    if (str_eq(scheme, STR(SIGN_ALGORITHM)))
        return auth_v4_header(out, r, o, rest, err);
    if (str_eq(scheme, STR("AWS")))
        return auth_v2_header(out, r, o, rest, err);
    return err_set(err, S3_INVALID_ARGUMENT, "Unsupported Authorization Type");
}

static int verify(struct identity *out, struct arena *a, const struct auth_request *r,
                  const struct auth_options *o, struct err *err)
{
    struct str header = auth_header_of(r, "authorization"), ignored;
    bool v4 = auth_parameter(r, "X-Amz-Algorithm", &ignored) ||
              auth_parameter(r, "X-Amz-Credential", &ignored) ||
              auth_parameter(r, "X-Amz-Signature", &ignored);
    bool v2 = !v4 && (auth_parameter(r, "AWSAccessKeyId", &ignored) ||
                      auth_parameter(r, "Signature", &ignored));

    if (header.len && (v4 || v2))
        return err_set(err, S3_INVALID_ARGUMENT,
                       "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, "
                       "Signature query string parameter or the Authorization header should be "
                       "specified");
    if (header.len)
        return by_header(out, r, o, header, err);
    if (v4)
        return auth_v4_query(out, a, r, o, err);
    if (v2)
        return auth_v2_query(out, a, r, o, err);
    return 0;
}

int auth_verify(struct identity *out, struct arena *a, const struct auth_request *r,
                const struct auth_options *o, struct err *err)
{
    struct identity auth = {0};
    int code = verify(&auth, a, r, o, err);

    bool v4 = auth.kind == AUTH_V4_HEADER || auth.kind == AUTH_V4_QUERY;

    if (code == 0 && !v4)
        code = auth_unsigned_payload(&auth, r, err);
    if (code == 0)
        *out = auth;
    secure_zero(&auth.key, sizeof(auth.key));
    return code;
}
