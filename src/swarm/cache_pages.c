/* Walks over all torrents, users and clients; removal of old peers; the check of the invariants. */
#include "swarm/cache_int.h"

enum {
    PAGE = 200, /* about how many torrents or users a script reads */
    CHECK_PAGE = 100,
    CLIENTS_MAX = 4 * 1024 * 1024, /* largest list of approved clients, in bytes */
};

/* --- pages --- */

typedef int item_fn(void *ctx, struct str name, const struct reply *fields, struct err *err);

/* Copies the cursor of an answer, from which the next call continues. */
static int next_cursor(struct buf *cursor, const struct reply *r, struct err *err)
{
    int code = reply_expect(r, REPLY_BULK, err);

    buf_reset(cursor);
    if (code == 0)
        buf_append_str(cursor, r->str);
    return code;
}

static int read_model_page(struct cache *c, const char *kind, struct buf *cursor, item_fn *fn,
                           void *ctx, struct err *err)
{
    struct arena a = {0};
    const struct str args[] = {c->o.prefix, str_z(kind), buf_str(cursor),
                               arena_fmt(&a, "%d", PAGE)};
    struct reply *r;
    int code = swarm_eval(c->o.store, &a, SCRIPT_swarm_page,
                          &(struct store_args){args, ARRAY_SIZE(args)}, &r, err);

    if (code == 0)
        code = reply_expect(r, REPLY_ARRAY, err);
    if (code == 0 && r->count == 0)
        code = err_set(err, ERR_TYPE, "the store answered no page");
    for (size_t i = 1; code == 0 && i + 1 < r->count; i += 2)
        code = fn(ctx, r->items[i].str, &r->items[i + 1], err);
    if (code == 0)
        code = next_cursor(cursor, &r->items[0], err);
    arena_release(&a);
    return code;
}

static int each_model(struct cache *c, const char *kind, item_fn *fn, void *ctx, struct err *err)
{
    struct buf cursor = {0};
    int code;

    buf_append_z(&cursor, "0");
    do {
        code = read_model_page(c, kind, &cursor, fn, ctx, err);
    } while (code == 0 && !str_eq(buf_str(&cursor), STR("0")));
    buf_release(&cursor);
    return code;
}

struct torrents {
    cache_torrent_fn *fn;
    void *ctx;
};

static int tell_torrent(void *ctx, struct str name, const struct reply *fields, struct err *err)
{
    const struct torrents *o = ctx;
    struct torrent t;

    if (name.len != INFO_HASH_LEN)
        return err_set(err, ERR_CORRUPT, "an info hash in the store is not of 20 bytes");
    int code = torrent_model_read(&t, fields, (const uint8_t *)name.p, err);
    return code == 0 ? o->fn(o->ctx, &t, err) : code;
}

int cache_each_torrent(struct cache *c, cache_torrent_fn *fn, void *ctx, struct err *err)
{
    return each_model(c, "torrent", tell_torrent, &(struct torrents){fn, ctx}, err);
}

struct users {
    cache_user_fn *fn;
    void *ctx;
};

static int tell_user(void *ctx, struct str name, const struct reply *fields, struct err *err)
{
    const struct users *o = ctx;
    struct swarm_user u;
    int code = swarm_user_read(&u, fields, err);

    return code == 0 ? o->fn(o->ctx, &u, err) : code;
}

int cache_each_user(struct cache *c, cache_user_fn *fn, void *ctx, struct err *err)
{
    return each_model(c, "user", tell_user, &(struct users){fn, ctx}, err);
}

int cache_each_client(struct cache *c, cache_client_fn *fn, void *ctx, struct err *err)
{
    struct arena a = ARENA_INIT(CLIENTS_MAX);
    struct reply *r;
    int code = store_call(c->o.store, &a, &r, err, STR("SMEMBERS"),
                          cache_key(c, &a, "whitelist", STR_EMPTY));

    if (code == 0)
        code = reply_expect(r, REPLY_ARRAY, err);
    for (size_t i = 0; code == 0 && i < r->count; i++)
        code = fn(ctx, r->items[i].str, err);
    arena_release(&a);
    return code;
}

/* --- the reaper --- */

int cache_reap(struct cache *c, uint64_t timeout_s, size_t limit, size_t *gone, struct err *err)
{
    struct cache_call k;
    int64_t n = 0;

    call_init(&k, c);
    call_u64(&k, timeout_s);
    call_u64(&k, limit);
    int code = call_integer(&k, SCRIPT_swarm_reap, &n, err);
    call_release(&k);
    *gone = code == 0 ? (size_t)n : 0;
    return code;
}

/* --- the check --- */

struct finding {
    cache_finding_fn *fn;
    void *ctx;
};

static int check_model_keys(struct cache *c, const struct reply *keys, size_t from,
                            const struct finding *f, struct err *err)
{
    struct arena a = {0};
    struct str args[CHECK_PAGE + 1] = {c->o.prefix};
    size_t count = 1;
    struct reply *r;

    for (size_t i = from; i < keys->count && count <= CHECK_PAGE; i++)
        args[count++] = keys->items[i].str;
    int code =
        swarm_eval(c->o.store, &a, SCRIPT_swarm_check, &(struct store_args){args, count}, &r, err);
    if (code == 0)
        code = reply_expect(r, REPLY_ARRAY, err);
    for (size_t i = 0; code == 0 && i + 1 < r->count; i += 2)
        f->fn(f->ctx, arena_z(&a, r->items[i].str), r->items[i + 1].str);
    arena_release(&a);
    return code;
}

static int check_model_page(struct cache *c, struct buf *cursor, struct str pattern,
                            const struct finding *f, struct err *err)
{
    struct arena a = {0};
    struct reply *r;
    int code = store_call(c->o.store, &a, &r, err, STR("SCAN"), buf_str(cursor), STR("MATCH"),
                          pattern, STR("COUNT"), STR("1000"));

    if (code == 0)
        code = reply_expect(r, REPLY_ARRAY, err);
    if (code == 0 && r->count != 2)
        code = err_set(err, ERR_TYPE, "the store answered no page");
    for (size_t i = 0; code == 0 && i < r->items[1].count; i += CHECK_PAGE)
        code = check_model_keys(c, &r->items[1], i, f, err);
    if (code == 0)
        code = next_cursor(cursor, &r->items[0], err);
    arena_release(&a);
    return code;
}

int cache_check(struct cache *c, cache_finding_fn *fn, void *ctx, struct err *err)
{
    struct buf cursor = {0}, pattern = {0};
    int code;

    store_pattern_part(&pattern, c->o.prefix);
    buf_append_z(&pattern, "*");
    buf_append_z(&cursor, "0");
    do {
        code = check_model_page(c, &cursor, buf_str(&pattern), &(struct finding){fn, ctx}, err);
    } while (code == 0 && !str_eq(buf_str(&cursor), STR("0")));
    buf_release(&cursor);
    buf_release(&pattern);
    return code;
}
