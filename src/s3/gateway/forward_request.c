/* Makes the request that is sent to a remote storage: its path, query and headers, without the
 * headers of the client's connection and signature. */
#include "s3/gateway/forward.h"

/* Headers of the connection (RFC 9110 section 7.6.1), besides those that the header Connection
 * names. */
static const struct str hops[] = {
    STR("connection"),
    STR("keep-alive"),
    STR("proxy-authenticate"),
    STR("proxy-authorization"),
    STR("proxy-connection"),
    STR("te"),
    STR("trailer"),
    STR("transfer-encoding"),
    STR("upgrade"),
};

/* Headers that are not passed on: those of the client's signature, those of its body's framing, and
 * those that are meant for weir itself. */
static const struct str spent[] = {
    STR("x-weir-storage"),
    STR("host"),
    STR("authorization"),
    STR("date"),
    STR("x-amz-date"),
    STR("x-amz-content-sha256"),
    STR("x-amz-security-token"),
    STR("expect"),
    STR("content-length"),
    STR("x-amz-trailer"),
    STR("x-amz-decoded-content-length"),
};

/* Headers that are not passed on because some servers obey them instead of the request's own
 * address. Proxies in front of weir set these headers to the address that their client asked for,
 * and clients can set them too. */
static const struct str rewrites[] = {
    STR("forwarded"),
    STR("x-forwarded-host"),
    STR("x-forwarded-prefix"),
    STR("x-host"),
    STR("x-http-host-override"),
    STR("x-http-method"),
    STR("x-http-method-override"),
    STR("x-method-override"),
    STR("x-original-host"),
    STR("x-original-url"),
    STR("x-rewrite-url"),
};

static const struct str presigned_v2[] = {
    STR("AWSAccessKeyId"),
    STR("Signature"),
    STR("Expires"),
};

static const struct str preflight[] = {
    STR("origin"),
    STR("access-control-request-method"),
    STR("access-control-request-headers"),
};

static bool is_one_of(struct str name, const struct str *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_ieq(name, names[i]))
            return true;
    return false;
}

bool forward_is_hop(const struct http_head *head, struct str name)
{
    const struct http_header *h = NULL;

    if (is_one_of(name, hops, ARRAY_SIZE(hops)))
        return true;
    while ((h = http_header_next(head, "connection", h)))
        if (http_list_has(h->value, name))
            return true;
    return false;
}

/* Is `name` a header about the message, which means the same to every recipient? No client needs to
 * name such a header in Connection. */
static bool is_of_message(const struct call *c, struct str name)
{
    static const struct str prefixes[] = {STR("x-amz-"), STR("if-"), STR("content-"), STR("range")};

    if (is_one_of(name, hops, ARRAY_SIZE(hops)))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (str_ieq(str_head(name, prefixes[i].len), prefixes[i]))
            return true;
    return auth_signs(&c->auth, name);
}

/* Refuses a Connection header that would remove a header of the message: a request that was signed
 * with a header must not be sent without it (docs/forward.md, F12). */
static int check_connection(const struct call *c, struct err *err)
{
    const struct http_header *h = NULL;
    struct str rest, name;

    while ((h = http_header_next(c->head, "connection", h))) {
        rest = h->value;
        while (str_token(&rest, ",", &name)) {
            name = str_trim(name);
            if (is_of_message(c, name))
                return err_set(err, S3_INVALID_REQUEST,
                               "The Connection header must not name " STR_FMT,
                               STR_ARG(str_head(name, 64)));
        }
    }
    return 0;
}

/* --- headers that could name another object than the request does (docs/forward.md, F13) --- */

/* Does the name end with `end`? "-" and "_" count as equal, because some servers turn header names
 * into names of variables: for them "x_amz_copy_source" is the same header as "x-amz-copy-source".
 */
static bool ends_as(struct str name, struct str end)
{
    if (name.len < end.len)
        return false;
    for (size_t i = 0; i < end.len; i++) {
        char c = name.p[name.len - end.len + i];
        if ((c == '_' ? '-' : c | 0x20) != (end.p[i] | 0x20))
            return false;
    }
    return true;
}

/* Headers by which some servers act on other keys than the request's. MinIO unpacks an archive into
 * many keys, or removes all keys that begin with the request's key. */
static const struct str orders[] = {
    STR("x-minio-"),
    STR("x-rustfs-"),
    STR("x-amz-meta-snowball-auto-extract"),
    STR("x-amz-meta-minio-snowball"),
    STR("x-amz-meta-rustfs-snowball"),
};

static bool is_order(struct str header)
{
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
        if (header.len >= orders[i].len && ends_as(str_head(header, orders[i].len), orders[i]))
            return true;
    return false;
}

/* Does the header name a second object, by a name that weir does not evaluate? Other services have
 * their own names for x-amz-copy-source. */
static bool names_object(struct str header)
{
    bool named = ends_as(header, STR("copy-source")) || ends_as(header, STR("rename-source"));

    return is_order(header) ||
           (named && !str_ieq(header, STR("x-amz-copy-source")) && !header_is_user_meta(header));
}

/* Is the header the Content-Type of a form? The key of a form is in its body, not in the path.
 * CreateMultipartUpload is not a form: its Content-Type is that of the object. */
static bool is_form_data(const struct call *c, const struct http_header *h)
{
    struct str value = h->value, type = STR("form-data");
    bool begins_upload = c->op && c->op->id == S3_OP_CreateMultipartUpload && !c->beyond;

    if (c->head->method != HTTP_POST || begins_upload || !str_ieq(h->name, STR("content-type")))
        return false;
    while (value.len >= type.len && !str_ieq(str_head(value, type.len), type))
        value = str_skip(value, 1);
    return value.len >= type.len;
}

/* Does the key have a step "." or ".."? A server between weir and the storage may rewrite such
 * a path, and nobody notices unless the path is signed. */
static bool has_steps(struct str key)
{
    struct str step;

    for (bool more = true; more;) {
        more = str_cut(key, '/', &step, &key);
        if (str_eq(step, STR(".")) || str_eq(step, STR("..")))
            return true;
    }
    return false;
}

static int check_names(const struct call *c, struct err *err)
{
    /* S3 does not use this method, but the storage may know it. COPY and MOVE, for example, name a
     * second object in a header that weir does not check. */
    if (c->head->method == HTTP_METHOD_OTHER)
        return s3_fail(err, S3_METHOD_NOT_ALLOWED);
    if (!c->user && has_steps(c->key))
        return err_set(err, S3_INVALID_URI,
                       "A key with the steps . or .. needs a signed request on this storage.");
    for (size_t i = 0; i < c->head->header_count; i++) {
        const struct http_header *h = &c->head->headers[i];
        if (names_object(h->name))
            return err_set(err, S3_NOT_IMPLEMENTED, "The header " STR_FMT " is not implemented",
                           STR_ARG(str_head(h->name, 64)));
        if (is_form_data(c, h))
            return err_set(err, S3_INVALID_REQUEST, "A form cannot be sent to this resource.");
    }
    return 0;
}

/* --- path and query --- */

static void write_path(const struct call *c, struct buf *out)
{
    buf_append_char(out, '/');
    url_encode(out, c->bucket_name, false);
    if (c->key.len) {
        buf_append_char(out, '/');
        url_encode(out, c->key, true);
    }
}

/* Whether the parameter is left out of the query. No x-amz-* parameter is sent. In a presigned
 * request such a parameter has the value of a header and is sent as that header; in other requests
 * it means nothing. */
static bool is_signature(const struct call *c, struct str name)
{
    if (c->claimed) /* a preflight needs no query (docs/forward.md, F10) */
        return true;
    if (str_ieq(str_head(name, 6), STR("x-amz-")) || call_hoists(c, name))
        return true;
    return c->auth.kind == AUTH_V2_QUERY && is_one_of(name, presigned_v2, ARRAY_SIZE(presigned_v2));
}

/* Writes the query. Parameters are in the client's order, decoded and encoded again, so that every
 * storage signs the same text. */
static void write_query(const struct call *c, struct buf *out)
{
    struct str rest = c->head->query, name, value;

    for (size_t i = 0; i < c->query_count && url_query_next(&rest, &name, &value); i++) {
        if (is_signature(c, c->query[i].name))
            continue;
        if (out->len)
            buf_append_char(out, '&');
        buf_append_str(out, name);
        if (value.p) {
            buf_append_char(out, '=');
            buf_append_str(out, value);
        }
    }
}

/* --- headers --- */

/* Does the header make a claim about the body's bytes? */
static bool is_of_bytes(struct str name)
{
    enum digest_kind kind;

    return checksum_by_header(name, &kind) || str_ieq(name, STR("content-md5")) ||
           str_ieq(name, STR("x-amz-sdk-checksum-algorithm"));
}

static bool is_sent(const struct call *c, const struct forward_body *b, struct str name)
{
    if (c->claimed)
        return is_one_of(name, preflight, ARRAY_SIZE(preflight));
    if (is_one_of(name, spent, ARRAY_SIZE(spent)) || forward_is_hop(c->head, name) ||
        is_one_of(name, rewrites, ARRAY_SIZE(rewrites)))
        return false;
    if (b->ours && is_of_bytes(name))
        return false;
    /* This header is not sent if it announces a checksum in a trailer that is not passed on. */
    if (str_ieq(name, STR("x-amz-sdk-checksum-algorithm")))
        return !b->payload.in_trailer || b->has_checksum || b->framed;
    return true;
}

static struct str content_encoding(struct call *c, struct str value, bool framed)
{
    struct buf out = BUF_INIT(HTTP_MAX_HEAD);
    struct str token;

    if (framed)
        buf_append_z(&out, "aws-chunked");
    while (str_token(&value, ",", &token)) {
        token = str_trim(token);
        if (token.len == 0 || str_ieq(token, STR("aws-chunked")))
            continue;
        if (out.len)
            buf_append_char(&out, ',');
        buf_append_str(&out, token);
    }
    struct str left = arena_str(c->a, buf_str(&out));
    buf_release(&out);
    return left;
}

static void forward_add_header(struct forward_request *r, struct http_header *headers,
                               struct str name, struct str value)
{
    BUG_ON(r->header_count == FORWARD_HEADERS_MAX);
    headers[r->header_count++] = (struct http_header){name, value};
}

/* Copies the client's headers. x-amz-copy-source is sent as weir has read it, and only with
 * copies. */
static int copy_headers(struct call *c, const struct forward_body *b, struct forward_request *r,
                        struct http_header *headers, struct err *err)
{
    bool framed = b->framed;
    struct str source = STR_EMPTY;
    int code = call_is_copy(c) ? copy_source_text(c, &source, err) : 0;

    for (size_t i = 0; code == 0 && i < c->head->header_count; i++) {
        struct http_header h = c->head->headers[i];
        if (!is_sent(c, b, h.name))
            continue;
        if (str_ieq(h.name, STR("x-amz-copy-source"))) {
            h.value = source;
            if (!h.value.len)
                continue;
        }
        if (str_ieq(h.name, STR("content-encoding"))) {
            h.value = content_encoding(c, h.value, framed);
            framed = false;
            if (!h.value.len)
                continue;
        }
        forward_add_header(r, headers, h.name, h.value);
    }
    if (framed)
        forward_add_header(r, headers, STR("Content-Encoding"), STR("aws-chunked"));
    return code;
}

/* May the request be sent a second time (docs/forward.md, F7)? */
static bool is_idempotent(struct call *c)
{
    switch (c->head->method) {
    case HTTP_GET:
    case HTTP_HEAD:
    case HTTP_OPTIONS:
        return true;
    case HTTP_PUT:
        return !call_is_conditional(c);
    case HTTP_DELETE: /* a second removal of an object could make a second delete marker */
        return (call_param(c, "versionId").len || (c->op && c->op->query)) &&
               !call_is_conditional(c);
    default:
        return false;
    }
}

/* Asks replication whether the last bytes may be sent (docs/replication.md, E2). */
static int may_send(void *ctx, struct err *err)
{
    return call_may_send(ctx, err);
}

int forward_describe(struct call *c, const struct forward_body *b, struct forward_request *out,
                     struct http_header *headers, struct err *err)
{
    struct buf path = BUF_INIT(3 * HTTP_MAX_HEAD), query = BUF_INIT(3 * HTTP_MAX_HEAD);
    int code = check_connection(c, err);

    if (code == 0)
        code = check_names(c, err);
    if (code < 0)
        return code;
    write_path(c, &path);
    write_query(c, &query);
    *out = (struct forward_request){
        .user = c->user_id,
        .method = c->head->method_text,
        .signed_as = call_signed_method(c),
        .path = arena_str(c->a, buf_str(&path)),
        .query = arena_str(c->a, buf_str(&query)),
        .headers = headers,
        .body = b->reader,
        .body_len = b->len,
        .sha256 = b->sha256,
        .expect_continue = c->head->expect_continue && b->streams,
        .idempotent = is_idempotent(c),
        .may = may_send,
        .may_ctx = c,
        .arena = c->a,
    };
    buf_release(&path);
    buf_release(&query);
    code = copy_headers(c, b, out, headers, err);
    if (code < 0)
        return code;
    if (b->has_checksum)
        forward_add_header(out, headers, b->checksum.name, b->checksum.value);
    if (b->framed) {
        forward_add_header(out, headers, STR("x-amz-trailer"),
                           checksum_names[b->payload.checksum].header);
        forward_add_header(out, headers, STR("x-amz-decoded-content-length"),
                           arena_fmt(c->a, "%llu", (unsigned long long)b->payload.length));
    }
    return arena_error(c->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}
