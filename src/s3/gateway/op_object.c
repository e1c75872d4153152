/* Reads objects: GetObject and HeadObject, which run on fast workers (http/server.h), where nothing
 * may wait. */
#include "s3/gateway/gateway_int.h"

#include <unistd.h>

/* Limit on the bytes of a body that is sent with the head in one call. */
enum { SMALL_BODY = 64 * 1024 };

/* Checks the parameters that set headers of the answer. */
static int check_overrides(const struct call *c, struct err *err)
{
    for (size_t i = 0; i < c->query_count; i++) {
        const struct call_param *p = &c->query[i];
        if (!str_starts(p->name, STR("response-")))
            continue;
        if (!c->user)
            return err_set(err, S3_INVALID_REQUEST,
                           "Request specific response headers cannot be used for anonymous GET "
                           "requests.");
        if (!http_field_is_valid(p->name, p->value))
            return err_set(err, S3_INVALID_ARGUMENT,
                           "The value of " STR_FMT " cannot be that of a header.",
                           STR_ARG(str_head(p->name, 64)));
    }
    return 0;
}

/* Answers that the object is missing, with headers that say whether there is a delete marker. */
static int respond_marker(struct call *c, const struct object_info *info, struct err *err)
{
    int code = c->version.len ? s3_fail(err, S3_METHOD_NOT_ALLOWED) : s3_fail(err, S3_NO_SUCH_KEY);
    struct buf out = BUF_INIT(CALL_OUT_MAX);
    struct str id = str_z(http_request_id(c->http));

    c->error = code;
    s3_error_write(&out, &(struct s3_error_body){.code = code,
                                                 .key = c->key,
                                                 .resource = c->head->path,
                                                 .request_id = id,
                                                 .host_id = id});
    respond_begin(c, s3_code_status(code));
    respond_header(c, "x-amz-delete-marker", info->is_marker ? STR("true") : STR("false"));
    if (info->is_marker)
        respond_header(c, "x-amz-version-id", info->version);
    if (c->version.len) {
        respond_header(c, "Allow", STR("DELETE"));
        respond_time(c, "Last-Modified", info->modified_ms);
    }
    respond_header(c, "Content-Type", STR("application/xml"));
    code = http_send(c->http, buf_str(&out));
    c->begun = code != ERR_AGAIN;
    buf_release(&out);
    return code;
}

/* Answers 304, with the headers that a cache needs (RFC 9110 section 15.4.5). */
static int respond_not_modified(struct call *c, const struct object_info *info)
{
    respond_begin(c, 304);
    respond_etag(c, info->etag);
    respond_time(c, "Last-Modified", info->modified_ms);
    if (c->target.info.versions != VERSIONS_NEVER)
        respond_header(c, "x-amz-version-id", info->version);
    c->begun = true;
    return http_send(c->http, STR_EMPTY);
}

/* Decides about access to the object that was looked for. Returns the denial, or else `code`, the
 * result of looking for the object. */
static int object_judge(struct call *c, const struct get_result *got, int code, struct err *err)
{
    /* If only a condition failed, the info of the object is filled in all the same: it has a key or
     * an ETag. An object of a lake's repository may have no ETag. */
    bool there = code != ERR_NOT_FOUND && (code == 0 || got->info.key.len || got->info.etag.len);
    enum s3_action action = call_action(c);
    int may = call_need(c, &c->target, action, c->key, there ? &got->info : NULL, err);

    /* A missing object has no access list. Users who may list the bucket get the answer that the
     * object is missing. */
    if (code == ERR_NOT_FOUND && (!got->info.is_marker || c->is_website))
        return call_absent(c, &c->target, c->key, c->version.len > 0, err);
    return may < 0 ? may : code;
}

static int respond_failure(struct call *c, const struct get_result *got, int code, struct err *err)
{
    if (code == ERR_NOT_FOUND || (code == S3_NO_SUCH_KEY && !c->is_website))
        return respond_marker(c, &got->info, err);
    if (code == ERR_NOT_MODIFIED)
        return respond_not_modified(c, &got->info);
    if (code == ERR_RANGE && call_param(c, "partNumber").p)
        return s3_fail(err, S3_INVALID_PART);
    return code;
}

/* Returns the object's info for the answer. A part has its own checksum, with the type of the
 * object's checksum. */
static struct object_info told_info(const struct get_result *got, bool part)
{
    struct object_info info = got->info;
    struct object_checksum whole = info.meta.checksum;

    if (!part)
        return info;
    info.meta.checksum = got->part_checksum;
    if (got->part_checksum.type != CHECKSUM_NONE && whole.type != CHECKSUM_NONE)
        info.meta.checksum.type = whole.type;
    return info;
}

static void respond_head(struct call *c, const struct get_result *got)
{
    bool part = call_param(c, "partNumber").p && got->info.part_count;
    struct object_info info = told_info(got, part);

    respond_begin(c, c->status ? c->status : got->partial ? 206 : 200);
    respond_object(c, &info);
    if (got->partial && got->len)
        respond_header(c, "Content-Range",
                       arena_fmt(c->a, "bytes %llu-%llu/%llu", (unsigned long long)got->first,
                                 (unsigned long long)(got->first + got->len - 1),
                                 (unsigned long long)info.size));
    if (part)
        http_respond_header_u64(c->http, STR("x-amz-mp-parts-count"), info.part_count);
}

static int object_send_bytes(struct call *c, const struct get_result *got, struct str bytes)
{
    respond_head(c, got);
    int code = http_send(c->http, bytes);
    c->begun = code != ERR_AGAIN;
    return code;
}

static int send_small(struct call *c, const struct get_result *got, struct err *err)
{
    struct str bytes;

    if (reader_as_bytes(got->body, &bytes) && bytes.len == got->len)
        return object_send_bytes(c, got, bytes);
    char *p = arena_alloc(c->a, (size_t)got->len + 1);
    int code =
        p ? reader_read_full(got->body, p, (size_t)got->len, err) : err_code(err, ERR_NO_MEMORY);

    return code < 0 ? code : object_send_bytes(c, got, str_n(p, (size_t)got->len));
}

static int send_body(struct call *c, struct get_result *got, struct err *err)
{
    struct file_range file;
    int code = encrypt_unlock(c, got, err);

    if (code < 0)
        return code;
    if (reader_as_file(got->body, &file)) {
        file.fd = dup(file.fd); /* a copy, because the server closes it when all is sent */
        if (file.fd < 0)
            return err_code(err, ERR_IO);
        respond_head(c, got);
        c->begun = true;
        return http_send_file(c->http, file);
    }
    /* A small body is sent at once if its bytes lie together and can be read without waiting. */
    bool local = got->unlock ? got->at_hand : got->info.part_count == 0;
    if (got->len <= SMALL_BODY && (local || http_may_block(c->http)))
        return send_small(c, got, err);
    if (!http_may_block(c->http))
        return ERR_AGAIN;
    respond_head(c, got);
    code = http_send_reader(c->http, got->body, got->len);
    c->begun = code != ERR_BUSY; /* after ERR_BUSY nothing was sent */
    return code;
}

static int object_read_asked(struct call *c, struct object_conditions *conditions,
                             struct object_range *range, struct err *err)
{
    int code = 0;

    if (c->status) { /* an error page is sent as a whole */
        *conditions = (struct object_conditions){0};
        *range = (struct object_range){.kind = RANGE_ALL};
        return 0;
    }
    code = conditions_read(c, "", conditions, err);
    if (code == 0 && sse_managed_given(c->head))
        code = err_set(err, S3_INVALID_ARGUMENT,
                       "x-amz-server-side-encryption header is not supported for this operation.");
    if (code == 0)
        code = check_overrides(c, err);
    return code < 0 ? code : range_read(c, range, err);
}

/* Whether the object is read by get_now() or head_now(). */
static bool object_is_read_now(const struct call *c)
{
    return c->target.bucket->ops->get_now && !http_may_block(c->http);
}

static int object_open_body(struct call *c, const struct object_conditions *conditions,
                            const struct object_range *range, struct get_result *got,
                            struct err *err)
{
    struct bucket *b = c->target.bucket;

    return (object_is_read_now(c) ? b->ops->get_now : b->ops->get)(b, c->a, c->key, c->version,
                                                                   conditions, range, got, err);
}

static int object_look_up(struct call *c, const struct object_conditions *conditions,
                          struct get_result *got, struct err *err)
{
    struct bucket *b = c->target.bucket;

    return (object_is_read_now(c) ? b->ops->head_now : b->ops->head)(b, c->a, c->key, c->version,
                                                                     conditions, got, err);
}

int op_get_object(struct call *c, struct err *err)
{
    struct object_conditions conditions;
    struct object_range range;
    struct get_result got = {0};
    int code = object_read_asked(c, &conditions, &range, err);

    if (code < 0)
        return code;
    code = object_open_body(c, &conditions, &range, &got, err);
    if (code == ERR_AGAIN)
        return code;
    int judged = object_judge(c, &got, code, err);
    if (judged < 0)
        judged = respond_failure(c, &got, judged, err);
    else
        judged = send_body(c, &got, err);
    reader_close(got.body);
    return judged;
}

/* Answers HEAD, with the length of the body that is not sent. */
static int send_head(struct call *c, struct get_result *got)
{
    respond_head(c, got);
    http_respond_header_u64(c->http, STR("Content-Length"), got->len);
    c->begun = true;
    return http_send(c->http, STR_EMPTY);
}

int op_head_object(struct call *c, struct err *err)
{
    struct object_conditions conditions;
    struct object_range range;
    struct get_result got = {0};
    int code = object_read_asked(c, &conditions, &range, err);

    if (code < 0)
        return code;
    if (range.kind == RANGE_ALL)
        code = object_look_up(c, &conditions, &got, err);
    else
        code = object_open_body(c, &conditions, &range, &got, err);
    reader_close(got.body);
    got.body = NULL;
    if (code == ERR_AGAIN)
        return code;
    int judged = object_judge(c, &got, code, err);
    if (judged < 0)
        return respond_failure(c, &got, judged, err);
    judged = encrypt_check(c, &got.info, err);
    return judged < 0 ? judged : send_head(c, &got);
}
