/* PostObject: an upload by a browser's form, whose fields stand for the headers of a PUT. */
#include "s3/bucket_name.h"
#include "s3/form.h"
#include "s3/gateway_int.h"
#include "s3/tagging.h"

struct post {
    struct form form;
    struct form_result result;
    struct put_body body;
    struct identity nobody; /* the file itself is not signed, the policy is */
    struct http_head head;  /* of the PUT that the form stands for */
    bool open;
};

/* Fields that are called otherwise than the header. */
static const struct {
    const char *field, *header;
} renamed[] = {
    {"acl", "x-amz-acl"},
};

/* Fields that are not headers of a PUT: a name that is left out here is one. */
static const char *const not_headers[] = {
    "key",
    "policy",
    "signature",
    "awsaccesskeyid",
    "success_action_redirect",
    "success_action_status",
    "redirect",
    "file",
    "tagging",
    "submit",
    "bucket",
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-algorithm",
    "x-amz-date",
    "content-length",
};

static bool is_header(struct str name)
{
    for (size_t i = 0; i < ARRAY_SIZE(not_headers); i++)
        if (str_ieq(name, str_z(not_headers[i])))
            return false;
    return true;
}

static struct str header_name(struct str field)
{
    for (size_t i = 0; i < ARRAY_SIZE(renamed); i++)
        if (str_ieq(field, str_z(renamed[i].field)))
            return str_z(renamed[i].header);
    return field;
}

/* A field may hold bytes that no header can. */
static bool fits_header(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    return true;
}

static int take_fields(struct call *c, struct post *p, struct err *err)
{
    p->head = *c->head;
    p->head.header_count = 0;
    for (size_t i = 0; i < p->form.field_count; i++) {
        const struct form_field *f = &p->form.fields[i];
        if (!is_header(f->name))
            continue;
        if (!fits_header(f->name) || !fits_header(f->value))
            return err_set(err, S3_INVALID_ARGUMENT, "A field of the form is not a valid header.");
        p->head.headers[p->head.header_count++] =
            (struct http_header){header_name(f->name), f->value};
    }
    c->head = &p->head;
    return 0;
}

static int take_tags(struct call *c, struct post *p, struct object_meta *meta, struct err *err)
{
    struct str xml = form_field(&p->form, "tagging");
    struct buf text = BUF_INIT(HTTP_MAX_HEAD);
    struct tag_set set;
    int code = 0;

    if (!xml.len)
        return 0;
    code = call_need(c, &c->target, S3_ACTION_PUT_OBJECT_TAGGING, c->key, NULL, err);
    if (code == 0)
        code = tagging_read(&set, c->a, xml, TAGS_OF_OBJECT, err);
    if (code < 0)
        return code;
    tagging_encode(&text, &set);
    meta->tags = arena_str(c->a, buf_str(&text));
    buf_release(&text);
    return 0;
}

/* Who has signed the form, and what it asks for. */
static int open_form(struct call *c, struct post *p, struct err *err)
{
    struct auth_options auth;
    struct form_options o = {.bucket = c->bucket_name, .now_ms = c->now_ms, .auth = &auth};
    uint64_t length = http_request_length(c->http);
    int code;

    if (length == UINT64_MAX)
        return s3_fail(err, S3_MISSING_CONTENT_LENGTH);
    if (length > CALL_PUT_MAX + CALL_XML_MAX)
        return s3_fail(err, S3_ENTITY_TOO_LARGE);
    call_auth_options(c, &auth);
    code =
        form_open(&p->form, c->a, http_request_body(c->http), call_header(c, "content-type"), err);
    if (code < 0)
        return code;
    p->open = true;
    code = form_check(&p->result, &p->form, &o, err);
    if (code < 0)
        return code;
    c->user = p->result.user;
    c->key = p->result.key;
    return object_key_check(c->key, err);
}

static int store_file(struct call *c, struct post *p, struct put_result *out, struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct put_options o = {.verify = put_body_verify, .ctx = &p->body};
    struct payload_options said = {.auth = &p->nobody,
                                   .headers = p->head.headers,
                                   .header_count = p->head.header_count,
                                   .content_length = UINT64_MAX};
    int code = meta_from_request(c, &o.meta, err);

    if (code == 0)
        code = meta_common(c, &o.meta, err);
    if (code == 0)
        code = take_tags(c, p, &o.meta, err);
    if (code == 0)
        code = payload_init(&p->body.payload, &p->form.file, &said, err);
    if (code < 0)
        return code;
    p->body.open = true;
    p->body.a = c->a;
    code = b->ops->put(b, c->a, c->key, &p->body.payload.reader, UINT64_MAX, &o, out, err);
    put_body_close(&p->body);
    return code;
}

static struct str redirect(struct call *c, const struct post *p, const struct put_result *out)
{
    struct str to = p->result.success_redirect;
    struct buf text = BUF_INIT(HTTP_MAX_HEAD);

    if (!fits_header(to) || !(str_starts(to, STR("http://")) || str_starts(to, STR("https://"))))
        return STR_EMPTY;
    buf_append_str(&text, to);
    buf_append_z(&text, str_chr(to, '?') < 0 ? "?bucket=" : "&bucket=");
    url_encode(&text, c->target.info.name, false);
    buf_append_z(&text, "&key=");
    url_encode(&text, c->key, false);
    buf_append_z(&text, "&etag=%22");
    url_encode(&text, out->etag, false);
    buf_append_z(&text, "%22");
    struct str kept = arena_str(c->a, buf_str(&text));
    buf_release(&text);
    return kept;
}

static struct str location(struct call *c, const struct str host)
{
    struct buf text = BUF_INIT(HTTP_MAX_HEAD);

    buf_append_z(&text, http_request_is_tls(c->http) ? "https://" : "http://");
    buf_append_str(&text, host);
    buf_append_z(&text, "/");
    if (!c->host_bucket.len) {
        buf_append_str(&text, c->target.info.name);
        buf_append_z(&text, "/");
    }
    url_encode(&text, c->key, true);
    struct str kept = arena_str(c->a, buf_str(&text));
    buf_release(&text);
    return kept;
}

static int answer(struct call *c, const struct post *p, const struct put_result *out)
{
    struct str to = redirect(c, p, out), where = location(c, call_header(c, "host"));
    uint64_t status = 204;
    struct buf xml = BUF_INIT(CALL_OUT_MAX);

    if (str_u64(p->result.success_status, &status) < 0 || (status != 200 && status != 201))
        status = 204;
    if (to.len)
        status = 303;
    if (status == 201) {
        xml_prolog(&xml);
        xml_open(&xml, "PostResponse");
        xml_element(&xml, "Location", where);
        xml_element(&xml, "Bucket", c->target.info.name);
        xml_element(&xml, "Key", c->key);
        xml_etag(&xml, out->etag);
        xml_close(&xml, "PostResponse");
    }
    respond_begin(c, (int)status);
    respond_etag(c, out->etag);
    respond_header(c, "x-amz-version-id", out->version);
    respond_header(c, "Location", to.len ? to : where);
    if (xml.len)
        respond_header(c, "Content-Type", STR("application/xml"));
    c->begun = true;
    int code = http_send(c->http, buf_str(&xml));
    buf_release(&xml);
    return code;
}

int op_post_object(struct call *c, struct err *err)
{
    const struct http_head *head = c->head;
    struct post *p = arena_new(c->a, struct post);
    struct put_result out = {0};
    int code = p ? open_form(c, p, err) : err_code(err, ERR_NO_MEMORY);

    if (code == 0)
        code = take_fields(c, p, err);
    if (code == 0)
        code = call_need(c, &c->target, S3_ACTION_PUT_OBJECT, c->key, NULL, err);
    if (code == 0)
        code = store_file(c, p, &out, err);
    if (p && p->open)
        form_close(&p->form);
    c->head = head;
    return code < 0 ? code : answer(c, p, &out);
}
