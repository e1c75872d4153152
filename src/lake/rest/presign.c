/* Makes presigned URLs of weir's own S3 endpoint, and signed addresses to which clients upload. */
#include "base/bytes.h"
#include "lake/address.h"
#include "lake/rest/web.h"
#include "sign/base64.h"
#include "sign/sign.h"

enum { PRESIGN_S = 15 * S_PER_MINUTE, LINK_TIME_LEN = 8 };

/* --- presigned URLs --- */

/* Gets an access key of the repository's owner, and its secret. The presigned URL thus gives its
 * holder the rights of the owner. */
static int presign_keys(struct rest_call *c, const struct lake_repo *r, struct str *access,
                        struct str *secret, struct err *err)
{
    struct users *users = web_of(c)->services->users;
    struct user owner;
    int code = users_by_id(users, c->arena, r->owner, &owner, err);

    if (code == 0 && owner.key_count == 0)
        code = err_set(err, ERR_UNSUPPORTED, "the repository's owner has no access key to sign by");
    if (code < 0)
        return code;
    *access = owner.keys[0].access;
    return users_by_key(users, c->arena, *access, &owner, secret, err);
}

static int presign_append(struct buf *out, struct rest_call *c, const char *method,
                          const struct sign_credentials *keys, struct str path, struct str query,
                          struct err *err)
{
    struct str base = str_z(web_of(c)->services->conf->s3.url);
    struct url url;
    int code = url_parse(&url, base, err);

    if (code < 0)
        return code;
    struct str host =
        url.port ? arena_fmt(c->arena, STR_FMT ":%u", STR_ARG(url.host), url.port) : url.host;
    struct http_header header = {STR("Host"), host};
    struct sign_request r = {str_z(method), path, query, &header, 1, STR(SIGN_UNSIGNED)};
    buf_appendf(out, STR_FMT "://" STR_FMT STR_FMT "?", STR_ARG(url.scheme), STR_ARG(host),
                STR_ARG(path));
    code = sign_query(out, &r, keys, clock_wall_ms(), PRESIGN_S);
    return code < 0 ? err_code(err, code) : 0;
}

int web_presign_query(struct rest_call *c, const struct lake_repo *r, const char *method,
                      struct str address, struct str query, struct web_presigned *out,
                      struct err *err)
{
    const struct conf *conf = web_of(c)->services->conf;
    struct sign_credentials keys = {.region = str_z(conf->s3.region), .service = STR("s3")};
    struct buf path = BUF_INIT(8 * KIB), url = BUF_INIT(16 * KIB);

    if (!*conf->s3.url)
        return err_set(err, ERR_UNSUPPORTED, "presigned URLs need the configuration key s3.url");
    if (!str_starts(address, STR("s3://")))
        return err_set(err, ERR_UNSUPPORTED, "the object's address is not of S3");
    int code = presign_keys(c, r, &keys.access_key, &keys.secret, err);
    buf_append_char(&path, '/');
    url_encode(&path, str_skip(address, 5), true);
    if (code == 0)
        code = presign_append(&url, c, method, &keys, buf_str(&path), query, err);
    if (code == 0)
        *out = (struct web_presigned){arena_str(c->arena, buf_str(&url)),
                                      clock_wall_ms() + (int64_t)PRESIGN_S * MS_PER_S};
    buf_release(&path);
    buf_release(&url);
    return code;
}

int web_presign(struct rest_call *c, const struct lake_repo *r, const char *method,
                struct str address, struct web_presigned *out, struct err *err)
{
    return web_presign_query(c, r, method, address, STR_EMPTY, out, err);
}

/* --- signed addresses --- */

static void link_append(struct buf *out, struct str part)
{
    buf_append_be64(out, part.len);
    buf_append_str(out, part);
}

/* Computes the HMAC over the time, the address, and the repository, branch and path for which the
 * address is valid. */
static void link_mac(const struct lake_web *w, const struct web_link *link, struct str time,
                     unsigned char out[HMAC_SHA256_LEN])
{
    struct buf text = BUF_INIT(16 * KIB);

    buf_append_str(&text, time);
    link_append(&text, link->repo->partition);
    link_append(&text, link->branch);
    link_append(&text, link->path);
    link_append(&text, link->address);
    hmac_sha256_by(&w->link_key, buf_str(&text), out);
    buf_release(&text);
}

struct str web_link_sign(const struct lake_web *w, struct arena *a, const struct web_link *link,
                         int64_t now_ms)
{
    unsigned char bytes[LINK_TIME_LEN + HMAC_SHA256_LEN];
    struct buf text = BUF_INIT(4 * KIB);

    be64_write(bytes, (uint64_t)now_ms);
    link_mac(w, link, str_n(bytes, LINK_TIME_LEN), bytes + LINK_TIME_LEN);
    buf_append_str(&text, link->address);
    buf_append_char(&text, ',');
    base64url_encode(&text, str_n(bytes, sizeof(bytes)));
    struct str out = arena_str(a, buf_str(&text));
    buf_release(&text);
    return out;
}

/* Splits "<address>,<signature>" at the last comma. Returns false when there is no comma. */
static bool link_cut(struct str key, struct str *address, struct str *signature)
{
    size_t at = key.len;

    while (at && key.p[at - 1] != ',')
        at--;
    if (at == 0)
        return false;
    *address = str_head(key, at - 1);
    *signature = str_skip(key, at);
    return true;
}

int web_link_check(const struct lake_web *w, const struct web_link *wanted, struct str key,
                   int64_t now_ms, struct err *err)
{
    struct web_link link = *wanted;
    unsigned char mac[HMAC_SHA256_LEN];
    struct buf bytes = BUF_INIT(LINK_TIME_LEN + HMAC_SHA256_LEN);
    struct str signature;
    int code = err_set(err, ERR_INVALID, "link address invalid: it was not given for this path");

    if (!link_cut(key, &link.address, &signature) || base64url_decode(&bytes, signature) < 0 ||
        bytes.len != LINK_TIME_LEN + HMAC_SHA256_LEN) {
        buf_release(&bytes);
        return code;
    }
    link_mac(w, &link, str_n(bytes.p, LINK_TIME_LEN), mac);
    int64_t age = now_ms - (int64_t)be64_read(bytes.p);
    if (str_eq_secret(str_n(mac, sizeof(mac)), str_skip(buf_str(&bytes), LINK_TIME_LEN)))
        code = age <= WEB_LINK_MS
                   ? 0
                   : err_set(err, ERR_INVALID, "link address expired; ask for another");
    buf_release(&bytes);
    return code;
}
