/* Files of releases: fetched without a token, and stored while they flow. */
#include "archive/extras_int.h"
#include "archive/link.h"

#include "base/clock.h"
#include "http/client.h"
#include "http/hosts.h"
#include "object/digest.h"
#include "os/file.h"
#include "os/scratch.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    FILES_IDLE_MS = 60 * MS_PER_S,
    FILES_SLOW_BYTES_PER_S = 1024,
    FILES_SLOW_MS = 5 * MS_PER_MINUTE,
    FILES_REDIRECTS_MAX = 3,
    FILES_NAME_MAX = 200,
};
#define FILES_ANY_SIZE UINT64_MAX

/* --- where requests may go --- */

/* One file while it is transferred. */
struct extras_transfer {
    struct reader reader; /* the body, hashed and counted while it is read */
    struct extras *x;
    const struct extras_file *file;
    struct client_stream *stream;
    struct digests *digests; /* NULL: the expected SHA-256 is not known */
    uint64_t size;           /* the size that the file must have; FILES_ANY_SIZE: not known yet */
    uint64_t got;
    bool is_foreign; /* the URL is not on the forge's own origins */
    bool signs_in;   /* the server has sent weir to a page where people sign in */
    bool too_big;    /* the file turned out to be too large, and was left out */
};

static bool extras_is_own(const struct extras *x, struct str url)
{
    const struct forge *f = forge_session_forge(x->session);

    return link_same_origin(url, f->git) || link_same_origin(url, f->api);
}

static bool extras_may_connect(void *ctx, const struct sock_addr *addr)
{
    struct extras_transfer *t = ctx;
    uint8_t ip[IP_LEN];
    bool any = !t->is_foreign && forge_session_forge(t->x->session)->allow_private;

    return any || (ip_of(ip, addr) && ip_is_public(ip));
}

/* Decides whether weir may send a request to the URL. The URL is that of the file, or the target of
 * a redirect. */
static bool extras_may_ask(struct extras_transfer *t, struct str url)
{
    t->is_foreign = !extras_is_own(t->x, url);
    return !t->is_foreign || str_starts(url, STR("https://"));
}

static bool extras_may_redirect(void *ctx, const char *from_url, const char *to_url)
{
    struct extras_transfer *t = ctx;
    struct url to;

    (void)from_url;
    /* GitLab answers so when it refuses a file. The page itself would be a success. */
    t->signs_in =
        url_parse(&to, str_z(to_url), NULL) == 0 && str_ends(to.path, STR("/users/sign_in"));
    return !t->signs_in && extras_may_ask(t, str_z(to_url));
}

/* --- the transfer --- */

static int extras_transfer_read(struct reader *r, void *to, size_t len, size_t *got,
                                struct err *err)
{
    struct extras_transfer *t = (struct extras_transfer *)r;
    int code = reader_read(client_stream_reader(t->stream), to, len, got, err);

    if (code < 0)
        return code;
    t->got += *got;
    if (t->size == FILES_ANY_SIZE && t->got > t->x->file_max)
        return err_set(err, ERR_TOO_LARGE, "the file is larger than archive.max_pack");
    if (t->got > t->size)
        return err_set(err, ERR_PARSE, "the file is larger than it should be");
    if (t->digests)
        digests_update(t->digests, str_n(to, *got));
    return 0;
}

static const struct reader_ops extras_transfer_ops = {.read = extras_transfer_read};

/* Compares the file with the expected size and SHA-256, before it becomes visible. */
static int extras_verify(void *ctx, struct object_meta *meta, struct err *err)
{
    struct extras_transfer *t = ctx;
    struct digest_value value;

    (void)meta;
    if (t->got != t->size)
        return err_set(err, ERR_PARSE, "the file has %llu bytes instead of %llu",
                       (unsigned long long)t->got, (unsigned long long)t->size);
    if (!t->digests)
        return 0;
    digests_final(t->digests, DIGEST_SHA256, &value);
    return memcmp(value.bytes, t->file->sha256, value.len) == 0
               ? 0
               : err_set(err, ERR_PARSE, "the file has another SHA-256 than it should have");
}

/* Turns an error of the transfer into an outcome. Codes that are not listed come from the
 * satellite. */
static int extras_transfer_failed(struct forge_fault *fault, int code, struct err *err)
{
    struct err why = *err;

    switch (code) {
    case ERR_CANCELED:
        return code;
    case ERR_DENIED:
        return forge_fail(fault, ARCHIVE_REDIRECT, err, "%s", why.text);
    case ERR_PARSE:
    case ERR_TOO_LARGE:
        return forge_fail(fault, ARCHIVE_PROTOCOL, err, "%s", why.text);
    case ERR_TIMEOUT:
        return forge_fail(fault, ARCHIVE_TIMEOUT, err, "%s", why.text);
    case ERR_CLOSED:
    case ERR_PEER:
    case ERR_UNAVAILABLE:
        return forge_fail(fault, ARCHIVE_HTTP_5XX, err, "%s", why.text);
    default:
        return extras_storage(fault, code, err);
    }
}

static int extras_judge_status(int status, struct forge_fault *fault, struct err *err)
{
    fault->http_status = status;
    if (status == 200)
        return 0;
    enum archive_code outcome =
        status == 404 || status == 410 ? ARCHIVE_GONE : extras_status_code(status);
    return forge_fail(fault, outcome, err, "the server answers %d to a file", status);
}

static int extras_put_from(struct extras_transfer *t, struct reader *from, struct err *err)
{
    struct http_header headers[] = {{STR("content-type"), STR("application/octet-stream")},
                                    shelf_mtime(t->x->arena, t->x->now_ms)};
    struct put_options o = {.meta = {.headers = headers, .header_count = ARRAY_SIZE(headers)},
                            .verify = extras_verify,
                            .ctx = t};
    struct put_result result;

    return shelf_put(t->x->shelf, t->x->arena, t->file->key, from, t->size, &o, &result, err);
}

/* Stores a file whose size the server does not say: by a scratch file, because a storage may have
 * to know the size before the first byte. */
static int extras_put_by_scratch(struct extras_transfer *t, struct err *err)
{
    char piece[16 * 1024];
    struct file_reader from;
    size_t got = 1;
    int fd = -1, code = scratch_file(&fd, t->x->scratch, err);

    while (code == 0 && got) {
        code = reader_read(&t->reader, piece, sizeof(piece), &got, err);
        if (code == 0 && t->got > t->x->scratch_max)
            code = err_set(err, ERR_TOO_LARGE, "the file is larger than archive.scratch");
        if (code == 0)
            code = file_write_all(fd, piece, got, err);
    }
    t->size = t->got;
    file_reader_init(&from, (struct file_range){fd, 0, t->size}, false);
    if (code == 0)
        code = extras_put_from(t, &from.reader, err);
    fd_close(&fd);
    return code;
}

static int extras_put_stream(struct extras_transfer *t, const struct client_response *head,
                             struct err *err)
{
    uint64_t length;

    t->reader.ops = &extras_transfer_ops;
    if (t->size == FILES_ANY_SIZE && str_u64(client_header(head, "content-length"), &length) == 0)
        t->size = length;
    if (t->size != FILES_ANY_SIZE && t->size > t->x->file_max)
        return err_set(err, ERR_TOO_LARGE, "%" PRIu64 " bytes are more than archive.max_pack",
                       t->size);
    return t->size == FILES_ANY_SIZE ? extras_put_by_scratch(t, err)
                                     : extras_put_from(t, &t->reader, err);
}

/* Leaves out a file that is too large. `why` says how large it is, or which limit it has passed. */
static void extras_too_big(struct extras_transfer *t, const char *why)
{
    struct extras *x = t->x;

    t->too_big = true;
    x->left_out++;
    log_info(x->log, "archive.file_too_big", log_s("key", t->file->key), log_z("why", why));
    if (!x->too_big[0])
        snprintf(x->too_big, sizeof(x->too_big), STR_FMT ": %s", STR_ARG(t->file->key), why);
}

/* Asks for the file and stores it. */
static int extras_transfer_run(struct extras_transfer *t, struct forge_fault *fault,
                               struct err *err)
{
    uint64_t most = t->size == FILES_ANY_SIZE ? t->x->file_max : t->size;
    struct client_limits limits = {.idle_ms = FILES_IDLE_MS,
                                   .slow_bytes_per_s = FILES_SLOW_BYTES_PER_S,
                                   .slow_ms = FILES_SLOW_MS,
                                   .total_ms = t->x->timeout_ms,
                                   .body_max = most < UINT64_MAX ? most + 1 : 0,
                                   .redirects_max = FILES_REDIRECTS_MAX};
    struct client_request r = {.method = "GET",
                               .url = arena_z(t->x->arena, t->file->url),
                               .headers = t->file->headers,
                               .header_count = t->file->header_count,
                               .may_connect = extras_may_connect,
                               .may_redirect = extras_may_redirect,
                               .ctx = t,
                               .cancel = t->x->cancel};
    struct client_response head = {0};
    int code = arena_error(t->x->arena);

    if (code == 0)
        code = client_open(&t->stream, t->x->client, t->x->arena, &head, &r, &limits, err);
    if (code < 0 && t->signs_in)
        return forge_fail(fault, ARCHIVE_AUTH, err, "the server wants somebody to sign in");
    if (code < 0)
        return extras_transfer_failed(fault, code, err);
    code = extras_judge_status(head.status, fault, err);
    if (code == 0) {
        code = extras_put_stream(t, &head, err);
        if (code == ERR_TOO_LARGE && t->file->any_size) {
            extras_too_big(t, err->text);
            code = 0;
        } else if (code < 0) {
            code = extras_transfer_failed(fault, code, err);
        }
    }
    client_stream_close(t->stream);
    return code;
}

int extras_fetch_file(struct extras *x, const struct extras_file *f, struct forge_fault *fault,
                      struct err *err)
{
    struct extras_transfer t = {.x = x, .file = f, .size = f->any_size ? FILES_ANY_SIZE : f->size};
    struct object_info info;
    int code = shelf_head(x->shelf, x->arena, f->key, &info, err);

    if (code == 0 && (f->any_size || info.size == f->size))
        return 0;
    if (code < 0 && code != ERR_NOT_FOUND)
        return extras_storage(fault, code, err);
    if (f->size > x->file_max) {
        char why[64];
        snprintf(why, sizeof(why), "%" PRIu64 " bytes are more than archive.max_pack", f->size);
        extras_too_big(&t, why);
        return 0;
    }
    if (f->url.len > FORGE_URL_MAX * 4 || !extras_may_ask(&t, f->url))
        return forge_fail(fault, ARCHIVE_REDIRECT, err,
                          "the URL of a file leads to a place where weir may not go");
    if (f->sha256)
        t.digests = digests_new(1u << DIGEST_SHA256);
    code = extras_transfer_run(&t, fault, err);
    digests_free(t.digests);
    if (code == 0 && !t.too_big) {
        x->files++;
        x->bytes += t.size;
    }
    return code;
}

/* --- files of a release --- */

static const struct forge_field extras_asset_rows[] = {
    {"id", FORGE_FIELD_ID, offsetof(struct extras_asset, id), true},
    {"name", FORGE_FIELD_TEXT, offsetof(struct extras_asset, name), true},
    {"browser_download_url", FORGE_FIELD_TEXT, offsetof(struct extras_asset, url), true},
    {"size", FORGE_FIELD_NUMBER, offsetof(struct extras_asset, size)},
};
static const struct forge_fields extras_asset_fields = FORGE_FIELDS(extras_asset_rows);

/* GitLab's releases have links in the place of files. A link has no size, and may lead anywhere. */
static const struct forge_field extras_link_rows[] = {
    {"id", FORGE_FIELD_ID, offsetof(struct extras_asset, id), true},
    {"name", FORGE_FIELD_TEXT, offsetof(struct extras_asset, name), true},
    {"url", FORGE_FIELD_TEXT, offsetof(struct extras_asset, url), true},
};
static const struct forge_fields extras_link_fields = FORGE_FIELDS(extras_link_rows);

/* Makes a name that can be part of a key: other characters than letters, digits, '.', '-', '_' and
 * '+' become '_'. */
static struct str extras_asset_name(struct arena *a, struct str name)
{
    char *out = arena_z(a, str_head(name, FILES_NAME_MAX));

    for (char *c = out; out && *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_+", *c))
            *c = '_';
    return str_z(out);
}

struct extras_assets_run {
    struct extras *x;
    struct forge_fault *fault;
};

/* Handles the failure of a link to another host. A dead link must not keep the repository from
 * being done, so the file is left out. If the link may work later, the releases are read again at
 * the next sync. */
static int extras_link_failed(struct extras *x, const struct extras_file *file,
                              const struct forge_fault *fault, int code, const struct err *err)
{
    if (code == ERR_CANCELED || fault->code == ARCHIVE_STORAGE || extras_is_own(x, file->url))
        return code;
    x->left_out++;
    x->tries_again |= fault->code != ARCHIVE_REDIRECT && fault->code != ARCHIVE_AUTH;
    log_info(x->log, "archive.link_failed", log_s("key", file->key), log_z("why", err->text));
    return 0;
}

static int extras_store_asset(void *ctx, const struct extras_asset *asset, struct err *err)
{
    struct extras_assets_run *run = ctx;
    struct extras *x = run->x;
    struct str what = arena_fmt(x->arena, "assets/" STR_FMT "/" STR_FMT, STR_ARG(asset->id),
                                STR_ARG(extras_asset_name(x->arena, asset->name)));
    struct extras_file file = {.url = asset->url,
                               .key = extras_key(x, what),
                               .size = asset->size,
                               .any_size = asset->is_link};
    int code = extras_fetch_file(x, &file, run->fault, err);

    if (code < 0 && asset->is_link && run->fault->code != ARCHIVE_GONE)
        return extras_link_failed(x, &file, run->fault, code, err);
    if (code != ERR_NOT_FOUND || run->fault->code != ARCHIVE_GONE)
        return code;
    x->left_out++; /* the file was removed since the release was listed */
    log_info(x->log, "archive.file_absent", log_s("key", file.key), log_z("why", err->text));
    return 0;
}

/* Reads an array of files or links. */
static int assets_read_array(struct scan *s, struct arena *a, bool is_link, extras_asset_fn *each,
                             void *ctx, struct err *err)
{
    int code = 0;

    scan_open(s, '[');
    while (code == 0 && scan_more(s)) {
        struct extras_asset asset = {.is_link = is_link};
        arena_reset(a);
        forge_read_object(s, a, is_link ? &extras_link_fields : &extras_asset_fields, &asset);
        if (!s->wrong)
            code = each(ctx, &asset, err);
    }
    return code;
}

/* Reads the member `assets`: an array of files, or GitLab's object with links. */
static int assets_read(struct scan *s, struct arena *a, extras_asset_fn *each, void *ctx,
                       struct err *err)
{
    char key[16];
    int code = 0;

    if (scan_peek(s) == SCAN_ARRAY)
        return assets_read_array(s, a, false, each, ctx, err);
    if (scan_peek(s) != SCAN_OBJECT) {
        scan_skip(s, NULL);
        return 0;
    }
    scan_open(s, '{');
    while (code == 0 && scan_key(s, key, sizeof(key)))
        if (strcmp(key, "links") == 0 && scan_peek(s) == SCAN_ARRAY)
            code = assets_read_array(s, a, true, each, ctx, err);
        else
            scan_skip(s, NULL);
    return code;
}

int extras_each_asset(struct str release, struct arena *a, extras_asset_fn *each, void *ctx,
                      bool *malformed, struct err *err)
{
    struct scan s;
    char key[16];
    int code = 0;

    scan_init(&s, release);
    scan_open(&s, '{');
    while (code == 0 && scan_key(&s, key, sizeof(key)))
        if (strcmp(key, "assets") == 0)
            code = assets_read(&s, a, each, ctx, err);
        else
            scan_skip(&s, NULL);
    *malformed = code == 0 && scan_end(&s, err) < 0;
    return *malformed ? ERR_PARSE : code;
}

int extras_assets(struct extras *x, struct str release, struct forge_fault *fault, struct err *err)
{
    struct arena own = ARENA_INIT(EXTRAS_FILE_ARENA), *outer = x->arena;
    struct extras_assets_run run = {x, fault};
    bool malformed;

    /* Memory for one file at a time; a release may have tens of thousands of files. */
    x->arena = &own;
    int code = extras_each_asset(release, &own, extras_store_asset, &run, &malformed, err);
    x->arena = outer;
    arena_release(&own);
    return malformed ? forge_malformed(fault, ERR_PARSE, err) : code;
}
