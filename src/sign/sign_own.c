/* Signs the requests that weir sends, by headers or by a presigned query. */
#include "base/clock.h"
#include "sign/sign.h"

/* The constants USUAL_* are the first sizes of bufs, in bytes. Longer texts make a buf grow. */
enum {
    MAX_SIGNED = HTTP_MAX_HEADERS + 2,
    MAX_TEXT = 4 * HTTP_MAX_HEAD,
    USUAL_TEXT = 1000,
    USUAL_STRING = 200
};

static bool own_is_signed(struct str name)
{
    static const struct str always[] = {STR("host"), STR("content-md5"), STR("content-type")};

    for (size_t i = 0; i < ARRAY_SIZE(always); i++)
        if (str_ieq(name, always[i]))
            return true;
    return str_ieq(str_head(name, 6), STR("x-amz-"));
}

static struct str lower_copy(struct arena *a, struct str s)
{
    char *copy = arena_z(a, s);

    for (size_t i = 0; copy && i < s.len; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] |= 0x20;
    return str_n(copy, copy ? s.len : 0);
}

/* Inserts a name into the sorted array `names`, which has `count` items. There are few items, so a
 * linear search is enough. */
static void names_insert(struct str *names, size_t count, struct str name)
{
    while (count && str_cmp(names[count - 1], name) > 0) {
        names[count] = names[count - 1];
        count--;
    }
    names[count] = name;
}

/* Returns the names of the headers that are signed, sorted, and each name once, such as
 * "host;x-amz-date". With `all` every header is signed. */
static struct str names_of(struct arena *a, const struct http_header *headers, size_t count,
                           bool all)
{
    struct str names[MAX_SIGNED];
    struct buf b = BUF_INIT(MAX_TEXT);
    size_t n = 0;

    buf_reserve(&b, USUAL_STRING);
    for (size_t i = 0; i < count; i++)
        if (all || own_is_signed(headers[i].name))
            names_insert(names, n++, lower_copy(a, headers[i].name));
    for (size_t i = 0; i < n; i++) {
        if (i && str_eq(names[i], names[i - 1]))
            continue;
        if (b.len)
            buf_append_char(&b, ';');
        buf_append_str(&b, names[i]);
    }
    struct str joined = arena_str(a, buf_str(&b));
    buf_release(&b);
    return joined;
}

/* Computes the signature of a request, which is 64 hex digits, for the time `timestamp`. */
static int sign_one(char out[SIGN_HEX_LEN], const struct sign_request *r, struct str names,
                    const struct sign_credentials *c, struct str timestamp)
{
    struct sign_scope scope = {str_head(timestamp, SIGN_DATE_LEN), c->region, c->service};
    struct buf canonical = BUF_INIT(MAX_TEXT), text = BUF_INIT(0);
    struct sign_key key;
    int code;

    buf_reserve(&canonical, USUAL_TEXT);
    buf_reserve(&text, USUAL_STRING);
    code = sign_canonical(&canonical, r, names);
    if (code == 0) {
        sign_string(&text, timestamp, &scope, buf_str(&canonical));
        if (!sign_keys_get(c->keys, &key, c->secret, &scope) && c->keys)
            sign_keys_keep(c->keys, &key, c->secret, &scope);
        sign_hex(out, &key, buf_str(&text));
        secure_zero(&key, sizeof(key));
    }
    buf_release(&canonical);
    buf_release(&text);
    return code;
}

static void append_credential(struct buf *out, const struct sign_credentials *c, struct str date)
{
    struct sign_scope scope = {date, c->region, c->service};

    buf_append_str(out, c->access_key);
    buf_append_char(out, '/');
    sign_append_scope(out, &scope);
}

/* Makes the value of Authorization. The function uses buf_append_str() and the like, because printf
 * costs as much time as the signature. */
static struct str authorization_of(struct arena *a, const struct sign_credentials *c,
                                   struct str names, struct str timestamp,
                                   const char signature[SIGN_HEX_LEN])
{
    struct buf b = BUF_INIT(MAX_TEXT);
    struct str text;

    buf_reserve(&b, USUAL_TEXT);
    buf_append_z(&b, SIGN_ALGORITHM " Credential=");
    append_credential(&b, c, str_head(timestamp, SIGN_DATE_LEN));
    buf_append_z(&b, ", SignedHeaders=");
    buf_append_str(&b, names);
    buf_append_z(&b, ", Signature=");
    buf_append(&b, signature, SIGN_HEX_LEN);
    text = arena_str(a, buf_str(&b));
    buf_release(&b);
    return text;
}

int sign_headers(struct signed_headers *out, struct arena *a, const struct sign_request *r,
                 const struct sign_credentials *c, int64_t now_ms)
{
    struct http_header headers[MAX_SIGNED];
    struct sign_request full = *r;
    char time[CLOCK_BASIC_LEN + 1], signature[SIGN_HEX_LEN];
    struct str names, timestamp = str_n(time, CLOCK_BASIC_LEN);
    int code;

    BUG_ON(r->header_count > HTTP_MAX_HEADERS);
    clock_basic(now_ms, time);
    memcpy(headers, r->headers, r->header_count * sizeof(*headers));
    full.headers = headers;
    headers[full.header_count++] = (struct http_header){STR("x-amz-date"), timestamp};
    headers[full.header_count++] =
        (struct http_header){STR("x-amz-content-sha256"), r->payload_hash};
    names = names_of(a, headers, full.header_count, false);
    code = sign_one(signature, &full, names, c, timestamp);
    if (code < 0)
        return code;
    out->date = arena_str(a, timestamp);
    out->content_sha256 = arena_str(a, r->payload_hash);
    out->authorization = authorization_of(a, c, names, timestamp, signature);
    return arena_error(a);
}

static void append_encoded(struct buf *out, const char *name, struct str value)
{
    if (out->len)
        buf_append_char(out, '&');
    buf_append_z(out, name);
    buf_append_char(out, '=');
    url_encode(out, value, false);
}

static void append_credential_parameter(struct buf *out, const struct sign_credentials *c,
                                        struct str date)
{
    struct buf credential = BUF_INIT(0);

    append_credential(&credential, c, date);
    append_encoded(out, "X-Amz-Credential", buf_str(&credential));
    buf_release(&credential);
}

int sign_query(struct buf *out, const struct sign_request *r, const struct sign_credentials *c,
               int64_t now_ms, uint64_t expires_s)
{
    struct arena a = ARENA_INIT(0);
    struct buf query = BUF_INIT(MAX_TEXT);
    struct sign_request full = *r;
    char time[CLOCK_BASIC_LEN + 1], signature[SIGN_HEX_LEN];
    struct str timestamp = str_n(time, CLOCK_BASIC_LEN), names;
    int code;

    BUG_ON(r->header_count > HTTP_MAX_HEADERS);
    if (expires_s > SIGN_EXPIRES_MAX_S)
        return ERR_RANGE;
    clock_basic(now_ms, time);
    names = names_of(&a, r->headers, r->header_count, true);
    buf_append_str(&query, r->query);
    append_encoded(&query, "X-Amz-Algorithm", STR(SIGN_ALGORITHM));
    append_credential_parameter(&query, c, str_head(timestamp, SIGN_DATE_LEN));
    append_encoded(&query, "X-Amz-Date", timestamp);
    append_encoded(&query, "X-Amz-Expires", arena_fmt(&a, "%llu", (unsigned long long)expires_s));
    append_encoded(&query, "X-Amz-SignedHeaders", names);
    full.query = buf_str(&query);
    code = sign_one(signature, &full, names, c, timestamp);
    if (code == 0) {
        append_encoded(&query, "X-Amz-Signature", str_n(signature, sizeof(signature)));
        code = buf_error(&query);
    }
    if (code == 0)
        buf_append_str(out, buf_str(&query));
    buf_release(&query);
    arena_release(&a);
    return code < 0 ? code : buf_error(out);
}
