/* Torrents of objects. */
#include "api/api_int.h"

#include "base/clock.h"
#include "object/bucket.h"
#include "route/resolve.h"
#include "meta/error.h"
#include "swarm/torrents.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000 };

/* False: there is no tracker, or this thread may not wait; *answer is what the handler returns. */
static bool ready(struct api *api, struct http_request *req, int *answer)
{
    struct err err = {0};

    if (!http_may_block(req)) {
        *answer = ERR_AGAIN;
        return false;
    }
    if (api->torrents)
        return true;
    err_set(&err, ERR_UNSUPPORTED, "no torrents are made: tracker.http and tracker.udp are off");
    *answer = api_send_failure(req, ERR_UNSUPPORTED, &err);
    return false;
}

/* What torrents say in S3's words. */
static int plain_code(int code)
{
    static const struct {
        int s3, code;
    } table[] = {
        {S3_SLOW_DOWN, ERR_BUSY},
        {S3_INVALID_ARGUMENT, ERR_INVALID},
        {S3_INVALID_REQUEST, ERR_INVALID},
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        if (table[i].s3 == code)
            return table[i].code;
    return code;
}

/* --- answers --- */

static void write_hashes(struct json_out *w, const struct torrent_row *row)
{
    json_out_key(w, "info_hashes");
    json_out_open(w, '[');
    for (int i = 0; i < TORRENT_KINDS; i++) {
        struct str rest = row->hashes[i], hash;
        while (str_token(&rest, " ", &hash))
            json_out_str(w, hash);
    }
    json_out_close(w, ']');
}

static void write_members(struct json_out *w, const struct torrent_row *row)
{
    char made[CLOCK_ISO_LEN + 1] = "";

    if (row->made_s)
        clock_iso(row->made_s * MS_PER_S, made);
    json_out_member_str(w, "id", row->position);
    json_out_member_str(w, "storage", row->storage);
    json_out_member_str(w, "bucket", row->bucket);
    json_out_member_str(w, "key", row->key);
    json_out_member_str(w, "version", row->version);
    json_out_member_u64(w, "size", row->size);
    json_out_member_u64(w, "piece_length", row->piece_length);
    json_out_member_str(w, "state", row->ready ? STR("ready") : STR("hashing"));
    json_out_member_u64(w, "percent", row->size ? row->done * 100 / row->size : 100);
    json_out_member_str(w, "made", str_z(made));
    write_hashes(w, row);
}

static void write_answer(struct json_out *w, const struct torrent_answer *answer, struct str url)
{
    json_out_member_str(w, "name", answer->name);
    json_out_member_str(w, "v1", answer->v1);
    json_out_member_str(w, "v2", answer->v2);
    json_out_member_str(w, "web_seed", url);
    json_out_member_str(w, "magnet", answer->magnet);
}

int api_get_torrents(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct arena *a = http_request_arena(req);
    struct torrent_row *rows = NULL;
    struct api_json j;
    struct err err = {0};
    struct str after;
    size_t limit = 0, count = 0;
    int code;

    (void)params;
    if (!ready(api, req, &code))
        return code;
    code = api_query(req, "after", &after, &err);
    if (code == 0)
        code = api_query_number(req, "limit", PAGE_DEFAULT, PAGE_MAX, &limit, &err);
    if (code == 0)
        code = torrents_list(api->torrents, a, after, limit, &rows, &count, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "torrents");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < count; i++) {
        json_out_open(&j.w, '{');
        write_members(&j.w, &rows[i]);
        json_out_close(&j.w, '}');
    }
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

/* --- addresses --- */

/* By which everybody reaches the S3 endpoint; empty: that is not known here. */
static struct str s3_base(struct api *api, struct http_request *req, struct str host)
{
    const struct conf *conf = api->o.conf;
    struct arena *a = http_request_arena(req);
    char text[SOCK_ADDR_TEXT];
    struct sock_addr addr;

    if (*conf->s3.url || !api->o.s3)
        return str_z(conf->s3.url);
    http_server_address(api->o.s3, &addr);
    sock_addr_text(&addr, text);
    struct str own = str_z(text), all = STR("0.0.0.0:"), all6 = STR("[::]:");
    struct str port = str_starts(own, all)    ? str_skip(own, all.len - 1)
                      : str_starts(own, all6) ? str_skip(own, all6.len - 1)
                                              : STR_EMPTY;
    if (port.len)
        own = arena_fmt(a, STR_FMT STR_FMT, STR_ARG(host), STR_ARG(port));
    return arena_fmt(a, "%s://" STR_FMT, *conf->s3.tls.cert ? "https" : "http", STR_ARG(own));
}

static struct str request_host(struct http_request *req)
{
    return torrent_host(http_header(http_request_head(req), "host"));
}

/* The version is named where there are versions. */
static void fill_addresses(struct api *api, struct http_request *req, struct torrent_ask *ask,
                           const struct torrent_place *at)
{
    struct torrent_place place = *at;

    ask->host = request_host(req);
    struct str base = s3_base(api, req, ask->host);
    if (str_eq(at->version, STR("null")))
        place.version = STR_EMPTY;
    if (base.len)
        ask->url = torrent_object_url(http_request_arena(req), base, &place);
}

/* --- making one --- */

struct creation {
    struct torrent_ask ask;
    struct torrent_answer answer;
    struct get_result got;
    struct torrent_row row;
};

static int look_at_object(struct api *api, struct arena *a, const json_t *object,
                          struct creation *c, struct err *err)
{
    static const struct object_conditions none;
    static const char *const strings[] = {"bucket", "key", "version", "v", "passkey", NULL};
    struct str key = json_get_str(object, "key", STR_EMPTY);
    int code = api_check_strings(object, strings, err);

    if (code == 0 && (!key.len || key.len > OBJECT_KEY_MAX))
        code = err_set(err, ERR_INVALID, "key must be given");
    if (code == 0)
        code = route_bucket(api->o.routes, STR_EMPTY, json_get_str(object, "bucket", STR_EMPTY),
                            &c->ask.bucket, err);
    struct bucket *b = c->ask.bucket;
    if (code < 0 || !b)
        return code;
    struct str version = json_get_str(object, "version", STR_EMPTY);
    code = b->ops->head(b, a, key, version, &none, &c->got, err);
    c->got.info.key = key;
    c->ask.info = &c->got.info;
    c->ask.kind = json_get_str(object, "v", STR_EMPTY);
    c->ask.passkey = json_get_str(object, "passkey", STR_EMPTY);
    c->ask.brings_back = true;
    return code == ERR_NOT_FOUND ? err_set(err, code, "there is no such object") : code;
}

static int create(struct api *api, struct http_request *req, const json_t *object,
                  struct creation *c, struct err *err)
{
    struct arena *a = http_request_arena(req);
    int code = look_at_object(api, a, object, c, err);

    if (code < 0 || !c->ask.bucket)
        return code;
    struct torrent_place at = {c->ask.bucket->name, c->got.info.key, c->got.info.version};
    fill_addresses(api, req, &c->ask, &at);
    code = plain_code(torrents_write(api->torrents, a, &c->ask, &c->answer, err));
    if (code == 0 || code == ERR_BUSY) {
        struct torrent_id id = {bucket_home(c->ask.bucket)->name, at.bucket, at.key, at.version};
        enum torrent_kind kind;
        int found = torrents_find(api->torrents, a, torrent_member(a, &id), &c->row, &kind, err);
        code = found < 0 && code == 0 ? found : code;
    }
    return code;
}

/* 201, or 202 of one that is being hashed. */
static int send_created(struct http_request *req, const struct creation *c, bool made)
{
    struct api_json j;

    log_info(http_request_log(req), "torrent.created", log_s("bucket", c->row.bucket),
             log_s("key", c->row.key));
    api_json_begin(&j);
    write_members(&j.w, &c->row);
    if (made)
        write_answer(&j.w, &c->answer, c->ask.url);
    return api_json_send(req, made ? 201 : 202, &j);
}

int api_post_torrent(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct creation c = {0};
    struct err err = {0};
    json_t *object = NULL;
    int code;

    (void)params;
    if (!ready(ctx, req, &code) || !api_read_json(req, &object, &code))
        return code;
    code = create(ctx, req, object, &c, &err);
    if (code == 0 || (code == ERR_BUSY && c.row.size))
        code = send_created(req, &c, code == 0);
    else
        code = api_send_failure(req, code, &err);
    if (c.ask.bucket)
        c.ask.bucket->ops->unref(c.ask.bucket);
    buf_release(&c.answer.file);
    json_decref(object);
    return code;
}

/* --- one that is there --- */

/* By an info hash or an id; `v` chooses the kind, else the hash does. */
static int show(struct api *api, struct http_request *req, struct str name, struct creation *c,
                struct err *err)
{
    struct arena *a = http_request_arena(req);
    enum torrent_kind kind;
    int code = torrents_find(api->torrents, a, name, &c->row, &kind, err);

    if (code == 0)
        code = api_query(req, "v", &c->ask.kind, err);
    if (code == 0)
        code = api_query(req, "passkey", &c->ask.passkey, err);
    if (code < 0)
        return code;
    if (!c->ask.kind.len)
        c->ask.kind = str_z(torrent_kind_names[kind]);
    c->got.info = (struct object_info){.key = c->row.key};
    c->ask.info = &c->got.info;
    fill_addresses(api, req, &c->ask,
                   &(struct torrent_place){c->row.bucket, c->row.key, c->row.version});
    if (c->row.ready)
        code = torrents_show(api->torrents, a, &c->row, &c->ask, &c->answer, err);
    return code;
}

int api_get_torrent(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct creation c = {0};
    struct api_json j;
    struct err err = {0};
    int code;

    if (!ready(ctx, req, &code))
        return code;
    code = show(ctx, req, route_param(params, "torrent"), &c, &err);
    if (code == 0) {
        api_json_begin(&j);
        write_members(&j.w, &c.row);
        if (c.row.ready)
            write_answer(&j.w, &c.answer, c.ask.url);
        code = api_json_send(req, 200, &j);
    } else {
        code = api_send_failure(req, code, &err);
    }
    buf_release(&c.answer.file);
    return code;
}

int api_get_torrent_file(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct creation c = {0};
    struct err err = {0};
    int code;

    if (!ready(ctx, req, &code))
        return code;
    code = show(ctx, req, route_param(params, "torrent"), &c, &err);
    if (code == 0 && !c.row.ready)
        code = err_set(&err, ERR_BUSY, "it is being hashed");
    if (code == 0) {
        http_respond(req, 200);
        http_respond_header(req, STR("Content-Type"), STR("application/x-bittorrent"));
        code = http_send(req, buf_str(&c.answer.file));
    } else {
        code = api_send_failure(req, code, &err);
    }
    buf_release(&c.answer.file);
    return code;
}

int api_delete_torrent(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct arena *a = http_request_arena(req);
    struct torrent_row row;
    enum torrent_kind kind;
    struct err err = {0};
    int code;

    if (!ready(api, req, &code))
        return code;
    code = torrents_find(api->torrents, a, route_param(params, "torrent"), &row, &kind, &err);
    if (code == 0)
        code = torrents_remove(api->torrents, a, &row, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "torrent.removed", log_s("bucket", row.bucket),
             log_s("key", row.key));
    return api_send_done(req);
}
