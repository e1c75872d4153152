/* The tracker's feed of deltas and its consumers; what the invariants forbid. */
#include "api/swarm.h"
#include "swarm/feed.h"

enum { READ_DEFAULT = 1000, READ_MAX = 10000, NAME_MAX_LEN = 64, FINDINGS_MAX = 1000 };

/* --- consumers --- */

int api_get_swarm_feed(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct feed_consumer *list;
    struct cache *cache;
    struct api_json j;
    struct err err = {0};
    size_t count;
    int code;

    (void)params;
    if (!api_swarm(ctx, req, &cache, &code))
        return code;
    code = feed_consumers(cache, http_request_arena(req), &list, &count, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "consumers");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < count; i++) {
        json_out_open(&j.w, '{');
        json_out_member_str(&j.w, "name", list[i].name);
        json_out_member_u64(&j.w, "acknowledged", list[i].acknowledged);
        json_out_member_u64(&j.w, "waiting", list[i].waiting);
        json_out_close(&j.w, '}');
    }
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

int api_post_swarm_feed(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct cache *cache;
    struct str name;
    struct api_json j;
    struct err err = {0};
    json_t *object = NULL;
    int code;

    (void)params;
    if (!api_swarm(ctx, req, &cache, &code) || !api_read_json(req, &object, &code))
        return code;
    name = arena_str(http_request_arena(req), json_get_str(object, "name", STR_EMPTY));
    json_decref(object);
    if (name.len == 0 || name.len > NAME_MAX_LEN || !str_is_utf8(name))
        return api_send_error(req, 400, "invalid", "name is 1 to 64 characters");
    code = feed_add_consumer(cache, name, &err);
    if (code == ERR_EXISTS)
        return api_send_error(req, 409, "exists", "there is a consumer of this name");
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "swarm.consumer_added", log_s("consumer", name));
    api_json_begin(&j);
    json_out_member_str(&j.w, "name", name);
    return api_json_send(req, 201, &j);
}

static int send_done(struct http_request *req, int code, const struct err *err)
{
    if (code == ERR_NOT_FOUND)
        return api_send_error(req, 404, "not_found", "there is no such consumer");
    if (code == ERR_RANGE)
        return api_send_error(req, 400, "invalid", "there is no record of this number yet");
    return code < 0 ? api_send_failure(req, code, err) : api_send_done(req);
}

int api_delete_swarm_feed(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct str name = route_param(params, "name");
    struct cache *cache;
    struct err err = {0};
    int code;

    if (!api_swarm(ctx, req, &cache, &code))
        return code;
    code = feed_remove_consumer(cache, name, &err);
    if (code == 0)
        log_info(http_request_log(req), "swarm.consumer_removed", log_s("consumer", name));
    return send_done(req, code, &err);
}

/* --- records --- */

static void write_delta(struct json_out *w, struct arena *a, const struct delta *d)
{
    json_out_open(w, '{');
    json_out_member_u64(w, "number", d->number);
    json_out_member_u64(w, "user", d->user_id);
    json_out_member_u64(w, "torrent", d->torrent_id);
    json_out_member_str(w, "peer_id", arena_hex(a, d->peer_id, PEER_ID_LEN));
    json_out_member_i64(w, "at", d->at);
    json_out_member_bool(w, "created", d->created);
    json_out_member_bool(w, "snatched", d->snatched);
    json_out_member_bool(w, "stopped", d->stopped);
    json_out_member_bool(w, "seeder", d->seeder);
    json_out_member_u64(w, "left", d->left);
    json_out_member_u64(w, "raw_uploaded", d->raw_uploaded);
    json_out_member_u64(w, "raw_downloaded", d->raw_downloaded);
    api_swarm_member_f64(w, "uploaded", d->uploaded);
    api_swarm_member_f64(w, "downloaded", d->downloaded);
    json_out_close(w, '}');
}

int api_get_swarm_deltas(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct arena *a = http_request_arena(req);
    struct delta *list;
    struct cache *cache;
    struct api_json j;
    struct err err = {0};
    size_t max, count = 0;
    int code;

    if (!api_swarm(ctx, req, &cache, &code))
        return code;
    code = api_query_number(req, "max", READ_DEFAULT, READ_MAX, &max, &err);
    if (code == 0)
        code = feed_read(cache, a, route_param(params, "name"), max, &list, &count, &err);
    if (code < 0)
        return send_done(req, code, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "records");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < count; i++)
        write_delta(&j.w, a, &list[i]);
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

int api_post_swarm_acknowledge(struct http_request *req, const struct route_params *params,
                               void *ctx)
{
    struct cache *cache;
    struct err err = {0};
    json_t *object = NULL;
    int64_t number;
    int code;

    if (!api_swarm(ctx, req, &cache, &code) || !api_read_json(req, &object, &code))
        return code;
    number = json_get_i64(object, "number", -1);
    json_decref(object);
    if (number < 0)
        return api_send_error(req, 400, "invalid", "number is the last record to acknowledge");
    code = feed_acknowledge(cache, route_param(params, "name"), (uint64_t)number, &err);
    return send_done(req, code, &err);
}

/* --- the invariants --- */

struct findings {
    struct json_out *w;
    uint64_t count;
};

/* A key has raw bytes, and of a user the passkey: only its beginning is told. */
static void write_key(struct json_out *w, struct str key)
{
    enum { SHOWN = 4 };
    struct buf text = BUF_INIT(4096);
    ptrdiff_t user = str_find(key, STR("user:"));
    struct str shown = user >= 0 ? str_head(key, (size_t)user + 5 + SHOWN) : key;

    for (size_t i = 0; i < shown.len; i++) {
        unsigned char c = (unsigned char)shown.p[i];
        if (c >= ' ' && c < 0x7f && c != '\\')
            buf_append_char(&text, (char)c);
        else
            buf_appendf(&text, "\\x%02x", c);
    }
    if (shown.len < key.len)
        buf_append_z(&text, "...");
    json_out_member_str(w, "key", buf_str(&text));
    buf_release(&text);
}

static void tell(void *ctx, const char *invariant, struct str key)
{
    struct findings *f = ctx;

    if (f->count++ >= FINDINGS_MAX)
        return;
    json_out_open(f->w, '{');
    json_out_member_str(f->w, "invariant", str_z(invariant));
    write_key(f->w, key);
    json_out_close(f->w, '}');
}

int api_post_swarm_check(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct findings findings = {0};
    struct cache *cache;
    struct api_json j;
    struct err err = {0};
    int code;

    (void)params;
    if (!api_swarm(ctx, req, &cache, &code))
        return code;
    api_json_begin(&j);
    findings.w = &j.w;
    json_out_key(&j.w, "findings");
    json_out_open(&j.w, '[');
    code = cache_check(cache, tell, &findings, &err);
    json_out_close(&j.w, ']');
    json_out_member_u64(&j.w, "count", findings.count);
    if (code == 0)
        return api_json_send(req, 200, &j);
    api_json_drop(&j);
    return api_send_failure(req, code, &err);
}
