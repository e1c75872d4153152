/* Addresses, signs and sends a request to the peer. */
#include "base/clock.h"
#include "object/remote/remote_int.h"

enum { TARGET_MAX = HTTP_MAX_HEAD, OWN_HEADERS = 4 /* Host, and three headers of the signature */ };

/* One request that is being built; all of it lives in the arena. */
struct outgoing {
    struct arena *a;
    struct http_header headers[HTTP_MAX_HEADERS + OWN_HEADERS];
    size_t header_count;
    struct str host, path, query;
    struct buf text; /* path and query as they are sent */
};

static void outgoing_header(struct outgoing *o, struct str name, struct str value)
{
    o->headers[o->header_count++] = (struct http_header){name, value};
}

/* Decodes a name or value of the query and encodes it again, so that it has only one possible form.
 * Some peers compute the signature from the bytes of the query as received, others from the decoded
 * query; in this form both get the same signature. */
static int outgoing_recode(struct outgoing *o, struct str in)
{
    struct buf decoded = BUF_INIT(TARGET_MAX);
    int code;

    if (str_chr(in, '%') < 0 && str_chr(in, '+') < 0) { /* nothing to decode */
        url_encode(&o->text, in, false);
        return 0;
    }
    code = url_decode(&decoded, in, true);
    if (code == 0)
        url_encode(&o->text, buf_str(&decoded), false);
    buf_release(&decoded);
    return code;
}

/* Appends the path unchanged. Decoding and encoding it again would turn "%2F" in a segment into a
 * slash. So `path` must be encoded as url_encode() does it; all peers compute the same signature
 * for that form. */
static int append_path(struct outgoing *o, struct str path)
{
    for (size_t i = 0; i < path.len; i++) {
        char c = path.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (c == '\0' || !strchr("-._~/%", c)))
            return ERR_INVALID;
    }
    buf_append_str(&o->text, path);
    return 0;
}

static int recode_query(struct outgoing *o, struct str query)
{
    size_t start = o->text.len;
    int code = 0;

    while (code == 0 && query.len) {
        struct str pair, name, value;
        str_cut(query, '&', &pair, &query);
        if (pair.len == 0)
            continue;
        bool has_value = str_cut(pair, '=', &name, &value);
        if (o->text.len > start)
            buf_append_char(&o->text, '&');
        code = outgoing_recode(o, name);
        if (has_value)
            buf_append_char(&o->text, '=');
        if (code == 0)
            code = outgoing_recode(o, value);
    }
    return code;
}

/* Whether the bucket's name may be put in front of the host: letters, digits and '-', with single
 * dots between them. */
static bool is_host_label(struct str s)
{
    bool dot = true;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || (c == '.' && !dot)))
            return false;
        dot = c == '.';
    }
    return !dot;
}

/* Moves the bucket from the path to the host name, if the peer wants it there. */
static struct str take_host_bucket(struct outgoing *o, const struct remote *r, struct str path)
{
    struct str bucket, key;

    str_cut(str_skip(path, 1), '/', &bucket, &key);
    o->host = buf_str(&r->host);
    if (!r->virtual_host || !is_host_label(bucket))
        return path;
    o->host = arena_fmt(o->a, STR_FMT "." STR_FMT, STR_ARG(bucket), STR_ARG(buf_str(&r->host)));
    path = str_skip(path, 1 + bucket.len);
    return path.len ? path : STR("/");
}

static int outgoing_address(struct outgoing *o, const struct remote *r,
                            const struct forward_request *f, struct err *err)
{
    struct str path = take_host_bucket(o, r, f->path);
    int code = append_path(o, path);
    size_t path_len = o->text.len;

    if (f->query.len)
        buf_append_char(&o->text, '?');
    if (code == 0)
        code = recode_query(o, f->query);
    if (code == 0)
        code = buf_error(&o->text);
    if (code < 0 || !str_starts(path, STR("/")))
        return err_set(err, code == ERR_TOO_LARGE ? code : ERR_INVALID, "malformed path or query");
    o->path = str_head(buf_str(&o->text), path_len);
    o->query = str_skip(buf_str(&o->text), path_len + (f->query.len > 0));
    return 0;
}

static struct str payload_hash(const struct forward_request *f)
{
    if (f->sha256.len)
        return f->sha256;
    return f->body && f->body_len ? STR(SIGN_UNSIGNED) : STR(SIGN_EMPTY_SHA256);
}

static int outgoing_sign(struct outgoing *o, struct remote *r, const struct forward_request *f,
                         struct err *err)
{
    struct str hash = payload_hash(f);
    struct credential *c = credential_table_get(&r->credentials, f->user);
    struct signed_headers made;

    if (!c)
        return err_set(err, ERR_DENIED, "no credentials on the storage " STR_FMT,
                       STR_ARG(r->storage.name));
    struct sign_request request = {.method = f->signed_as.len ? f->signed_as : f->method,
                                   .path = o->path,
                                   .query = o->query,
                                   .headers = o->headers,
                                   .header_count = o->header_count,
                                   .payload_hash = hash};
    struct sign_credentials by = {.access_key = c->access,
                                  .secret = c->secret,
                                  .region = buf_str(&r->region),
                                  .service = STR("s3"),
                                  .keys = r->keys};
    int code = sign_headers(&made, o->a, &request, &by, clock_wall_ms());
    credential_unref(c);
    if (code < 0)
        return err_code(err, code);
    outgoing_header(o, STR("x-amz-date"), made.date);
    outgoing_header(o, STR("x-amz-content-sha256"), made.content_sha256);
    outgoing_header(o, STR("Authorization"), made.authorization);
    return 0;
}

/* Fails at once while the peer is down: only the prober's thread may wait for a connection
 * (docs/remote-storage.md, M6). */
static int is_reachable(struct remote *r, struct err *err)
{
    if (upstream_is_up(r->upstream))
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "the storage " STR_FMT " is down",
                   STR_ARG(r->storage.name));
}

static int send(struct outgoing *o, struct remote *r, const struct forward_request *f,
                struct exchange **out, struct err *err)
{
    struct upstream_request request = {.method = f->method,
                                       .target = buf_str(&o->text),
                                       .headers = o->headers,
                                       .header_count = o->header_count,
                                       .body = f->body,
                                       .body_len = f->body_len,
                                       .expect_continue = f->expect_continue,
                                       .idempotent = f->idempotent,
                                       .may = f->may,
                                       .may_ctx = f->may_ctx};
    int code = f->now ? upstream_send_now(out, r->upstream, &request, err)
                      : upstream_send(out, r->upstream, &request, err);

    if (code == ERR_UNAVAILABLE)
        remote_wake_prober(r);
    return code;
}

int remote_forward(struct storage *s, const struct forward_request *f, struct exchange **out,
                   struct err *err)
{
    struct remote *r = remote_of(s);
    struct arena own = ARENA_INIT(256 * KIB);
    struct outgoing o = {.a = f->arena ? f->arena : &own, .text = BUF_INIT(TARGET_MAX)};
    int code = is_reachable(r, err);

    if (code == 0 && f->header_count >= HTTP_MAX_HEADERS - OWN_HEADERS)
        code = err_set(err, ERR_TOO_LARGE, "too many headers to send on");
    if (code == 0)
        code = outgoing_address(&o, r, f, err);
    if (code == 0) {
        outgoing_header(&o, STR("Host"), o.host);
        for (size_t i = 0; i < f->header_count; i++)
            outgoing_header(&o, f->headers[i].name, f->headers[i].value);
        code = f->user.len ? outgoing_sign(&o, r, f, err) : 0;
    }
    if (code == 0)
        code = arena_error(o.a);
    if (code == 0)
        code = send(&o, r, f, out, err);
    buf_release(&o.text);
    arena_release(&own);
    return code;
}
