/* PostObject: an upload by a browser's form, whose fields stand for the headers of a PUT. */
#include "s3/gateway/bucket_name.h"
#include "s3/gateway/form.h"
#include "s3/gateway/forward.h"
#include "meta/tagging.h"

/* A reader that counts the bytes of the request's body, so that the file's length can be computed
 * before the file is read. */
struct counted {
    struct reader reader;
    struct reader *inner;
    uint64_t count;
};

struct post {
    struct counted raw;
    struct form form;
    struct form_result result;
    struct put_body body;
    struct object_meta meta; /* meta of the object that was stored here, for the answer */
    struct identity nobody;  /* empty: the file's bytes have no signature to check, because a form's
                                signature covers only its policy */
    struct http_head head;   /* head of the PUT that the form stands for */
    bool open;
};

/* Fields whose name differs from that of the header that they stand for. */
static const struct {
    const char *field, *header;
} renamed[] = {
    {"acl", "x-amz-acl"},
};

/* Fields that do not stand for a header of a PUT. Every other field does. */
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

static int counted_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct counted *c = container_of(r, struct counted, reader);
    int code = reader_read(c->inner, to, len, got, err);

    c->count += *got;
    return code;
}

static const struct reader_ops counted_ops = {.read = counted_read};

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

static int take_fields(struct call *c, struct post *p, struct err *err)
{
    p->head = *c->head;
    p->head.header_count = 0;
    for (size_t i = 0; i < p->form.field_count; i++) {
        const struct form_field *f = &p->form.fields[i];
        if (!is_header(f->name))
            continue;
        if (!http_field_is_valid(f->name, f->value))
            return err_set(err, S3_INVALID_ARGUMENT,
                           "The field \"" STR_FMT "\" of the form cannot be a header.",
                           STR_ARG(str_head(f->name, 64)));
        p->head.headers[p->head.header_count++] =
            (struct http_header){header_name(f->name), f->value};
    }
    c->head = &p->head;
    return 0;
}

/* Reads the field "tagging" into c->new_tags, in the form of x-amz-tagging; NULL p: the form has no
 * such field. */
static int post_read_tags(struct call *c, struct post *p, struct err *err)
{
    struct str xml = form_field(&p->form, "tagging");
    struct tag_set set;
    int code;

    if (!xml.len)
        return 0;
    code = tagging_read(&set, c->a, xml, TAGS_OF_OBJECT, err);
    if (code == 0)
        c->new_tags = tagging_text(c->a, &set);
    return code;
}

/* Reads the fields of the form: who signed it, and which object it wants to put. */
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
    p->raw = (struct counted){.reader.ops = &counted_ops, .inner = http_request_body(c->http)};
    code = form_open(&p->form, c->a, &p->raw.reader, http_header(c->head, "content-type"), err);
    if (code < 0)
        return code;
    p->open = true;
    code = form_check(&p->result, &p->form, &o, err);
    if (code < 0)
        return code;
    call_be(c, p->result.user);
    c->auth.kind = p->result.kind;
    c->auth.signed_ms = p->result.signed_ms;
    c->auth.payload_hash = STR_EMPTY; /* the file is not signed */
    c->key = p->result.key;
    if (c->user)
        http_request_know(c->http);
    return object_key_check(c->key, c->g->o.routes, c->bucket_name, err);
}

static int store_file(struct call *c, struct post *p, struct put_result *out, struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct put_options o = {.verify = put_body_verify, .ctx = &p->body};
    struct payload_options said = {.auth = &p->nobody, .content_length = UINT64_MAX};
    int code = checksum_check_names(c, err);

    if (code == 0)
        code = meta_from_request(c, &o.meta, err);
    if (code == 0)
        code = meta_common(c, &o.meta, err);
    if (code == 0 && c->new_tags.p)
        code = call_need_tagging(c, err);
    if (c->new_tags.p)
        o.meta.tags = c->new_tags;
    if (code == 0)
        code = encrypt_new(c, NULL, &o, err);
    said.otherwise = sse_checksum(c->encryption.kind);
    if (code == 0)
        code = put_body_init(&p->body, c, &p->form.file, &said, &o, err);
    if (code < 0)
        return code;
    code = call_note(c, S3_EVENT_CREATED_POST, c->key, &o.note, err);
    if (code == 0)
        code = b->ops->put(b, c->a, c->key, &p->body.payload.reader, UINT64_MAX, &o, out, err);
    if (code == 0)
        call_told(c);
    put_body_close(&p->body);
    p->meta = o.meta;
    return code;
}

static struct str post_redirect(struct call *c, const struct post *p, const struct put_result *out)
{
    struct str to = p->result.success_redirect;
    struct buf text = BUF_INIT(HTTP_MAX_HEAD);

    if (!http_field_is_valid(STR("Location"), to) ||
        !(str_starts(to, STR("http://")) || str_starts(to, STR("https://"))))
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

static struct str post_location(struct call *c, const struct str host)
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

static int post_answer(struct call *c, const struct post *p, const struct put_result *out)
{
    struct str to = post_redirect(c, p, out),
               where = post_location(c, http_header(c->head, "host"));
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
    respond_new_version(c, out->version);
    respond_encryption(c);
    respond_header(c, "Location", to.len ? to : where);
    respond_put_expiration(c, out, &p->meta);
    if (xml.len)
        respond_header(c, "Content-Type", STR("application/xml"));
    c->begun = true;
    int code = http_send(c->http, buf_str(&xml));
    buf_release(&xml);
    return code;
}

/* --- to a remote storage --- */

struct post_forward {
    struct forward_body body;
    struct forward_request request;
    struct http_header headers[FORWARD_HEADERS_MAX];
};

/* Is `name` a header that PutObject knows? Other fields are for the page that has the form. A copy
 * source would turn the request into a CopyObject, which the form's policy does not allow. */
static bool is_of_put(struct str name)
{
    if (str_ieq(str_head(name, 17), STR("x-amz-copy-source")))
        return false;
    return str_ieq(str_head(name, 6), STR("x-amz-")) ||
           str_ieq(str_head(name, 8), STR("content-")) || str_ieq(name, STR("cache-control")) ||
           str_ieq(name, STR("expires"));
}

/* Makes the head of the PUT that is sent instead of the form. */
static void as_put(struct call *c, struct post *p)
{
    struct http_head *h = &p->head;
    size_t kept = 0;

    for (size_t i = 0; i < h->header_count; i++)
        if (is_of_put(h->headers[i].name))
            h->headers[kept++] = h->headers[i];
    if (c->new_tags.p && kept < HTTP_MAX_HEADERS)
        h->headers[kept++] = (struct http_header){STR("x-amz-tagging"), c->new_tags};
    h->header_count = kept;
    h->method = HTTP_PUT;
    h->method_text = STR("PUT");
    c->query_count = 0;
}

/* Returns the largest number of bytes that the file can have: the rest of the body without the
 * boundary behind the file and the end of the form ("--\r\n"). */
static uint64_t file_bound(const struct call *c, const struct post *p)
{
    uint64_t rest = http_request_length(c->http) - p->raw.count + (p->form.end - p->form.start);
    uint64_t behind = p->form.delimiter_len + 4;

    return rest > behind ? rest - behind : 0;
}

static int post_send_file(struct call *c, struct post *p, struct exchange **e, struct err *err)
{
    struct post_forward *f = arena_new(c->a, struct post_forward);
    int code;

    if (!f)
        return err_code(err, ERR_NO_MEMORY);
    as_put(c, p);
    code = forward_body_of(&f->body, c, &p->form.file, file_bound(c, p), err);
    if (code == 0)
        code = forward_describe(c, &f->body, &f->request, f->headers, err);
    if (code == 0)
        code = forward_send(c->target.at.storage, &f->request, &f->body, e, err);
    forward_body_close(&f->body);
    return code;
}

static void result_of(const struct http_head *head, struct put_result *out)
{
    struct str etag = http_header(head, "etag");

    if (etag.len >= 2 && etag.p[0] == '"' && etag.p[etag.len - 1] == '"')
        etag = str_n(etag.p + 1, etag.len - 2);
    out->etag = etag;
    out->version = http_header(head, "x-amz-version-id");
}

static int post_raw(struct call *c, struct post *p, const struct http_head *head, struct err *err)
{
    struct put_result out = {0};
    struct exchange *e = NULL;
    int code = call_capture(c, NULL, 0, err);

    if (code < 0)
        return code;
    struct err late = {0};
    code = post_send_file(c, p, &e, err);
    int told = call_captured(c, forward_outcome(code, e), code == 0 ? err : &late);
    if (code == 0)
        code = told;
    c->head = head;
    c->target.info.name = c->bucket_name;
    if (code == 0 && exchange_head(e)->status >= 300) {
        code = forward_answer(c, e, err);
    } else if (code == 0) {
        result_of(exchange_head(e), &out);
        code = post_answer(c, p, &out);
    }
    exchange_close(e);
    return code;
}

static int post_here(struct call *c, struct post *p, const struct http_head *head, struct err *err)
{
    struct put_result out = {0};
    int code = call_open(c, &c->target, c->bucket_name, err);

    if (code == 0)
        code = call_need(c, &c->target, S3_ACTION_PUT_OBJECT, c->key, NULL, err);
    if (code == 0)
        code = call_capture(c, NULL, 0, err);
    if (code == 0)
        code = store_file(c, p, &out, err);
    c->head = head;
    return code < 0 ? code : post_answer(c, p, &out);
}

/* Waits for the first bytes of the form, without a thread. Who asks is known only when the fields
 * are read, so until then the request is anonymous, and no byte is asked for unless the bucket
 * exists. If weir has remote storages, this function does not check that the bucket exists, because
 * the bucket may be on a storage that only the signer's route leads to. */
static int await_form(struct call *c, struct err *err)
{
    bool is_form = form_is_type(http_header(c->head, "content-type"));
    int code = is_form ? 0 : s3_fail(err, S3_REQUEST_IS_NOT_MULTI_PART_CONTENT);

    if (code == 0 && !routes_any_remote(c->g->o.routes)) {
        struct route_ask ask = {.bucket = c->bucket_name};
        code = call_locate(c, &c->target, &ask, err);
        if (code == 0 && c->target.at.kind == TARGET_NONE)
            code = err_code(err, ERR_NO_BUCKET);
        call_close(&c->target);
    }
    return code < 0 ? code : http_await_body(c->http, FORM_BUFFER);
}

/* Finds the target of the object that the form's fields name. */
static int post_find_object(struct call *c, struct err *err)
{
    c->level = LEVEL_OBJECT;
    int code = call_resolve(c, NULL, err);
    c->level = LEVEL_BUCKET;
    return code;
}

int op_post_object(struct call *c, struct err *err)
{
    const struct http_head *head = c->head;
    struct post *p = arena_new(c->a, struct post);
    int code = p ? await_form(c, err) : err_code(err, ERR_NO_MEMORY);

    if (code == 0)
        code = open_form(c, p, err);
    if (code == 0)
        code = take_fields(c, p, err);
    if (code == 0)
        code = post_read_tags(c, p, err);
    if (code == 0)
        code = post_find_object(c, err);
    if (code == 0)
        code = c->target.at.kind == TARGET_RAW ? post_raw(c, p, head, err)
                                               : post_here(c, p, head, err);
    if (p && p->open)
        form_close(&p->form);
    c->head = head;
    return code;
}
