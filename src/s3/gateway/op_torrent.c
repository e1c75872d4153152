/* GetObjectTorrent: decides who may have the torrent of an object, and which addresses are in it.
 * swarm/ makes the file (torrent.h). */
#include "s3/gateway/gateway_int.h"
#include "object/overlay.h"

#include "s3/gateway/torrent.h"

/* Does the text have only characters of host names, addresses and ports? The text is checked
 * because the client chose the Host header. */
static bool host_is_valid(struct str s)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";

    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] == '\0' || !strchr(allowed, s.p[i]))
            return false;
    return s.len > 0;
}

struct str torrent_host(struct str header)
{
    size_t i = header.len;

    while (i > 0 && header.p[i - 1] >= '0' && header.p[i - 1] <= '9')
        i--;
    if (i > 0 && i < header.len && header.p[i - 1] == ':')
        header.len = i - 1;
    return host_is_valid(header) ? header : STR_EMPTY;
}

struct str torrent_object_url(struct arena *a, struct str base, const struct torrent_place *at)
{
    struct buf out = BUF_INIT(16 * KIB);
    bool slash = at->key.len && at->key.p[at->key.len - 1] == '/';

    while (base.len && base.p[base.len - 1] == '/')
        base.len--;
    buf_append_str(&out, base);
    if (at->bucket.len)
        buf_appendf(&out, "/" STR_FMT, STR_ARG(at->bucket));
    buf_append_char(&out, '/');
    url_encode(&out, str_head(at->key, at->key.len - slash), true);
    if (slash) /* if the URL ended with a plain slash, clients would append the file's name */
        buf_append_z(&out, "%2F");
    if (at->version.len) {
        buf_append_z(&out, "?versionId=");
        url_encode(&out, at->version, false);
    }
    struct str url = buf_error(&out) < 0 ? STR_EMPTY : arena_str(a, buf_str(&out));
    buf_release(&out);
    return url;
}

/* Returns the object's address, under the configured public address or else under the address that
 * the client used. */
static struct str object_url(struct call *c, struct str version)
{
    struct torrent_place at = {c->bucket_name, c->key, version};
    struct str base = c->g->o.url, host = http_header(c->head, "host");

    if (!base.len && !host_is_valid(host))
        return STR_EMPTY;
    if (!base.len) {
        base = arena_fmt(c->a, "%s://" STR_FMT, http_request_is_tls(c->http) ? "https" : "http",
                         STR_ARG(host));
        at.bucket = c->host_bucket.len ? STR_EMPTY : c->bucket_name;
    }
    return torrent_object_url(c->a, base, &at);
}

/* Checks that everybody may read the object, because a torrent is for everybody, whoever asks. If
 * everybody may read versions, *version is set, for the address of the web seed. */
static int judge_local(struct call *c, const struct get_result *got, struct str *version,
                       struct err *err)
{
    bool versioned = c->target.info.versions != VERSIONS_NEVER;
    bool named = call_anyone_may(c, S3_ACTION_GET_OBJECT_VERSION, &got->info);

    *version = versioned && named ? got->info.version : STR_EMPTY;
    if (c->version.len ? named : call_anyone_may(c, S3_ACTION_GET_OBJECT, &got->info))
        return 0;
    return s3_fail(err, S3_ACCESS_DENIED);
}

/* Looks at the object by an unsigned request, as everybody could, because the storage decides about
 * access (docs/forward.md, F2). */
static int look_remote(struct call *c, struct bucket **b, struct get_result *got,
                       struct str *version, struct err *err)
{
    static const struct object_conditions none;
    struct storage *s = c->target.at.storage;
    int code = storage_open_bucket(b, s, STR_EMPTY, c->bucket_name, err);

    if (code == 0)
        code = (*b)->ops->head(*b, c->a, c->key, c->version, &none, got, err);
    if (code == ERR_NOT_FOUND)
        return s3_fail(err, c->version.len ? S3_NO_SUCH_VERSION : S3_NO_SUCH_KEY);
    if (code == 0 && !str_eq(got->info.version, STR("null")))
        *version = got->info.version;
    got->info.key = c->key;
    return code;
}

/* Looks at the object. *b is a reference to the bucket that the object is read from. */
static int torrent_look(struct call *c, struct bucket **b, struct get_result *got,
                        struct str *version, struct err *err)
{
    int code;

    if (target_is_foreign(&c->target.at))
        return look_remote(c, b, got, version, err);
    code = call_object(c, got, err);
    if (code == 0)
        code = judge_local(c, got, version, err);
    if (code == 0)
        *b = c->target.bucket->ops->ref(c->target.bucket);
    got->info.key = c->key;
    return code;
}

/* Makes the Content-Disposition of RFC 6266: a plain name for all clients, and the real name for
 * clients that can read it. */
static struct str disposition(struct call *c, struct str name)
{
    struct buf plain = BUF_INIT(4 * KIB), encoded = BUF_INIT(4 * KIB);

    for (size_t i = 0; i < name.len; i++) {
        bool fits = name.p[i] >= ' ' && name.p[i] < 0x7f && name.p[i] != '"' && name.p[i] != '\\';
        buf_append_char(&plain, fits ? name.p[i] : '_');
    }
    url_encode(&encoded, name, false);
    struct str value =
        arena_fmt(c->a, "attachment; filename=\"" STR_FMT ".torrent\"", STR_ARG(buf_str(&plain)));
    if (!str_eq(buf_str(&plain), name))
        value = arena_fmt(c->a, STR_FMT "; filename*=UTF-8''" STR_FMT ".torrent", STR_ARG(value),
                          STR_ARG(buf_str(&encoded)));
    buf_release(&plain);
    buf_release(&encoded);
    return value;
}

static int torrent_send_file(struct call *c, const struct get_result *got,
                             const struct torrent_answer *answer)
{
    respond_begin(c, 200);
    if (c->target.info.versions != VERSIONS_NEVER)
        respond_header(c, "x-amz-version-id", got->info.version);
    respond_header(c, "Content-Type", STR("application/x-bittorrent"));
    respond_header(c, "Content-Disposition", disposition(c, answer->name));
    c->begun = true;
    return http_send(c->http, buf_str(&answer->file));
}

int op_torrent(struct call *c, struct err *err)
{
    const struct object_torrents *torrents = c->g->o.torrents;
    struct torrent_answer answer = {0};
    struct get_result got = {0};
    struct bucket *b = NULL;
    struct str version = STR_EMPTY;

    if (!torrents) { /* answers like S3 for a missing object */
        int code = call_object(c, &got, err);
        return code < 0 ? code : err_set(err, S3_NO_SUCH_KEY, "No torrent is made of this object.");
    }
    int code = torrent_look(c, &b, &got, &version, err);
    struct torrent_ask ask = {.bucket = b,
                              .info = &got.info,
                              .http_seed = call_param(c, "httpseeds").p != NULL,
                              .kind = call_param(c, "v"),
                              .url = object_url(c, version),
                              .host = torrent_host(http_header(c->head, "host"))};
    if (code == 0)
        code = torrents->write(torrents->ctx, c->a, &ask, &answer, err);
    if (code == 0)
        code = torrent_send_file(c, &got, &answer);
    else if (code == ERR_CONFLICT)
        code = s3_fail(err, S3_OPERATION_ABORTED);
    buf_release(&answer.file);
    if (b)
        b->ops->unref(b);
    return code;
}

/* --- seeds of BEP 17 --- */

enum { SEED_RANGES_MAX = 16, SEED_GATHER_MAX = 1024 * 1024, SEED_WAIT_S = 10 };

/* Reads ranges within the piece, such as "0-16383,32768-49151". Both ends are included. */
static int read_ranges(struct call *c, const struct object_range *piece, struct object_range *out,
                       size_t *count, struct err *err)
{
    struct str rest = call_param(c, "ranges"), one, first, last;
    uint64_t a, b, len = piece->last - piece->first + 1;

    *count = 0;
    while (str_token(&rest, ",", &one)) {
        if (*count == SEED_RANGES_MAX || !str_cut(one, '-', &first, &last) ||
            str_u64(first, &a) < 0 || str_u64(last, &b) < 0 || a > b || b >= len)
            return s3_fail(err, S3_INVALID_RANGE);
        out[(*count)++] = (struct object_range){RANGE_FROM_TO, piece->first + a, piece->first + b};
    }
    if (*count == 0)
        out[(*count)++] = *piece;
    return 0;
}

/* Opens a range of the version that access was decided on. */
static int seed_open_range(struct call *c, const struct torrent_ask *ask,
                           const struct object_range *range, struct get_result *got,
                           struct err *err)
{
    struct object_conditions is_it = {
        .if_match = arena_fmt(c->a, "\"" STR_FMT "\"", STR_ARG(ask->info->etag))};
    struct bucket *b = ask->bucket;
    int code = b->ops->get(b, c->a, c->key, c->version, &is_it, range, got, err);

    if (code < 0)
        return code;
    got->info.key = c->key;
    return encrypt_unlock(c, got, err);
}

static int seed_gather(struct call *c, const struct torrent_ask *ask,
                       const struct object_range *ranges, size_t count, struct err *err)
{
    struct buf out = BUF_INIT(SEED_GATHER_MAX);
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        struct get_result got = {0};
        code = seed_open_range(c, ask, &ranges[i], &got, err);
        if (code == 0)
            code = reader_read_all(got.body, &out, err);
        reader_close(got.body);
    }
    if (code == 0) {
        respond_begin(c, 200);
        c->begun = true;
        code = http_send(c->http, buf_str(&out));
    }
    buf_release(&out);
    return code == ERR_TOO_LARGE ? s3_fail(err, S3_INVALID_RANGE) : code;
}

static int send_ranges(struct call *c, const struct torrent_ask *ask,
                       const struct object_range *ranges, size_t count, struct err *err)
{
    struct get_result got = {0};

    if (count > 1)
        return seed_gather(c, ask, ranges, count, err);
    int code = seed_open_range(c, ask, &ranges[0], &got, err);
    if (code == 0) {
        respond_begin(c, 200);
        respond_header(c, "Content-Type", STR("application/octet-stream"));
        c->begun = true;
        code = http_send_reader(c->http, got.body, got.len);
    }
    reader_close(got.body);
    return code;
}

/* Answers that the client should wait. The body is the number of seconds. */
static int send_wait(struct call *c)
{
    struct str seconds = arena_fmt(c->a, "%d", SEED_WAIT_S);

    respond_begin(c, 503);
    respond_header(c, "Retry-After", seconds);
    respond_header(c, "Content-Type", STR("text/plain"));
    c->begun = true;
    return http_send(c->http, seconds);
}

static int seed_send_piece(struct call *c, const struct torrent_ask *ask, struct err *err)
{
    const struct object_torrents *torrents = c->g->o.torrents;
    struct object_range piece, ranges[SEED_RANGES_MAX];
    uint64_t number = 0;
    size_t count = 0;
    int code = str_u64(call_param(c, "piece"), &number);

    if (code < 0)
        return err_set(err, S3_INVALID_ARGUMENT, "piece must be a number");
    code = torrents->piece(torrents->ctx, ask, call_param(c, "info_hash"), number, &piece, err);
    if (code == S3_SLOW_DOWN)
        return send_wait(c);
    if (code == ERR_NOT_FOUND)
        return err_set(err, S3_NO_SUCH_KEY, "The object is not in this torrent.");
    if (code == 0)
        code = read_ranges(c, &piece, ranges, &count, err);
    return code < 0 ? code : send_ranges(c, ask, ranges, count, err);
}

int op_http_seed(struct call *c, struct err *err)
{
    struct get_result got = {0};
    struct bucket *b = NULL;
    struct str version = STR_EMPTY;

    if (!c->g->o.torrents || !call_param(c, "piece").p)
        return op_get_object(c, err);
    int code = torrent_look(c, &b, &got, &version, err);
    if (code == 0)
        code = seed_send_piece(c, &(struct torrent_ask){.bucket = b, .info = &got.info}, err);
    if (b)
        b->ops->unref(b);
    return code;
}
