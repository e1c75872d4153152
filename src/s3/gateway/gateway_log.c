/* Writes the line of a request in its bucket's access log (docs/bucket-logging.md, "A line"). */
#include "s3/gateway/gateway_int.h"

#include "base/clock.h"
#include "s3/log/access_log.h"

/* The limit on a line. A request's head has at most 16 KiB, and escapes make it longer. */
enum { LINE_MAX_BYTES = 64 * 1024 };

/* The parts of a line that differ between the lines of one request. */
struct record {
    const struct call_target *of;
    struct str operation;
    struct str key, version;
    int status; /* 0: no answer was sent */
    int error;  /* S3's error code; 0: none */
    bool has_size;
    uint64_t size, sent;
};

static void log_field(struct buf *out, struct str text)
{
    buf_append_char(out, ' ');
    buf_append_str(out, text.len ? text : STR("-"));
}

static void log_number(struct buf *out, bool known, uint64_t value)
{
    buf_append_char(out, ' ');
    if (known)
        buf_append_u64(out, value);
    else
        buf_append_char(out, '-');
}

/* Appends the text, with escapes for characters that would end the line or a quote. */
static void append_safe(struct buf *out, struct str text)
{
    for (size_t i = 0; text.p && i < text.len; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
            buf_appendf(out, "%%%02X", c);
        else
            buf_append_char(out, (char)c);
    }
}

/* Appends a field, with "%20" for each blank, because a field without quotes ends at a blank. */
static void word(struct buf *out, struct str text)
{
    buf_append_char(out, ' ');
    for (size_t i = 0; i < text.len; i++)
        append_safe(out, text.p[i] == ' ' ? STR("%20") : str_n(text.p + i, 1));
    if (!text.len)
        buf_append_char(out, '-');
}

static void log_quoted(struct buf *out, struct str text)
{
    buf_append_z(out, " \"");
    append_safe(out, text.len ? text : STR("-"));
    buf_append_char(out, '"');
}

static void key_field(struct buf *out, struct str key)
{
    buf_append_char(out, ' ');
    if (key.len)
        url_encode(out, key, true);
    else
        buf_append_char(out, '-');
}

static void time_field(struct buf *out, int64_t ms)
{
    static const char *const months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char iso[CLOCK_ISO_LEN + 1]; /* such as 2006-01-02T15:04:05.000Z */

    clock_iso(ms, iso);
    size_t month = (size_t)(iso[5] - '0') * 10 + (size_t)(iso[6] - '0') - 1;
    buf_appendf(out, " [%.2s/%.3s/%.4s:%.8s +0000]", iso + 8, months + month * 3, iso, iso + 11);
}

static bool is_secret(struct str name)
{
    static const char *const secrets[] = {
        "x-amz-signature",
        "x-amz-security-token",
        "signature",
        "x-amz-server-side-encryption-customer-key",
        "x-amz-copy-source-server-side-encryption-customer-key",
    };
    struct buf text = BUF_INIT(HTTP_MAX_HEAD);
    bool found = url_decode(&text, name, true) < 0;

    for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
        found |= str_ieq(buf_str(&text), str_z(secrets[i]));
    buf_release(&text);
    return found;
}

/* Appends the request line. The values of signatures and of customers' keys in the query are
 * redacted, so that readers of the log cannot use them. */
static void uri_field(struct buf *out, const struct http_head *head)
{
    struct str rest = head->query, name, value;
    char before = '?';

    buf_append_z(out, " \"");
    append_safe(out, head->method_text);
    buf_append_char(out, ' ');
    append_safe(out, head->path);
    while (url_query_next(&rest, &name, &value)) {
        buf_append_char(out, before);
        before = '&';
        append_safe(out, name);
        if (value.p)
            buf_append_char(out, '=');
        if (is_secret(name))
            buf_append_z(out, "REDACTED");
        else
            append_safe(out, value);
    }
    buf_appendf(out, " HTTP/1.%d\"", head->minor);
}

static struct str signature_of(const struct call *c)
{
    switch (c->auth.kind) {
    case AUTH_V4_HEADER:
    case AUTH_V4_QUERY:
        return STR("SigV4");
    case AUTH_V2_HEADER:
    case AUTH_V2_QUERY:
        return STR("SigV2");
    default:
        return STR_EMPTY;
    }
}

static struct str auth_of(const struct call *c)
{
    if (c->op && c->op->id == S3_OP_PostObject) /* the signature is in the form */
        return STR_EMPTY;
    switch (c->auth.kind) {
    case AUTH_V4_HEADER:
    case AUTH_V2_HEADER:
        return STR("AuthHeader");
    case AUTH_V4_QUERY:
    case AUTH_V2_QUERY:
        return STR("QueryString");
    default:
        return STR_EMPTY;
    }
}

static void log_write_line(struct buf *out, struct call *c, const struct record *r)
{
    struct str id = str_z(http_request_id(c->http));
    uint64_t length = http_request_length(c->http);
    int64_t now = clock_wall_ms();
    char peer[SOCK_ADDR_TEXT];

    sock_addr_host(http_request_peer(c->http), peer);
    word(out, r->of->info.owner);
    buf_consume(out, 1); /* the first field has no blank before it */
    log_field(out, r->of->info.name);
    time_field(out, c->now_ms);
    log_field(out, str_z(peer));
    word(out, c->user_id);
    log_field(out, id);
    log_field(out, r->operation);
    key_field(out, r->key);
    uri_field(out, c->head);
    log_number(out, r->status != 0, (uint64_t)r->status);
    log_field(out, r->error ? str_z(s3_code_name(r->error)) : STR_EMPTY);
    log_number(out, r->sent > 0, r->sent);
    log_number(out, r->has_size, r->size);
    log_number(out, now >= c->now_ms, (uint64_t)(now - c->now_ms));
    log_number(out, length == 0 && c->answered_ms >= c->now_ms,
               (uint64_t)(c->answered_ms - c->now_ms));
    log_quoted(out, http_header(c->head, "referer"));
    log_quoted(out, http_header(c->head, "user-agent"));
    word(out, r->version);
    log_field(out, id);
    log_field(out, signature_of(c));
    log_field(out, str_z(http_request_cipher(c->http)));
    log_field(out, auth_of(c));
    word(out, http_header(c->head, "host"));
    log_field(out, str_z(http_request_tls_version(c->http)));
    log_field(out, STR_EMPTY); /* the field for access points, which weir does not have */
    log_field(out, c->acl_required ? STR("Yes") : STR_EMPTY);
    buf_append_char(out, '\n');
}

static void log_append(struct call *c, const struct record *r)
{
    struct buf line = BUF_INIT(LINE_MAX_BYTES);
    struct access_log_source source = {
        .bucket = r->of->bucket, .owner = r->of->info.owner, .config = r->of->logging};

    log_write_line(&line, c, r);
    if (buf_error(&line) == 0)
        access_log_append(c->g->o.access_log, &source, c->now_ms, buf_str(&line));
    buf_release(&line);
}

static bool is_logged(const struct call *c, const struct call_target *t)
{
    return t->logging.len && c->g->o.access_log;
}

static struct str log_operation(struct call *c)
{
    bool copies = call_is_copy(c);
    const char *resource = c->op ? c->op->log_name : NULL;

    return arena_fmt(c->a, "%s." STR_FMT ".%s", c->is_website ? "WEBSITE" : "REST",
                     STR_ARG(copies ? STR("COPY") : c->head->method_text),
                     resource     ? resource
                     : c->key.len ? "OBJECT"
                                  : "BUCKET");
}

/* Finds the bucket of a request that was refused before its bucket was opened, because such a
 * request is logged too. */
static void find_bucket(struct call *c)
{
    struct route_ask ask = {.bucket = c->bucket_name};
    struct err ignored = {0};

    if (c->error && c->auth_failed && c->g->o.access_log && c->bucket_name.len &&
        call_locate(c, &c->target, &ask, &ignored) == 0)
        (void)!call_open(c, &c->target, c->bucket_name, &ignored);
}

void call_log(struct call *c)
{
    find_bucket(c);
    if (!is_logged(c, &c->target) || c->head->method == HTTP_OPTIONS)
        return;
    log_append(c, &(struct record){.of = &c->target,
                                   .operation = log_operation(c),
                                   .key = c->key,
                                   .version = c->version,
                                   .status = c->answered,
                                   .error = c->error,
                                   .has_size = c->has_size,
                                   .size = c->size,
                                   .sent = http_response_bytes(c->http)});
}

void call_log_removal(struct call *c, struct str key, struct str version, int code)
{
    if (is_logged(c, &c->target))
        log_append(c, &(struct record){.of = &c->target,
                                       .operation = STR("BATCH.DELETE.OBJECT"),
                                       .key = key,
                                       .version = version,
                                       .status = code < 0 ? s3_code_status(code) : 204,
                                       .error = code});
}

void call_log_copied(struct call *c, int code)
{
    bool whole = c->op->id == S3_OP_CopyObject;
    const struct copy_source *s = c->source;

    if (s && is_logged(c, &s->target))
        log_append(c, &(struct record){.of = &s->target,
                                       .operation = whole ? STR("REST.COPY.OBJECT_GET")
                                                          : STR("REST.COPY.PART_GET"),
                                       .key = s->key,
                                       .version = s->version,
                                       .status = code < 0 ? s3_code_status(code) : 200,
                                       .error = code,
                                       .has_size = code == 0,
                                       .size = s->head.info.size});
}
