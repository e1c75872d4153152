/* PutObject and DeleteObject, and the body of a request as a storage reads it. */
#include "s3/gateway/gateway_int.h"

struct put {
    struct put_body body;
    struct object_checksum checksum;
    struct object_meta meta; /* meta for the answer */
};

int put_body_init(struct put_body *b, struct call *c, struct reader *from,
                  struct payload_options *o, struct put_options *put, struct err *err)
{
    int code;

    o->headers = c->head->headers;
    o->header_count = c->head->header_count;
    o->md5_elsewhere = true;
    b->a = c->a;
    code = payload_init(&b->payload, from, o, err);
    if (code < 0)
        return code;
    b->open = true;
    put->md5 = b->md5;
    return 0;
}

int put_body_open(struct put_body *b, struct call *c, enum digest_kind otherwise,
                  struct put_options *put, struct err *err)
{
    struct payload_options o = {
        .auth = &c->auth, .content_length = http_request_length(c->http), .otherwise = otherwise};
    int code = put_body_init(b, c, http_request_body(c->http), &o, put, err);

    if (code < 0)
        return code;
    b->payload.max = CALL_PUT_MAX;
    if (b->payload.length != UINT64_MAX && b->payload.length > CALL_PUT_MAX)
        return s3_fail(err, S3_ENTITY_TOO_LARGE);
    return 0;
}

void put_body_close(struct put_body *b)
{
    if (b->open)
        payload_release(&b->payload);
    b->open = false;
}

int put_body_verify(void *ctx, struct object_meta *meta, struct err *err)
{
    struct put_body *b = ctx;
    struct payload *p = &b->payload;
    int code = payload_verify(p, err);

    if (code == 0)
        code = payload_check_md5(p, b->md5, err);
    if (code < 0 || (!p->has_checksum && !p->makes_checksum))
        return code;
    const struct digest_value *value = payload_digest(p, p->checksum);
    BUG_ON(!value);
    meta->checksum = (struct object_checksum){
        .type = CHECKSUM_FULL_OBJECT, .kind = p->checksum, .value = digest_text(b->a, value)};
    return arena_error(b->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Verifies the body, and keeps its checksum for the answer, because the storage has only a copy of
 * the meta. */
static int verify_and_tell(void *ctx, struct object_meta *meta, struct err *err)
{
    struct put *put = ctx;
    int code = put_body_verify(&put->body, meta, err);

    put->checksum = meta->checksum;
    return code;
}

static int object_put(struct call *c, struct put *put, struct put_result *out, struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct put_options o = {.verify = verify_and_tell, .ctx = put};
    int code = conditions_read(c, "", &o.conditions, err);

    if (code == 0)
        code = meta_from_request(c, &o.meta, err);
    if (code == 0)
        code = meta_common(c, &o.meta, err);
    if (code == 0)
        code = encrypt_new(c, NULL, &o, err);
    if (code == 0)
        code = put_body_open(&put->body, c, sse_checksum(c->encryption.kind), &o, err);
    if (code == 0 && c->target.info.notifies)
        code = call_note(c, S3_EVENT_CREATED_PUT, c->key, &o.note, err);
    if (code == 0)
        code = b->ops->put(b, c->a, c->key, &put->body.payload.reader, put->body.payload.length, &o,
                           out, err);
    if (code == 0 && o.note)
        call_told(c);
    put_body_close(&put->body);
    put->meta = o.meta;
    return code;
}

int op_put_object(struct call *c, struct err *err)
{
    struct put *p = arena_new(c->a, struct put);
    struct put_result out = {0};
    int code = p ? object_put(c, p, &out, err) : err_code(err, ERR_NO_MEMORY);

    if (code < 0)
        return code;
    c->has_size = true;
    c->size = out.size;
    respond_begin(c, 200);
    respond_etag(c, out.etag);
    respond_new_version(c, out.version);
    respond_checksum(c, &p->checksum);
    respond_encryption(c);
    respond_put_expiration(c, &out, &p->meta);
    c->begun = true;
    return http_send(c->http, STR_EMPTY);
}

int op_delete_object(struct call *c, struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct remove_options o = {.version = c->version};
    struct remove_result out = {0};
    int code = conditions_read(c, "", &o.conditions, err);

    if (code == 0)
        code = removal_conditions_read(http_header(c->head, "x-amz-if-match-last-modified-time"),
                                       http_header(c->head, "x-amz-if-match-size"), &o.conditions,
                                       err);
    if (str_ieq(http_header(c->head, "x-amz-bypass-governance-retention"), STR("true")))
        o.bypass_governance =
            call_may(c, &c->target, S3_ACTION_BYPASS_GOVERNANCE_RETENTION, c->key, NULL);
    if (code == 0)
        code = call_note(c, S3_EVENT_REMOVED_DELETE, c->key, &o.note, err);
    if (code == 0)
        code = b->ops->remove(b, c->a, c->key, &o, &out, err);
    if (code == 0)
        call_told(c);
    if (code == 0 && !o.version.len && !o.conditions.if_match.len)
        code = call_removed(c, &c->key, 1, err);
    if (code < 0)
        return code;
    respond_begin(c, 204);
    respond_header(c, "x-amz-version-id", out.version);
    if (out.is_marker)
        respond_header(c, "x-amz-delete-marker", STR("true"));
    c->begun = true;
    return http_send(c->http, STR_EMPTY);
}
