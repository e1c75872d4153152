/* The tracker's feed of deltas and its consumers; what the invariants forbid. */
#include "api/swarm.h"
#include "swarm/feed.h"

enum { READ_DEFAULT = 1000, READ_MAX = 10000, NAME_MAX_LEN = 64, FINDINGS_MAX = 1000 };

static api_fn list_consumers, add_consumer, remove_consumer, read_deltas, acknowledge, check;

#define CONSUMER "there is no such consumer"

SWARM_ROUTE(api_get_swarm_feed, list_consumers, 200, .list = "consumers")
SWARM_ROUTE(api_post_swarm_feed, add_consumer, 201, .takes_body = true)
SWARM_ROUTE(api_delete_swarm_feed, remove_consumer, 204, .missing = CONSUMER)
SWARM_ROUTE(api_get_swarm_deltas, read_deltas, 200, .list = "records", .missing = CONSUMER)
SWARM_ROUTE(api_post_swarm_acknowledge, acknowledge, 204, .takes_body = true, .missing = CONSUMER)
SWARM_ROUTE(api_post_swarm_check, check, 200)

/* --- consumers --- */

static int list_consumers(struct api_call *c, struct err *err)
{
    struct feed_consumer *list;
    size_t count = 0;
    int code = feed_consumers(c->cache, http_request_arena(c->req), &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        json_out_open(c->w, '{');
        json_out_member_str(c->w, "name", list[i].name);
        json_out_member_u64(c->w, "acknowledged", list[i].acknowledged);
        json_out_member_u64(c->w, "waiting", list[i].waiting);
        json_out_close(c->w, '}');
    }
    return code;
}

static int add_consumer(struct api_call *c, struct err *err)
{
    struct str name = json_get_str(c->body, "name", STR_EMPTY);
    int code;

    if (name.len == 0 || name.len > NAME_MAX_LEN || !str_is_utf8(name))
        return err_set(err, ERR_INVALID, "name is 1 to 64 characters");
    code = feed_add_consumer(c->cache, name, err);
    if (code == ERR_EXISTS)
        return err_set(err, code, "there is a consumer of this name");
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "swarm.consumer_added", log_s("consumer", name));
    json_out_member_str(c->w, "name", name);
    return 0;
}

static int remove_consumer(struct api_call *c, struct err *err)
{
    struct str name = route_param(c->params, "name");
    int code = feed_remove_consumer(c->cache, name, err);

    if (code == 0)
        log_info(http_request_log(c->req), "swarm.consumer_removed", log_s("consumer", name));
    return code;
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
    json_out_member_f64(w, "uploaded", d->uploaded);
    json_out_member_f64(w, "downloaded", d->downloaded);
    json_out_close(w, '}');
}

static int read_deltas(struct api_call *c, struct err *err)
{
    struct arena *a = http_request_arena(c->req);
    struct delta *list;
    size_t max, count = 0;
    int code = api_query_number(c->req, "max", READ_DEFAULT, READ_MAX, &max, err);

    if (code == 0)
        code = feed_read(c->cache, a, route_param(c->params, "name"), max, &list, &count, err);
    for (size_t i = 0; code == 0 && i < count; i++)
        write_delta(c->w, a, &list[i]);
    return code;
}

static int acknowledge(struct api_call *c, struct err *err)
{
    int64_t number = json_get_i64(c->body, "number", -1);
    int code;

    if (number < 0)
        return err_set(err, ERR_INVALID, "number is the last record to acknowledge");
    code = feed_acknowledge(c->cache, route_param(c->params, "name"), (uint64_t)number, err);
    if (code == ERR_RANGE)
        code = err_set(err, ERR_INVALID, "there is no record of this number yet");
    return code;
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

static int check(struct api_call *c, struct err *err)
{
    struct findings findings = {.w = c->w};
    int code;

    json_out_key(c->w, "findings");
    json_out_open(c->w, '[');
    code = cache_check(c->cache, tell, &findings, err);
    json_out_close(c->w, ']');
    json_out_member_u64(c->w, "count", findings.count);
    return code;
}
