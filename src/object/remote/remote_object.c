/* Objects: head, get, copy and remove. */
#include "base/clock.h"
#include "object/remote/remote_int.h"

#include <stdlib.h>

/* The arguments of a head or get, and the place for the answer. */
struct look {
    struct remote_bucket *b;
    struct arena *a;
    struct str key, version;
    struct get_result *out;
};

/* The body that a get returns; it owns the exchange. */
struct body {
    struct reader reader;
    struct exchange *exchange;
};

int remote_key_check(struct str key, struct err *err)
{
    if (key.len == 0 || key.len > OBJECT_KEY_MAX || str_chr(key, '\0') >= 0)
        return err_set(err, ERR_INVALID, "a key has 1 to %d bytes, none of them NUL",
                       OBJECT_KEY_MAX);
    return 0;
}

/* --- reading objects --- */

/* Reads the tags by another request, because the answer to HEAD or GET has only their number. */
static int look_read_tags(const struct look *l, const struct ask *answer, struct err *err)
{
    uint64_t count = 0;
    struct ask q;
    struct str text;

    if (str_u64(ask_answer(answer, "x-amz-tagging-count"), &count) < 0 || count == 0)
        return 0;
    ask_init_bucket(&q, l->b, "GET", l->key);
    ask_param(&q, "tagging", STR_EMPTY);
    ask_param_given(&q, "versionId", l->version);
    int code = ask_send(&q, err);
    if (code == 0)
        code = ask_text(&q, l->a, REMOTE_DOCUMENT_MAX, &text, err);
    if (code == 0)
        code = remote_read_tags(&l->out->info.meta.tags, l->a, text, err);
    ask_release(&q);
    return code;
}

/* Reads the range of a partial answer from its headers. */
static int read_range(struct get_result *out, const struct ask *q, struct err *err)
{
    struct str text = ask_answer(q, "Content-Range"), first, last, size;
    uint64_t end = 0;

    if (!str_starts(text, STR("bytes ")) || !str_cut(str_skip(text, 6), '/', &text, &size) ||
        !str_cut(text, '-', &first, &last) || str_u64(first, &out->first) < 0 ||
        str_u64(last, &end) < 0 || str_u64(size, &out->info.size) < 0 || end < out->first ||
        end >= out->info.size || end - out->first + 1 != out->len)
        return err_set(err, ERR_PEER, "the storage answers with another range");
    return 0;
}

static int look_read_answer(const struct look *l, const struct ask *q,
                            const struct object_range *range, struct err *err)
{
    struct get_result *out = l->out;
    bool partial = range && range->kind != RANGE_ALL;
    int code = remote_info_of(&out->info, l->a, q, l->key, err);

    out->info.is_latest = l->version.len == 0;
    out->len = out->info.size;
    out->partial = partial;
    if (code == 0 && q->head->status == 206)
        code = read_range(out, q, err);
    else if (code == 0 && partial && range->kind != RANGE_PART)
        code = err_set(err, ERR_PEER, "the storage answers without the range");
    return code < 0 ? code : look_read_tags(l, q, err);
}

static void ask_range(struct ask *q, const struct object_range *range)
{
    struct arena *a = &q->a;

    if (!range || range->kind == RANGE_ALL)
        return;
    if (range->kind == RANGE_PART)
        ask_param_u64(q, "partNumber", range->first);
    else if (range->kind == RANGE_SUFFIX)
        ask_header(q, "Range", arena_fmt(a, "bytes=-%llu", (unsigned long long)range->first));
    else if (range->last == UINT64_MAX)
        ask_header(q, "Range", arena_fmt(a, "bytes=%llu-", (unsigned long long)range->first));
    else
        ask_header(q, "Range",
                   arena_fmt(a, "bytes=%llu-%llu", (unsigned long long)range->first,
                             (unsigned long long)range->last));
}

static void ask_object(struct ask *q, const struct look *l, const char *method)
{
    ask_init_bucket(q, l->b, method, l->key);
    ask_param_given(q, "versionId", l->version);
    ask_header(q, "x-amz-checksum-mode", STR("ENABLED"));
    ask_header(q, "x-weir-tell", STR("acl"));
}

/* Fills in the version of a delete marker, and returns ERR_NOT_FOUND. */
static int found_marker(const struct look *l, const struct ask *q, struct err *err)
{
    struct str id = ask_answer(q, "x-amz-version-id");

    l->out->info = (struct object_info){.key = arena_str(l->a, l->key),
                                        .version = arena_str(l->a, id.len ? id : l->version),
                                        .is_marker = true,
                                        .is_latest = l->version.len == 0};
    return err_set(err, ERR_NOT_FOUND, "a delete marker");
}

/* Finds out by a GET of one byte what is absent: the key, the version or the bucket. The answer to
 * HEAD has no document that says so (docs/remote-storage.md, M1). */
static int why_absent(const struct look *l, struct err *err)
{
    struct ask q;

    ask_object(&q, l, "GET");
    ask_header(&q, "Range", STR("bytes=0-0"));
    int code = ask_send(&q, err);
    ask_release(&q);
    return code == 0 || code == ERR_RANGE
               ? err_set(err, ERR_CONFLICT, "the object changed while it was looked at")
               : code;
}

static int head_once(const struct look *l, const struct object_conditions *c, struct err *err)
{
    struct ask q;

    ask_object(&q, l, "HEAD");
    ask_conditions(&q, c);
    int code = ask_send(&q, err);
    if (code == 0)
        code = look_read_answer(l, &q, NULL, err);
    else if (ask_is_marker(&q))
        code = found_marker(l, &q, err);
    else if (q.head && (q.head->status == 404 || q.head->status == 400))
        code = why_absent(l, err);
    ask_release(&q);
    return code;
}

/* Fills in the info of an object for which the conditions did not hold. */
static void fill_info(struct look l)
{
    struct get_result now = {0}, *out = l.out;

    l.out = &now;
    if (head_once(&l, NULL, NULL) == 0)
        out->info = now.info;
}

int remote_head(struct bucket *bucket, struct arena *a, struct str key, struct str version,
                const struct object_conditions *c, struct get_result *out, struct err *err)
{
    struct look l = {remote_bucket_of(bucket), a, key, version, out};
    int code = remote_key_check(key, err);

    *out = (struct get_result){0};
    if (code == 0)
        code = head_once(&l, c, err);
    if (code == ERR_PRECONDITION || code == ERR_NOT_MODIFIED)
        fill_info(l);
    return code;
}

static int remote_body_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct body *b = container_of(r, struct body, reader);

    return reader_read(exchange_body(b->exchange), to, len, got, err);
}

static bool remote_body_as_socket(struct reader *r, int *fd, uint64_t *len)
{
    return reader_as_socket(exchange_body(container_of(r, struct body, reader)->exchange), fd, len);
}

static void remote_body_skip(struct reader *r, uint64_t n)
{
    reader_skip(exchange_body(container_of(r, struct body, reader)->exchange), n);
}

static void remote_body_close(struct reader *r)
{
    struct body *b = container_of(r, struct body, reader);

    exchange_close(b->exchange);
    free(b);
}

static const struct reader_ops body_ops = {
    .read = remote_body_read,
    .as_socket = remote_body_as_socket,
    .skip = remote_body_skip,
    .close = remote_body_close,
};

static struct reader *take_body(struct ask *q)
{
    struct body *b = xzalloc(sizeof(*b));

    *b = (struct body){.reader.ops = &body_ops, .exchange = q->exchange};
    q->exchange = NULL;
    q->head = NULL;
    return &b->reader;
}

static int get_once(const struct look *l, const struct object_conditions *c,
                    const struct object_range *range, struct err *err)
{
    struct ask q;

    ask_object(&q, l, "GET");
    ask_conditions(&q, c);
    ask_range(&q, range);
    int code = ask_send(&q, err);
    if (code == 0)
        code = look_read_answer(l, &q, range, err);
    else if (ask_is_marker(&q))
        code = found_marker(l, &q, err);
    if (code == 0)
        l->out->body = take_body(&q);
    ask_release(&q);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int remote_get(struct bucket *bucket, struct arena *a, struct str key, struct str version,
               const struct object_conditions *c, const struct object_range *range,
               struct get_result *out, struct err *err)
{
    struct look l = {remote_bucket_of(bucket), a, key, version, out};
    int code = remote_key_check(key, err);

    *out = (struct get_result){0};
    if (code == 0 && range && range->kind == RANGE_SUFFIX && range->first == 0) {
        code = head_once(&l, c, err); /* some peers do not understand "bytes=-0" */
        if (code == 0)
            code = err_code(err, ERR_RANGE);
    } else if (code == 0) {
        code = get_once(&l, c, range, err);
    }
    if (code == ERR_PRECONDITION || code == ERR_NOT_MODIFIED)
        fill_info(l);
    /* For a missing part AWS answers InvalidPartNumber, Ceph InvalidPart. */
    bool part = range && range->kind == RANGE_PART;
    return code == ERR_INVALID && part ? err_code(err, ERR_RANGE) : code;
}

/* --- copying objects --- */

void ask_copy_source(struct ask *q, struct bucket *from, const struct object_info *source)
{
    struct buf text = BUF_INIT(HTTP_MAX_LINE);

    buf_append_char(&text, '/');
    url_encode(&text, from->name, false);
    buf_append_char(&text, '/');
    url_encode(&text, source->key, true);
    /* A peer may not know the version "null" in a bucket that never kept versions. */
    if (source->version.len && !(source->is_latest && str_eq(source->version, STR("null")))) {
        buf_append_z(&text, "?versionId=");
        url_encode(&text, source->version, false);
    }
    ask_header(q, "x-amz-copy-source", arena_str(&q->a, buf_str(&text)));
    ask_header(q, "x-amz-copy-source-if-match",
               source->etag.len ? arena_fmt(&q->a, "\"" STR_FMT "\"", STR_ARG(source->etag))
                                : STR_EMPTY);
    buf_release(&text);
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int remote_copy(struct bucket *bucket, struct arena *a, struct str key, struct bucket *from,
                const struct object_info *source, const struct put_options *o,
                struct put_result *out, struct err *err)
{
    struct remote_bucket *b = remote_bucket_of(bucket);
    struct ask q;
    struct str text;
    int code = remote_key_check(key, err);

    if (code == 0)
        code = remote_meta_check(&o->meta, err);
    if (code < 0)
        return code;
    if (!remote_is_bucket_of(from, b->remote) || source->size > b->remote->put_max)
        return err_code(err, ERR_UNSUPPORTED);
    ask_init_bucket(&q, b, "PUT", key);
    ask_copy_source(&q, from, source);
    ask_header(&q, "x-amz-metadata-directive", STR("REPLACE"));
    ask_header(&q, "x-amz-tagging-directive", STR("REPLACE"));
    ask_meta(&q, &o->meta);
    ask_conditions(&q, &o->conditions);
    code = ask_send(&q, err);
    if (code == 0)
        code = ask_text(&q, a, REMOTE_DOCUMENT_MAX, &text, err);
    if (code == 0)
        code = remote_read_result(out, a, text, "CopyObjectResult", err);
    if (code == 0 && out->etag.len == 0)
        code = err_set(err, ERR_PEER, "the storage answers without an ETag");
    if (code == 0) {
        out->version = arena_str(a, ask_answer(&q, "x-amz-version-id"));
        out->size = source->size;
    }
    ask_release(&q);
    return code;
}

/* --- removing objects --- */

static bool has_conditions(const struct object_conditions *c)
{
    return c->if_match.len || c->if_none_match.len || c->if_modified_since_ms ||
           c->if_unmodified_since_ms || c->if_modified_at_ms || c->has_if_size;
}

int remote_remove(struct bucket *bucket, struct arena *a, struct str key,
                  const struct remove_options *o, struct remove_result *out, struct err *err)
{
    struct ask q;
    int code = remote_key_check(key, err);

    *out = (struct remove_result){0};
    if (code < 0)
        return code;
    ask_init_bucket(&q, remote_bucket_of(bucket), "DELETE", key);
    ask_param_given(&q, "versionId", o->version);
    ask_conditions(&q, &o->conditions);
    if (o->bypass_governance)
        ask_header(&q, "x-amz-bypass-governance-retention", STR("true"));
    /* A repeated request would make two markers, or its condition would no longer hold
     * (docs/remote-storage.md, M8). */
    q.request.idempotent = o->version.len > 0 && !has_conditions(&o->conditions);
    code = ask_send(&q, err);
    if (code == ERR_NOT_FOUND && !o->conditions.if_match.len)
        code = 0;
    if (code == 0) {
        out->version = arena_str(a, ask_answer(&q, "x-amz-version-id"));
        /* Some peers answer only with the version's id. If the request named no version, that id
         * can only be the id of a new marker. */
        out->is_marker = str_ieq(ask_answer(&q, "x-amz-delete-marker"), STR("true")) ||
                         (o->version.len == 0 && out->version.len > 0);
        code = arena_error(a);
    }
    ask_release(&q);
    return code;
}
