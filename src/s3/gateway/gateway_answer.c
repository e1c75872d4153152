/* Writes answers: the headers that all answers have, documents, errors, and pieces of XML that
 * several operations write. */
#include "s3/gateway/gateway_int.h"

#include "base/clock.h"
#include "s3/documents/cors.h"

/* The error texts by which storages say what is wrong with a list of parts (ERR_INVALID,
 * object/bucket.h), and S3's codes for them. */
static const struct {
    const char *text;
    enum s3_code code;
} part_errors[] = {
    {"InvalidPart", S3_INVALID_PART},
    {"InvalidPartOrder", S3_INVALID_PART_ORDER},
    {"EntityTooSmall", S3_ENTITY_TOO_SMALL},
};

struct str checksum_type_name(enum checksum_type type)
{
    return type == CHECKSUM_COMPOSITE ? STR("COMPOSITE") : STR("FULL_OBJECT");
}

void xml_checksum(struct buf *out, const struct object_checksum *sum)
{
    if (sum->type != CHECKSUM_NONE)
        xml_element(out, checksum_names[sum->kind].element, sum->value);
}

void xml_checksum_type(struct buf *out, const struct object_checksum *sum)
{
    if (sum->type != CHECKSUM_NONE)
        xml_element(out, "ChecksumType", checksum_type_name(sum->type));
}

void xml_time(struct buf *out, const char *name, int64_t ms)
{
    char text[CLOCK_ISO_LEN + 1];

    clock_iso(ms, text);
    xml_element(out, name, str_z(text));
}

void xml_etag(struct buf *out, struct str etag)
{
    xml_open(out, "ETag");
    buf_append_z(out, "&quot;");
    xml_text(out, etag);
    buf_append_z(out, "&quot;");
    xml_close(out, "ETag");
}

void xml_bool(struct buf *out, const char *name, bool value)
{
    xml_element(out, name, value ? STR("true") : STR("false"));
}

void xml_owner(struct buf *out, struct call *c, const char *name, struct str id)
{
    struct acl_users users = call_acl_users(c);
    struct str found, display = STR_EMPTY;

    if (id.len == 0)
        return;
    xml_open(out, name);
    xml_element(out, "ID", id);
    if (users.find(users.ctx, false, id, &found, &display) && display.len)
        xml_element(out, "DisplayName", display);
    xml_close(out, name);
}

/* --- headers --- */

void respond_kept_header(struct call *c, const struct http_header *h)
{
    if (http_field_is_valid(h->name, h->value))
        http_respond_header(c->http, h->name, h->value);
}

void respond_header(struct call *c, const char *name, struct str value)
{
    if (value.len)
        respond_kept_header(c, &(struct http_header){str_z(name), value});
}

struct cors *call_cors(struct call *c)
{
    struct str text = STR_EMPTY;
    struct err ignored = {0};
    struct cors *cors = arena_new(c->a, struct cors);

    if (!cors || !c->target.facts || !c->target.bucket ||
        call_document(c, c->target.bucket, "cors", &text, &ignored) < 0 || !text.len ||
        cors_read(cors, c->a, text, &ignored) < 0)
        return NULL;
    return cors;
}

/* Adds the headers that let a browser show the answer to a page of this origin. Rules that cannot
 * be read allow nothing. */
static void respond_cors(struct call *c, struct str origin)
{
    struct str asked = http_header(c->head, "access-control-request-method");
    struct cors_request ask = {.origin = origin,
                               .method = asked.len ? asked : c->head->method_text};
    struct http_header headers[CORS_MAX_HEADERS];
    struct cors_answer answer;
    struct cors *cors = call_cors(c);

    if (!cors || !cors_match(cors, &ask, &answer))
        return;
    size_t count = cors_headers(&answer, c->a, headers);
    for (size_t i = 0; i < count; i++)
        respond_kept_header(c, &headers[i]);
}

void respond_begin(struct call *c, int status)
{
    struct str id = str_z(http_request_id(c->http));
    struct str origin = http_header(c->head, "origin");

    c->answered = status;
    if (c->target.logging.len)
        c->answered_ms = clock_wall_ms();
    http_respond(c->http, status);
    http_respond_header(c->http, STR("x-amz-request-id"), id);
    http_respond_header(c->http, STR("x-amz-id-2"), id);
    if (c->charged && status < 300)
        http_respond_header(c->http, STR("x-amz-request-charged"), STR("requester"));
    if (c->incomplete)
        http_respond_header(c->http, STR("x-weir-incomplete"), STR("true"));
    if (origin.len && c->head->method != HTTP_OPTIONS)
        respond_cors(c, origin);
}

void respond_etag(struct call *c, struct str etag)
{
    char text[256];

    if (etag.len == 0 || etag.len > sizeof(text) - 2)
        return;
    text[0] = '"';
    memcpy(text + 1, etag.p, etag.len);
    text[etag.len + 1] = '"';
    respond_header(c, "ETag", str_n(text, etag.len + 2));
}

void respond_new_version(struct call *c, struct str version)
{
    if (!str_eq(version, STR("null")))
        respond_header(c, "x-amz-version-id", version);
}

void respond_time(struct call *c, const char *name, int64_t ms)
{
    char text[CLOCK_HTTP_LEN + 1];

    clock_http(ms, text);
    respond_header(c, name, str_z(text));
}

void respond_checksum(struct call *c, const struct object_checksum *sum)
{
    if (sum->type == CHECKSUM_NONE)
        return;
    respond_header(c, checksum_names[sum->kind].header.p, sum->value);
    respond_header(c, "x-amz-checksum-type", checksum_type_name(sum->type));
}

/* --- bodies --- */

int respond_empty(struct call *c, int status)
{
    respond_begin(c, status);
    c->begun = true;
    return http_send(c->http, STR_EMPTY);
}

int respond_xml(struct call *c, int status, struct buf *xml)
{
    int code = buf_error(xml);

    if (code == 0) {
        respond_begin(c, status);
        respond_header(c, "Content-Type", STR("application/xml"));
        if (status == 503)
            respond_header(c, "Retry-After", STR("1"));
        code = http_send(c->http, buf_str(xml));
        c->begun = code != ERR_AGAIN;
    }
    buf_release(xml);
    return code;
}

static int precise_code(int code, const struct err *err)
{
    for (size_t i = 0; code == ERR_INVALID && i < ARRAY_SIZE(part_errors); i++)
        if (str_eq(str_z(err->text), str_z(part_errors[i].text)))
            return part_errors[i].code;
    return code;
}

void call_log_failure(struct call *c, int code, const struct err *err)
{
    int status = s3_code_status(precise_code(code, err));

    if (status >= 500 && status != 501)
        log_warn(http_request_log(c->http), "s3.failed",
                 log_z("operation", c->op ? s3_operations[c->op->id].name : ""),
                 log_s("bucket", c->bucket_name), log_z("error", err_name(code)),
                 log_z("text", err->text));
}

int respond_error(struct call *c, int code, const struct err *err)
{
    struct buf out = BUF_INIT(CALL_OUT_MAX);
    struct str id = str_z(http_request_id(c->http));

    if (c->begun)
        return code;
    int precise = precise_code(code, err);
    bool own_words =
        precise == code && (code <= S3_FIRST_CODE || code == ERR_INVALID || code == ERR_STORE);
    int status = s3_code_status(precise);
    c->error = precise;
    call_log_failure(c, code, err);
    struct s3_error_body body = {
        .code = precise,
        .message = own_words ? str_z(err->text) : STR_EMPTY,
        .bucket = c->bucket_name,
        .key = c->key,
        .resource = c->head->path,
        .request_id = id,
        .host_id = id,
    };
    if (status != 304)
        s3_error_write(&out, &body);
    return respond_xml(c, status, &out);
}
