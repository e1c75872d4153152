/* Parses a request: finds bucket and key in host and path, decodes the query, checks the signature,
 * and reads documents. */
#include "s3/gateway/bucket_name.h"
#include "s3/gateway/gateway_int.h"

struct str call_param(const struct call *c, const char *name)
{
    /* A short cut: weir looks for many parameters in each request, but most requests have no query.
     */
    if (c->query_count == 0)
        return STR_EMPTY;
    struct str wanted = str_z(name);
    for (size_t i = 0; i < c->query_count; i++)
        if (str_eq(c->query[i].name, wanted))
            return c->query[i].value;
    return STR_EMPTY;
}

int call_number(const struct call *c, const char *name, uint64_t fallback, uint64_t max,
                uint64_t *out, struct err *err)
{
    struct str text = call_param(c, name);

    *out = fallback;
    if (text.len == 0)
        return 0;
    if (str_u64(text, out) < 0 || *out > (uint64_t)INT32_MAX)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "Provided %s not an integer or within integer range", name);
    if (*out > max)
        *out = max;
    return 0;
}

/* Decodes percent escapes. After success out->p is never NULL, so that an empty value differs from
 * an absent one. */
static int call_decode(struct call *c, struct str in, bool plus, struct str *out, struct err *err)
{
    struct buf b = BUF_INIT(HTTP_MAX_HEAD);
    int code = 0;

    if (str_chr(in, '%') < 0 && (!plus || str_chr(in, '+') < 0)) {
        *out = str_n(arena_z(c->a, in), in.len);
    } else {
        code = url_decode(&b, in, plus);
        if (code == 0)
            *out = str_n(arena_z(c->a, buf_str(&b)), b.len);
        buf_release(&b);
    }
    if (code < 0)
        return s3_fail(err, S3_INVALID_URI);
    return out->p ? 0 : err_code(err, ERR_NO_MEMORY);
}

static int call_parse_query(struct call *c, struct err *err)
{
    struct str rest = c->head->query, name, value;
    int code = 0;

    while (code == 0 && url_query_next(&rest, &name, &value)) {
        struct call_param *p = &c->query[c->query_count];
        if (c->query_count == CALL_QUERY_MAX)
            return err_set(err, S3_INVALID_URI, "The query has too many parameters.");
        code = call_decode(c, name, true, &p->name, err);
        if (code == 0)
            code = call_decode(c, value, true, &p->value, err);
        c->query_count += code == 0;
    }
    c->version = call_param(c, "versionId");
    if (code == 0 && c->version.p && c->version.len == 0 && c->level == LEVEL_OBJECT)
        code = err_set(err, S3_INVALID_ARGUMENT, "Version id cannot be the empty string");
    return code < 0 ? code : call_hoist(c, err);
}

/* Returns the bucket that Host names: "photos.s3.example.com:8080" is the bucket photos when the
 * domain is s3.example.com. A dot at the end of the host is ignored. */
static struct str bucket_of_host(const struct call *c, struct str domain)
{
    struct str host = http_header(c->head, "host"), name, port;

    str_cut(host, ':', &name, &port);
    if (str_ends(name, STR(".")))
        name = str_head(name, name.len - 1);
    if (domain.len == 0 || name.len < domain.len + 2)
        return STR_EMPTY;
    size_t len = name.len - domain.len - 1;
    if (name.p[len] != '.' || !str_ieq(str_skip(name, len + 1), domain))
        return STR_EMPTY;
    return str_head(name, len);
}

/* Reads the bucket's name from Host. Hosts have neither case nor escapes, so the name is not
 * decoded, only put into lower case. */
static int name_of_host(struct call *c, struct err *err)
{
    char *name = arena_z(c->a, c->host_bucket);

    if (!name)
        return err_code(err, ERR_NO_MEMORY);
    for (char *p = name; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p |= 0x20;
    c->host_bucket = str_n(name, c->host_bucket.len);
    c->bucket_name = c->host_bucket;
    return 0;
}

/* Reads the bucket's name from the first segment of the path. In a request that is for no bucket,
 * the segment is empty or is Ceph's ":", which has neither tenant nor name. */
static int name_of_segment(struct call *c, struct str segment, struct err *err)
{
    int code = call_decode(c, segment, false, &c->bucket_name, err);

    if (code < 0 || str_eq(c->bucket_name, STR(":")))
        c->bucket_name = STR_EMPTY;
    return code;
}

static int call_check_names(struct call *c, struct err *err)
{
    int code = c->bucket_name.len ? bucket_name_read(&c->bucket_name, c->bucket_name, err) : 0;

    return code == 0 && c->key.len ? object_key_check(c->key, c->g->o.routes, c->bucket_name, err)
                                   : code;
}

static int parse_path(struct call *c, struct err *err)
{
    struct str path = c->head->path, bucket = STR_EMPTY, key = path;
    int code;

    if (path.len == 0 || path.p[0] != '/')
        return s3_fail(err, S3_INVALID_URI);
    key = str_skip(path, 1);
    c->host_bucket = bucket_of_host(c, c->g->o.website_domain);
    c->is_website = c->host_bucket.len > 0;
    if (!c->is_website)
        c->host_bucket = bucket_of_host(c, c->g->o.domain);
    if (!c->host_bucket.len)
        str_cut(key, '/', &bucket, &key);
    code = c->host_bucket.len ? name_of_host(c, err) : name_of_segment(c, bucket, err);
    if (code == 0)
        code = call_decode(c, key, false, &c->key, err);
    if (code < 0)
        return code;
    c->level = c->key.len ? LEVEL_OBJECT : c->bucket_name.len ? LEVEL_BUCKET : LEVEL_SERVICE;
    if (c->level == LEVEL_OBJECT && c->bucket_name.len == 0)
        return s3_fail(err, S3_INVALID_BUCKET_NAME);
    return call_check_names(c, err);
}

int call_parse(struct call *c, struct err *err)
{
    int code = parse_path(c, err);

    /* A website's pages have no sub-resources. */
    return code < 0 || c->is_website || !c->head->query.len ? code : call_parse_query(c, err);
}

/* --- who asks --- */

static int find_key(void *ctx, struct str access_key, struct auth_key *out, struct err *err)
{
    struct call *c = ctx;
    struct user *user = arena_new(c->a, struct user);
    struct str secret = STR_EMPTY;
    int code = user ? users_by_key(c->g->o.users, c->a, access_key, user, &secret, err)
                    : err_code(err, ERR_NO_MEMORY);

    if (code < 0)
        return code;
    if (secret.len > sizeof(out->secret))
        return err_code(err, ERR_NOT_FOUND);
    memcpy(out->secret, secret.p, secret.len);
    out->secret_len = secret.len;
    out->user = user;
    return 0;
}

int call_auth_options(struct call *c, struct auth_options *out)
{
    *out = (struct auth_options){
        .find_key = find_key, .ctx = c, .keys = c->g->keys, .allow_v2 = c->g->o.allow_v2};
    return 0;
}

static bool is_v2(const struct call *c)
{
    return str_starts(http_header(c->head, "authorization"), STR("AWS ")) ||
           call_param(c, "AWSAccessKeyId").p;
}

/* Verifies a signature of version 2 that botocore made over another form of the same resource: for
 * "/bucket" botocore signs "/bucket/", and for "/bucket?cors" the sub-resource twice. */
static int verify_as_botocore(struct call *c, const struct auth_request *r,
                              const struct auth_options *o, struct err *err)
{
    struct auth_request as = *r;
    int code = S3_SIGNATURE_DOES_NOT_MATCH;

    if (!is_v2(c))
        return code;
    if (c->level == LEVEL_BUCKET && !str_ends(r->path, STR("/"))) {
        as.path = arena_fmt(c->a, STR_FMT "/", STR_ARG(r->path));
        code = auth_verify(&c->auth, c->a, &as, o, err);
    }
    if (code == S3_SIGNATURE_DOES_NOT_MATCH && r->query.len) {
        as.path = arena_fmt(c->a, STR_FMT "?" STR_FMT, STR_ARG(r->path), STR_ARG(r->query));
        code = auth_verify(&c->auth, c->a, &as, o, err);
    }
    return code;
}

/* Returns the method that the signature covers. For a preflight that is the method that the
 * preflight asks about, because its address may be presigned for that method. */
struct str call_signed_method(const struct call *c)
{
    struct str asked = http_header(c->head, "access-control-request-method");

    return c->head->method == HTTP_OPTIONS && asked.len ? asked : c->head->method_text;
}

int call_authenticate(struct call *c, struct err *err)
{
    const struct http_head *h = http_request_head(c->http);
    struct auth_request r = {.method = call_signed_method(c),
                             .path = h->path,
                             .query = h->query,
                             .headers = h->headers,
                             .header_count = h->header_count,
                             .bucket = c->host_bucket,
                             .now_ms = c->now_ms};
    struct auth_options o;
    int code;

    call_auth_options(c, &o);
    code = auth_verify(&c->auth, c->a, &r, &o, err);
    if (code == S3_SIGNATURE_DOES_NOT_MATCH)
        code = verify_as_botocore(c, &r, &o, err);
    /* Hoisted headers that no signature covers are refused (docs/signatures.md, A6). */
    if (code == 0 && c->hoists && c->auth.kind != AUTH_V4_QUERY)
        code = s3_fail(err, S3_ACCESS_DENIED);
    if (code == 0 && (c->auth.kind == AUTH_V2_HEADER || c->auth.kind == AUTH_V2_QUERY))
        code = call_check_v2(c, err);
    if (code == 0)
        call_be(c, c->auth.user);
    if (c->user)
        http_request_know(c->http);
    return code;
}

/* Sets the user of a preflight to the user that its URL names, without checking the signature. The
 * signature cannot be checked if the URL was presigned with more headers than Host, because a
 * preflight does not have those headers. */
void call_claim(struct call *c)
{
    struct str v4 = call_param(c, "X-Amz-Credential"), v2 = call_param(c, "AWSAccessKeyId");
    struct auth_credential credential = {.access_key = v2};
    struct auth_key key = {0};

    call_be(c, NULL);
    c->auth = (struct identity){.kind = v4.p   ? AUTH_V4_QUERY
                                        : v2.p ? AUTH_V2_QUERY
                                               : AUTH_ANONYMOUS};
    if (v4.p && auth_parse_credential(&credential, v4) < 0)
        return;
    if (credential.access_key.len && credential.access_key.len <= AUTH_ACCESS_KEY_MAX &&
        find_key(c, credential.access_key, &key, NULL) == 0)
        call_be(c, key.user);
    c->claimed = c->user != NULL;
    secure_zero(&key, sizeof(key));
}

/* --- documents --- */

/* Reads all of `from`. The documents of all requests share one budget of memory, and anonymous
 * requests may use a part of it. The budget also covers the arena with what is parsed from a
 * document, because a tree may be many times as large as its text. */
int call_gather(struct call *c, struct reader *from, struct buf *out, struct budget **budget,
                struct err *err)
{
    *budget = c->user ? &c->g->documents : &c->g->strangers;
    arena_charge(c->a, *budget);
    return reader_read_within(from, out, *budget, err);
}

void call_drop_gathered(struct budget *budget, struct buf *text)
{
    if (budget)
        budget_give(budget, text->cap);
    buf_release(text);
}

static int read_body(struct call *c, struct err *err)
{
    struct payload *p = arena_new(c->a, struct payload);
    struct payload_options o = {.auth = &c->auth,
                                .headers = c->head->headers,
                                .header_count = c->head->header_count,
                                .content_length = http_request_length(c->http),
                                .checksum_is_other = c->op->id == S3_OP_CompleteMultipartUpload};
    struct buf *text = &c->document; /* not in the arena, which has to hold the document's tree */
    int code =
        p ? payload_init(p, http_request_body(c->http), &o, err) : err_code(err, ERR_NO_MEMORY);

    if (code < 0)
        return code;
    buf_init(text, c->op->flags & OP_LIST ? CALL_LIST_MAX : CALL_XML_MAX);
    code = call_gather(c, &p->reader, text, &c->budget, err);
    if (code == 0)
        code = payload_verify(p, err);
    payload_release(p);
    if (code == 0)
        c->body = buf_str(text);
    return code == ERR_TOO_LARGE ? s3_fail(err, S3_MAX_MESSAGE_LENGTH_EXCEEDED) : code;
}

int call_read_body(struct call *c, struct err *err)
{
    if (c->body_read < 0)
        return err_code(err, c->body_read);
    int code = c->body_read ? 0 : read_body(c, err);

    c->body_read = code < 0 ? code : 1;
    return code;
}
