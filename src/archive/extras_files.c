/* Files of releases: fetched without a token, and stored while they flow. */
#include "archive/extras_int.h"
#include "archive/link.h"

#include "base/clock.h"
#include "http/client.h"
#include "http/hosts.h"
#include "object/digest.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    FILES_IDLE_MS = 60 * MS_PER_S,
    FILES_SLOW_BYTES_PER_S = 1024,
    FILES_SLOW_MS = 5 * MS_PER_MINUTE,
    FILES_REDIRECTS_MAX = 3,
    FILES_NAME_MAX = 200,
};

/* --- where requests may go --- */

/* One file while it is transferred. */
struct extras_transfer {
    struct reader reader; /* the body, hashed and counted while it is read */
    struct extras *x;
    const struct extras_file *file;
    struct client_stream *stream;
    struct digests *digests; /* NULL: the expected SHA-256 is not known */
    uint64_t got;
    bool is_foreign; /* the URL is not on the forge's own origins */
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
    (void)from_url;
    return extras_may_ask(ctx, str_z(to_url));
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
    if (t->got > t->file->size)
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
    if (t->got != t->file->size)
        return err_set(err, ERR_PARSE, "the file has %llu bytes instead of %llu",
                       (unsigned long long)t->got, (unsigned long long)t->file->size);
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

static int extras_put_stream(struct extras_transfer *t, struct err *err)
{
    struct http_header headers[] = {{STR("content-type"), STR("application/octet-stream")},
                                    shelf_mtime(t->x->arena, t->x->now_ms)};
    struct put_options o = {.meta = {.headers = headers, .header_count = ARRAY_SIZE(headers)},
                            .verify = extras_verify,
                            .ctx = t};
    struct put_result result;

    t->reader.ops = &extras_transfer_ops;
    return shelf_put(t->x->shelf, t->x->arena, t->file->key, &t->reader, t->file->size, &o, &result,
                     err);
}

/* Asks for the file and stores it. */
static int extras_transfer_run(struct extras_transfer *t, struct forge_fault *fault,
                               struct err *err)
{
    struct client_limits limits = {.idle_ms = FILES_IDLE_MS,
                                   .slow_bytes_per_s = FILES_SLOW_BYTES_PER_S,
                                   .slow_ms = FILES_SLOW_MS,
                                   .total_ms = t->x->timeout_ms,
                                   .body_max = t->file->size < UINT64_MAX ? t->file->size + 1 : 0,
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
    if (code < 0)
        return extras_transfer_failed(fault, code, err);
    code = extras_judge_status(head.status, fault, err);
    if (code == 0) {
        code = extras_put_stream(t, err);
        if (code < 0)
            code = extras_transfer_failed(fault, code, err);
    }
    client_stream_close(t->stream);
    return code;
}

static void extras_too_big(struct extras *x, const struct extras_file *f)
{
    x->left_out++;
    log_info(x->log, "archive.file_too_big", log_s("key", f->key), log_u("bytes", f->size));
    if (!x->too_big[0])
        snprintf(x->too_big, sizeof(x->too_big),
                 STR_FMT " has %" PRIu64 " bytes, more than archive.max_pack", STR_ARG(f->key),
                 f->size);
}

int extras_fetch_file(struct extras *x, const struct extras_file *f, struct forge_fault *fault,
                      struct err *err)
{
    struct extras_transfer t = {.x = x, .file = f};
    struct object_info info;
    int code = shelf_head(x->shelf, x->arena, f->key, &info, err);

    if (code == 0 && info.size == f->size)
        return 0;
    if (code < 0 && code != ERR_NOT_FOUND)
        return extras_storage(fault, code, err);
    if (f->size > x->file_max) {
        extras_too_big(x, f);
        return 0;
    }
    if (f->url.len > FORGE_URL_MAX * 4 || !extras_may_ask(&t, f->url))
        return forge_fail(fault, ARCHIVE_REDIRECT, err,
                          "the URL of a file leads to a place where weir may not go");
    if (f->sha256)
        t.digests = digests_new(1u << DIGEST_SHA256);
    code = extras_transfer_run(&t, fault, err);
    digests_free(t.digests);
    if (code == 0) {
        x->files++;
        x->bytes += f->size;
    }
    return code;
}

/* --- files of a release --- */

struct extras_asset {
    struct str id, name, url;
    uint64_t size;
};
static const struct forge_field extras_asset_rows[] = {
    {"id", FORGE_FIELD_ID, offsetof(struct extras_asset, id), true},
    {"name", FORGE_FIELD_TEXT, offsetof(struct extras_asset, name), true},
    {"browser_download_url", FORGE_FIELD_TEXT, offsetof(struct extras_asset, url), true},
    {"size", FORGE_FIELD_NUMBER, offsetof(struct extras_asset, size)},
};
static const struct forge_fields extras_asset_fields = FORGE_FIELDS(extras_asset_rows);

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

static int extras_store_asset(struct extras *x, const struct extras_asset *asset,
                              struct forge_fault *fault, struct err *err)
{
    struct str what = arena_fmt(x->arena, "assets/" STR_FMT "/" STR_FMT, STR_ARG(asset->id),
                                STR_ARG(extras_asset_name(x->arena, asset->name)));
    struct extras_file file = {.url = asset->url, .key = extras_key(x, what), .size = asset->size};
    int code = extras_fetch_file(x, &file, fault, err);

    if (code != ERR_NOT_FOUND || fault->code != ARCHIVE_GONE)
        return code;
    x->left_out++; /* the file was removed since the release was listed */
    log_info(x->log, "archive.file_absent", log_s("key", file.key), log_z("why", err->text));
    return 0;
}

int extras_assets(struct extras *x, struct str release, struct forge_fault *fault, struct err *err)
{
    struct arena own = ARENA_INIT(EXTRAS_FILE_ARENA), *outer = x->arena;
    struct scan s;
    char key[16];
    int code = 0;

    /* Memory for one file at a time; a release may have tens of thousands of files. */
    x->arena = &own;
    scan_init(&s, release);
    scan_open(&s, '{');
    while (code == 0 && scan_key(&s, key, sizeof(key))) {
        if (strcmp(key, "assets") != 0 || scan_peek(&s) != SCAN_ARRAY) {
            /* Skips GitLab's assets: they are an object with links to other hosts. */
            scan_skip(&s, NULL);
            continue;
        }
        scan_open(&s, '[');
        while (code == 0 && scan_more(&s)) {
            struct extras_asset asset = {0};
            arena_reset(&own);
            forge_read_object(&s, x->arena, &extras_asset_fields, &asset);
            if (!s.wrong)
                code = extras_store_asset(x, &asset, fault, err);
        }
    }
    x->arena = outer;
    arena_release(&own);
    if (code == 0 && scan_end(&s, err) < 0)
        code = forge_malformed(fault, ERR_PARSE, err);
    return code;
}
