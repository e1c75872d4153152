/* The cache (cache.h): opening; users, approved clients, adding and removing torrents; the
 * functions that run scripts. */
#include "swarm/cache_int.h"

#include "base/ids.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

/* --- opening --- */

int cache_open(struct cache **out, const struct cache_options *o, struct err *err)
{
    struct cache *c = calloc(1, sizeof(*c));

    if (!c)
        return err_code(err, ERR_NO_MEMORY);
    c->o = *o;
    c->prefix = str_dup(o->prefix);
    c->o.prefix = str_n(c->prefix, o->prefix.len);
    if (!c->o.numwant)
        c->o.numwant = NUMWANT_STANDARD;
    if (!c->o.max_numwant)
        c->o.max_numwant = NUMWANT_MOST;
    if (!c->o.feed_max)
        c->o.feed_max = FEED_STANDARD_MAX;
    struct buf name = {0};
    buf_append_str(&name, o->prefix);
    /* All databases of a store server share its channels, so the name contains the database's
     * number. */
    buf_appendf(&name, "swarm:%d", store_number(o->store));
    c->channel_name.len = name.len;
    c->channel = buf_take(&name);
    c->channel_name.p = c->channel;
    *out = c;
    return 0;
}

void cache_close(struct cache *c)
{
    if (!c)
        return;
    free(c->prefix);
    free(c->channel);
    free(c);
}

struct str cache_channel(const struct cache *c)
{
    return c->channel_name;
}

/* --- calls --- */

void call_init(struct cache_call *k, struct cache *c)
{
    *k = (struct cache_call){.cache = c, .arena = ARENA_INIT(CACHE_CALL_MAX)};
    call_str(k, c->o.prefix);
}

void call_release(struct cache_call *k)
{
    arena_release(&k->arena);
}

void call_str(struct cache_call *k, struct str s)
{
    BUG_ON(k->count == CACHE_ARGS_MAX);
    k->args[k->count++] = s;
}

static struct str number_text(struct arena *a, uint64_t n, unsigned base)
{
    enum { DIGITS_MAX = 20 }; /* digits of 2^64 - 1 in base 10 */
    char text[DIGITS_MAX];
    size_t at = DIGITS_MAX;

    do {
        text[--at] = "0123456789abcdefghijklmnopqrstuvwxyz"[n % base];
        n /= base;
    } while (n);
    return arena_str(a, str_n(text + at, DIGITS_MAX - at));
}

struct str base36(struct arena *a, uint64_t n)
{
    return number_text(a, n, 36);
}

void call_u64(struct cache_call *k, uint64_t n)
{
    call_str(k, number_text(&k->arena, n, 10));
}

void call_i64(struct cache_call *k, int64_t n)
{
    call_str(k, arena_fmt(&k->arena, "%lld", (long long)n));
}

/* Adds the shortest text that reads back as the same number. */
void call_double(struct cache_call *k, double d)
{
    struct str text = STR_EMPTY;

    for (int digits = 15; digits <= 17; digits++) {
        text = arena_fmt(&k->arena, "%.*g", digits, d);
        if (text.len && strtod(text.p, NULL) == d)
            break;
    }
    call_str(k, text);
}

struct str cache_key(const struct cache *c, struct arena *a, const char *kind, struct str rest)
{
    struct str head = str_z(kind);
    char *p = arena_alloc(a, c->o.prefix.len + head.len + rest.len + 1);

    if (!p)
        return STR_EMPTY;
    if (c->o.prefix.len)
        memcpy(p, c->o.prefix.p, c->o.prefix.len);
    memcpy(p + c->o.prefix.len, head.p, head.len);
    if (rest.len)
        memcpy(p + c->o.prefix.len + head.len, rest.p, rest.len);
    return str_n(p, c->o.prefix.len + head.len + rest.len);
}

void call_key(struct cache_call *k, const char *kind, struct str rest)
{
    call_str(k, cache_key(k->cache, &k->arena, kind, rest));
}

int call_run(struct cache_call *k, enum swarm_script which, struct err *err)
{
    if (arena_error(&k->arena) < 0)
        return err_code(err, ERR_NO_MEMORY);
    return swarm_eval(k->cache->o.store, &k->arena, which, &(struct store_args){k->args, k->count},
                      &k->reply, err);
}

int call_integer(struct cache_call *k, enum swarm_script which, int64_t *out, struct err *err)
{
    int code = call_run(k, which, err);

    if (code == 0)
        code = reply_expect(k->reply, REPLY_INTEGER, err);
    if (code == 0)
        *out = k->reply->integer;
    return code;
}

/* --- peer ids and addresses --- */

bool peer_id_allowed(const uint8_t *peer_id)
{
    return !str_starts(str_n(peer_id, PEER_ID_LEN), STR("torrent:"));
}

size_t addr_compact(const struct peer_addr *addr, uint8_t out[COMPACT6_LEN])
{
    size_t len = addr->v6 ? 16 : 4;

    memcpy(out, addr->ip, len);
    memcpy(out + len, addr->port, 2);
    return len + 2;
}

void addr_from_compact(struct peer_addr *out, const uint8_t *at, bool v6)
{
    size_t len = v6 ? 16 : 4;

    *out = (struct peer_addr){.v6 = v6};
    memcpy(out->ip, at, len);
    memcpy(out->port, at + len, 2);
}

struct str addr_ip_text(struct arena *a, const struct peer_addr *addr)
{
    char text[IP_TEXT_MAX];

    inet_ntop(addr->v6 ? AF_INET6 : AF_INET, addr->ip, text, sizeof(text));
    return arena_str(a, str_z(text));
}

/* --- users --- */

static int check_passkey(struct str passkey, struct err *err)
{
    if (passkey.len != PASSKEY_LEN)
        return err_set(err, ERR_INVALID, "a passkey has %d characters", PASSKEY_LEN);
    return 0;
}

int cache_find_user(struct cache *c, struct str passkey, struct swarm_user *out, struct err *err)
{
    struct cache_call k;

    if (passkey.len != PASSKEY_LEN)
        return err_set(err, ERR_NOT_FOUND, "no such user");
    call_init(&k, c);
    int code = store_call(c->o.store, &k.arena, &k.reply, err, STR("HGETALL"),
                          cache_key(c, &k.arena, "user:", passkey));
    if (code == 0)
        code = reply_expect(k.reply, REPLY_ARRAY, err);
    if (code == 0 && k.reply->count == 0)
        code = err_set(err, ERR_NOT_FOUND, "no such user");
    if (code == 0)
        code = swarm_user_read(out, k.reply, err);
    call_release(&k);
    return code;
}

/* Reads the answer of a script that adds a torrent or a user: the new id, or nil if another torrent
 * or user has the wanted id. */
static int read_model_id(const struct reply *r, uint64_t *id, struct err *err)
{
    if (reply_is_nil(r))
        return err_set(err, ERR_EXISTS, "the id %llu is another's", (unsigned long long)*id);
    int code = reply_expect(r, REPLY_BULK, err);
    if (code == 0 && str_u64(r->str, id) < 0)
        code = err_set(err, ERR_CORRUPT, "an id in the store is no number");
    return code;
}

int cache_add_user(struct cache *c, struct swarm_user *u, struct err *err)
{
    struct cache_call k;
    int code = check_passkey(str_z(u->passkey), err);

    if (code == 0 && u->id > SWARM_ID_MAX)
        code = err_set(err, ERR_RANGE, "the id of a user is too large");
    if (code < 0)
        return code;
    call_init(&k, c);
    call_str(&k, c->channel_name);
    call_str(&k, str_z(u->passkey));
    call_u64(&k, u->id);
    call_double(&k, u->up_multiplier);
    call_double(&k, u->down_multiplier);
    call_i64(&k, u->slots);
    call_i64(&k, u->slots_used);
    call_u64(&k, u->snatches);
    code = call_run(&k, SCRIPT_swarm_add_user, err);
    if (code == 0)
        code = read_model_id(k.reply, &u->id, err);
    call_release(&k);
    return code;
}

int cache_remove_user(struct cache *c, struct str passkey, struct err *err)
{
    struct cache_call k;
    int64_t was = 0;

    call_init(&k, c);
    call_str(&k, c->channel_name);
    call_str(&k, passkey);
    int code = call_integer(&k, SCRIPT_swarm_remove_user, &was, err);
    call_release(&k);
    return code == 0 && !was ? err_set(err, ERR_NOT_FOUND, "no such user") : code;
}

static int add_slots(struct cache *c, struct swarm_user *u, const char *by, struct err *err)
{
    struct cache_call k;

    call_init(&k, c);
    call_key(&k, "user:", str_z(u->passkey));
    call_str(&k, str_z(by));
    int code = call_run(&k, SCRIPT_swarm_slots, err);
    if (code == 0 && reply_is_nil(k.reply))
        code = err_set(err, ERR_NOT_FOUND, "no such user");
    if (code == 0)
        code = reply_expect(k.reply, REPLY_INTEGER, err);
    if (code == 0)
        u->slots_used = k.reply->integer;
    call_release(&k);
    return code;
}

int cache_increment_slots(struct cache *c, struct swarm_user *u, struct err *err)
{
    return add_slots(c, u, "1", err);
}

int cache_decrement_slots(struct cache *c, struct swarm_user *u, struct err *err)
{
    return add_slots(c, u, "-1", err);
}

/* --- torrents: adding and removing --- */

static int put_torrent(struct cache *c, struct torrent *t, bool offered, struct err *err)
{
    struct cache_call k;

    if (t->id > SWARM_ID_MAX)
        return err_set(err, ERR_RANGE, "the id of a torrent is too large");
    call_init(&k, c);
    call_str(&k, c->channel_name);
    call_str(&k, str_n(t->info_hash, INFO_HASH_LEN));
    call_u64(&k, t->id);
    call_str(&k, t->active ? STR("1") : STR("0"));
    call_u64(&k, t->snatches);
    call_double(&k, t->up_multiplier);
    call_double(&k, t->down_multiplier);
    call_i64(&k, t->last_action);
    call_str(&k, offered ? STR("1") : STR_EMPTY);
    int code = call_run(&k, SCRIPT_swarm_add_torrent, err);
    if (code == 0)
        code = read_model_id(k.reply, &t->id, err);
    call_release(&k);
    return code;
}

int cache_add_torrent(struct cache *c, struct torrent *t, struct err *err)
{
    return put_torrent(c, t, false, err);
}

int cache_offer_torrent(struct cache *c, struct torrent *t, struct err *err)
{
    int code = put_torrent(c, t, true, err);

    return code == 0 && t->id == 0 ? err_set(err, ERR_PRECONDITION, "it was withdrawn") : code;
}

int cache_torrent_listed(struct cache *c, const uint8_t *info_hash, bool *out, struct err *err)
{
    struct arena a = ARENA_INIT(CACHE_CALL_MAX);
    struct str hash = str_n(info_hash, INFO_HASH_LEN);
    const struct str there[] = {STR("EXISTS"), cache_key(c, &a, "torrent:", hash)};
    const struct str off[] = {STR("SISMEMBER"), cache_key(c, &a, WITHDRAWN_KEY, STR_EMPTY), hash};
    const struct store_args both[] = {{there, ARRAY_SIZE(there)}, {off, ARRAY_SIZE(off)}};
    struct reply *r = NULL;
    int code = store_pipeline(c->o.store, &a, &r, both, ARRAY_SIZE(both), err);

    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(both); i++)
        code = reply_expect(&r->items[i], REPLY_INTEGER, err);
    if (code == 0)
        *out = r->items[0].integer && !r->items[1].integer;
    arena_release(&a);
    return code;
}

static int drop_torrent(struct cache *c, const uint8_t *info_hash, bool withdrawn, struct err *err)
{
    struct cache_call k;
    int64_t was = 0;

    call_init(&k, c);
    call_str(&k, c->channel_name);
    call_str(&k, str_n(info_hash, INFO_HASH_LEN));
    call_str(&k, withdrawn ? STR("1") : STR_EMPTY);
    int code = call_integer(&k, SCRIPT_swarm_remove_torrent, &was, err);
    call_release(&k);
    return code == 0 && !was ? err_set(err, ERR_NOT_FOUND, "no such torrent") : code;
}

int cache_remove_torrent(struct cache *c, const uint8_t *info_hash, struct err *err)
{
    return drop_torrent(c, info_hash, false, err);
}

int cache_withdraw_torrent(struct cache *c, const uint8_t *info_hash, struct err *err)
{
    return drop_torrent(c, info_hash, true, err);
}

/* --- clients --- */

int cache_client_whitelisted(struct cache *c, struct str client, bool *out, struct err *err)
{
    struct cache_call k;

    call_init(&k, c);
    int code = store_call(c->o.store, &k.arena, &k.reply, err, STR("SISMEMBER"),
                          cache_key(c, &k.arena, "whitelist", STR_EMPTY), client);
    if (code == 0)
        code = reply_expect(k.reply, REPLY_INTEGER, err);
    if (code == 0)
        *out = k.reply->integer == 1;
    call_release(&k);
    return code;
}

static int change_client(struct cache *c, const char *command, struct str client, struct err *err)
{
    struct cache_call k;
    int64_t done;

    if (client.len == 0 || client.len > PEER_ID_LEN)
        return err_set(err, ERR_INVALID, "a client is 1 to %d bytes, the beginning of its peer ids",
                       PEER_ID_LEN);
    call_init(&k, c);
    call_str(&k, c->channel_name);
    call_str(&k, str_z(command));
    call_str(&k, client);
    int code = call_integer(&k, SCRIPT_swarm_client, &done, err);
    call_release(&k);
    return code;
}

int cache_whitelist_client(struct cache *c, struct str client, struct err *err)
{
    return change_client(c, "SADD", client, err);
}

int cache_unwhitelist_client(struct cache *c, struct str client, struct err *err)
{
    return change_client(c, "SREM", client, err);
}

int cache_shared_key(struct cache *c, uint8_t key[16], struct err *err)
{
    struct cache_call k;

    call_init(&k, c);
    call_str(&k, str_n(key, 16));
    int code = call_run(&k, SCRIPT_swarm_key, err);
    if (code == 0)
        code = reply_expect(k.reply, REPLY_BULK, err);
    if (code == 0 && k.reply->str.len != 16)
        code = err_set(err, ERR_CORRUPT, "the key of connection ids is not of 16 bytes");
    if (code == 0)
        memcpy(key, k.reply->str.p, 16);
    call_release(&k);
    return code;
}
