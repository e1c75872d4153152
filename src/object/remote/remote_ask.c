/* One request to the peer for a call of struct bucket_ops: builds it, sends it, and judges the
 * answer (docs/remote-storage.md, M1). */
#include "base/clock.h"
#include "object/remote/remote_int.h"
#include "sign/base64.h"

enum {
    SKEW_MAX_S = 15 * 60,
    NAMED_MAX = 128, /* most bytes of a path, and of a query, that an error's text quotes */
};

/* Which error code (`means`) an S3 code of the peer becomes. The answer must have this `status` too
 * (0: any status). In particular, an answer counts as "absent" only if both its code and its status
 * say so (docs/remote-storage.md, M1). */
static const struct {
    const char *code;
    int status, means;
    bool verbatim; /* the code is the error's text, as bucket.h promises */
} meanings[] = {
    {"NoSuchKey", 404, ERR_NOT_FOUND},
    {"NoSuchVersion", 404, ERR_NOT_FOUND},
    {"NoSuchUpload", 404, ERR_NOT_FOUND},
    {"NoSuchBucket", 404, ERR_NO_BUCKET},
    {"NoSuchBucketPolicy", 404, ERR_NOT_FOUND},
    {"NoSuchConfiguration", 404, ERR_NOT_FOUND},
    {"NoSuchCORSConfiguration", 404, ERR_NOT_FOUND},
    {"NoSuchLifecycleConfiguration", 404, ERR_NOT_FOUND},
    {"NoSuchObjectLockConfiguration", 404, ERR_NOT_FOUND},
    {"NoSuchPublicAccessBlockConfiguration", 404, ERR_NOT_FOUND},
    {"NoSuchTagSet", 404, ERR_NOT_FOUND},
    {"NoSuchWebsiteConfiguration", 404, ERR_NOT_FOUND},
    {"ObjectLockConfigurationNotFoundError", 404, ERR_NOT_FOUND},
    {"OwnershipControlsNotFoundError", 404, ERR_NOT_FOUND},
    {"ReplicationConfigurationNotFoundError", 404, ERR_NOT_FOUND},
    {"ServerSideEncryptionConfigurationNotFoundError", 404, ERR_NOT_FOUND},
    {"BucketAlreadyExists", 409, ERR_EXISTS},
    {"BucketAlreadyOwnedByYou", 409, ERR_EXISTS},
    {"EntityTooLarge", 0, ERR_TOO_LARGE},
    {"KeyTooLongError", 0, ERR_INVALID},
    {"InvalidPart", 0, ERR_INVALID, true},
    {"InvalidPartOrder", 0, ERR_INVALID, true},
    {"EntityTooSmall", 0, ERR_INVALID, true},
    {"PreconditionFailed", 0, ERR_PRECONDITION},
    {"InvalidRange", 0, ERR_RANGE},
    {"InvalidPartNumber", 0, ERR_RANGE},
    {"RequestTimeout", 0, ERR_TIMEOUT},
    {"SlowDown", 0, ERR_BUSY},
    {"InternalError", 0, ERR_PEER},
    {"InsufficientStorage", 0, ERR_NO_SPACE},
    {"QuotaExceeded", 0, ERR_NO_SPACE},
    {"NotImplemented", 0, ERR_UNSUPPORTED},
};

static const struct {
    int status, means;
    bool bare; /* applies also to answers without an S3 code, such as those to HEAD */
} statuses[] = {
    {304, ERR_NOT_MODIFIED, true}, {400, ERR_INVALID, false},    {401, ERR_DENIED, true},
    {403, ERR_DENIED, true},       {405, ERR_UNSUPPORTED, true}, {409, ERR_CONFLICT, false},
    {412, ERR_PRECONDITION, true}, {416, ERR_RANGE, true},       {501, ERR_UNSUPPORTED, true},
    {503, ERR_UNAVAILABLE, true},
};

/* --- building a request --- */

void ask_init(struct ask *q, struct remote *r, struct str user, const char *method)
{
    memset(q, 0, sizeof(*q));
    q->remote = r;
    q->a = ARENA_INIT(MIB);
    q->path = BUF_INIT(HTTP_MAX_HEAD);
    q->query = BUF_INIT(HTTP_MAX_HEAD);
    q->request = (struct forward_request){.user = user, .method = str_z(method)};
    q->request.idempotent =
        method[0] == 'G' || method[0] == 'H' || method[0] == 'D'; /* GET, HEAD, DELETE */
    buf_append_char(&q->path, '/');
}

void ask_init_bucket(struct ask *q, struct remote_bucket *b, const char *method, struct str key)
{
    ask_init(q, b->remote, b->user, method);
    ask_name(q, b->bucket.name, key);
}

void ask_name(struct ask *q, struct str bucket, struct str key)
{
    url_encode(&q->path, bucket, false);
    if (key.len)
        buf_append_char(&q->path, '/');
    url_encode(&q->path, key, true);
}

void ask_release(struct ask *q)
{
    exchange_close(q->exchange);
    buf_release(&q->path);
    buf_release(&q->query);
    arena_release(&q->a);
}

void ask_param(struct ask *q, const char *name, struct str value)
{
    if (q->query.len)
        buf_append_char(&q->query, '&');
    buf_append_z(&q->query, name);
    if (!value.p)
        return;
    buf_append_char(&q->query, '=');
    url_encode(&q->query, value, false);
}

void ask_param_u64(struct ask *q, const char *name, uint64_t value)
{
    ask_param(q, name, arena_fmt(&q->a, "%llu", (unsigned long long)value));
}

void ask_param_given(struct ask *q, const char *name, struct str value)
{
    if (value.len)
        ask_param(q, name, value);
}

void ask_header(struct ask *q, const char *name, struct str value)
{
    if (value.len == 0)
        return;
    q->too_many |= q->request.header_count == ARRAY_SIZE(q->headers);
    if (!q->too_many)
        q->headers[q->request.header_count++] = (struct http_header){str_z(name), value};
}

void ask_time(struct ask *q, const char *name, int64_t ms)
{
    char text[CLOCK_HTTP_LEN + 1];

    if (ms == 0)
        return;
    clock_http(ms, text);
    ask_header(q, name, arena_str(&q->a, str_z(text)));
}

void ask_body(struct ask *q, struct reader *body, uint64_t len)
{
    q->request.body = body;
    q->request.body_len = len;
}

void ask_bytes(struct ask *q, struct str bytes)
{
    struct digest_value d;

    str_reader_init(&q->document, bytes);
    ask_body(q, &q->document.reader, bytes.len);
    if (bytes.len > REMOTE_GATHER_MAX)
        return;
    digest_of(DIGEST_SHA256, bytes, &d);
    q->request.sha256 = arena_hex(&q->a, d.bytes, d.len);
}

void ask_document(struct ask *q, struct str text)
{
    struct buf md5 = BUF_INIT(64);
    struct digest_value d;

    ask_bytes(q, text);
    digest_of(DIGEST_MD5, text, &d); /* some peers demand Content-MD5 beside the signed hash */
    base64_encode(&md5, str_n(d.bytes, d.len));
    ask_header(q, "Content-MD5", arena_str(&q->a, buf_str(&md5)));
    buf_release(&md5);
}

/* --- judging an answer --- */

static int answer_fail(struct err *err, int means, int status, struct str code, struct str message)
{
    return err_set(err, means, "the storage answers %d" STR_FMT STR_FMT "%s" STR_FMT, status,
                   STR_ARG(code.len ? STR(" ") : STR_EMPTY), STR_ARG(str_head(code, 64)),
                   message.len ? ": " : "", STR_ARG(str_head(message, 256)));
}

int remote_error_of(int status, struct str code, struct str message, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(meanings); i++) {
        if (!str_eq(code, str_z(meanings[i].code)) ||
            (meanings[i].status && meanings[i].status != status))
            continue;
        if (meanings[i].verbatim)
            return err_set(err, meanings[i].means, "%s", meanings[i].code);
        return answer_fail(err, meanings[i].means, status, code, message);
    }
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        if (statuses[i].status == status && (statuses[i].bare || code.len))
            return answer_fail(err, statuses[i].means, status, code, message);
    return answer_fail(err, ERR_PEER, status, code, message);
}

static bool is_verbatim(struct str code)
{
    for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
        if (meanings[i].verbatim && str_eq(code, str_z(meanings[i].code)))
            return true;
    return false;
}

/* Returns a text that says how far the clocks of weir and of the peer differ; used for answers to
 * HEAD, which give no reason. S3 refuses requests whose clock is wrong by more than a quarter of an
 * hour. Empty: the clocks agree, or the answer has no date. */
static struct str skew_of(struct ask *q)
{
    int64_t there;

    if (q->head->status != 403 || clock_parse_http(ask_answer(q, "date"), &there) < 0)
        return STR_EMPTY;
    long long seconds = (clock_wall_ms() - there) / MS_PER_S;
    return seconds > SKEW_MAX_S || seconds < -SKEW_MAX_S
               ? arena_fmt(&q->a, "this clock is %lld s ahead of its own", seconds)
               : STR_EMPTY;
}

/* Adds the storage, the request and the user to the error's message, because weir may have several
 * storages and users. */
static int name_request(const struct ask *q, int code, struct err *err)
{
    struct str path = str_head(buf_str(&q->path), NAMED_MAX);
    struct str query = str_head(buf_str(&q->query), NAMED_MAX);

    return err_wrap(err, code,
                    "storage " STR_FMT ", " STR_FMT " " STR_FMT "%s" STR_FMT " as %s" STR_FMT,
                    STR_ARG(q->remote->storage.name), STR_ARG(q->request.method), STR_ARG(path),
                    query.len ? "?" : "", STR_ARG(query), q->request.user.len ? "user " : "nobody",
                    STR_ARG(q->request.user));
}

/* Turns an answer that is not 2xx into an error. *verbatim: the error's text is an S3 code that
 * bucket.h promises. */
static int answer_judge(struct ask *q, bool *verbatim, struct err *err)
{
    struct buf text = BUF_INIT(REMOTE_ERROR_MAX);
    struct remote_error said = {0};

    /* If the document cannot be read, the status alone decides. */
    if (reader_read_all(exchange_body(q->exchange), &text, NULL) == 0 && text.len)
        said = remote_read_error(&q->a, buf_str(&text));
    q->error = arena_str(&q->a, said.code);
    if (!said.code.len)
        said.message = skew_of(q);
    int code = remote_error_of(q->head->status, said.code, said.message, err);
    *verbatim = is_verbatim(said.code);
    buf_release(&text);
    return code;
}

int ask_send(struct ask *q, struct err *err)
{
    int code = arena_error(&q->a);
    bool verbatim = false;

    if (code == 0 && q->too_many)
        code = err_set(err, ERR_TOO_LARGE, "too many headers for one request");
    if (code == 0 && (buf_error(&q->path) < 0 || buf_error(&q->query) < 0))
        code = err_set(err, ERR_TOO_LARGE, "the names are too long for one request");
    if (code < 0)
        return code;
    q->request.path = buf_str(&q->path);
    q->request.query = buf_str(&q->query);
    q->request.headers = q->headers;
    code = remote_forward(&q->remote->storage, &q->request, &q->exchange, err);
    if (code == 0) {
        q->head = exchange_head(q->exchange);
        if (q->head->status < 200 || q->head->status >= 300)
            code = answer_judge(q, &verbatim, err);
    }
    /* If reading the request's own body failed, the storage is not at fault, so the error's text
     * does not name the storage and the request. */
    bool own = verbatim || (!q->head && code == ERR_INVALID);
    return code < 0 && !own ? name_request(q, code, err) : code;
}

int ask_done(struct ask *q, struct err *err)
{
    int code = ask_send(q, err);

    ask_release(q);
    return code;
}

int ask_text(struct ask *q, struct arena *a, size_t max, struct str *out, struct err *err)
{
    struct buf text = BUF_INIT(max);
    int code = reader_read_all(exchange_body(q->exchange), &text, err);

    if (code == ERR_TOO_LARGE)
        code = err_set(err, ERR_PEER, "the storage's answer is too large");
    if (code == 0) {
        *out = arena_str(a, buf_str(&text));
        code = arena_error(a);
    }
    buf_release(&text);
    return code;
}

struct str ask_answer(const struct ask *q, const char *name)
{
    return q->head ? http_header(q->head, name) : STR_EMPTY;
}

bool ask_is_marker(const struct ask *q)
{
    return q->head && (q->head->status == 404 || q->head->status == 405) &&
           str_ieq(ask_answer(q, "x-amz-delete-marker"), STR("true"));
}
