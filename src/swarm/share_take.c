/* The take-over: loads the swarms that are in the store into memory, first the torrents that
 * clients announce, then all other torrents, one after the other. Our own changes are written
 * before each step, so that the store never gives us peers that are older than our changes. */
#include "swarm/share_int.h"

#include "base/hash.h"

enum { TORRENTS = 100, PEERS = 500, SHARE_READ_MAX = 16 * 1024 * 1024 };

void share_ask(struct share *s, const uint8_t *info_hash)
{
    uint64_t hash = hash_xxh3(str_n(info_hash, INFO_HASH_LEN), 0);
    uint64_t *seen = &s->seen[hash % ASKED_SEEN];

    if (!s->taking || *seen == hash || s->asked_count == ASKED_MAX)
        return;
    *seen = hash;
    memcpy(s->asked[s->asked_count++], info_hash, INFO_HASH_LEN);
}

/* Adds a peer with one of its addresses to the swarms in memory, unless its last announce is too
 * old. */
static void take_addr(struct share *s, struct announce *a, const uint8_t *at, uint64_t ago)
{
    uint64_t timeout = s->o.peer_timeout_s ? s->o.peer_timeout_s : UINT32_MAX;

    if (ago >= timeout)
        return;
    addr_from_compact(&a->addr, at, a->addr.v6);
    swarms_take(s->o.swarms, a, s->o.now(s->o.ctx), (uint32_t)ago);
}

/* Adds the peers of a torrent to the swarms in memory. `pairs` has the key of the first peer, its
 * entry, the key of the second peer, and so on. */
static void take_shared_peers(struct share *s, struct str info_hash, const struct reply *pairs,
                              uint64_t now)
{
    for (size_t i = 0; i + 1 < pairs->count; i += 2) {
        struct str member = pairs->items[i].str;
        struct peer_entry e;
        if (member.len < PEER_ID_LEN || peer_entry_read(&e, pairs->items[i + 1].str, NULL) < 0)
            continue;
        struct announce a = {.info_hash = (const uint8_t *)info_hash.p,
                             .peer_id = (const uint8_t *)member.p,
                             .left = e.state != 'S',
                             .event = e.state == 'P' ? EVENT_PAUSED : EVENT_NONE};
        if (e.last4)
            take_addr(s, &a, e.at, now > e.last4 ? now - e.last4 : 0);
        a.addr.v6 = true;
        if (e.last6)
            take_addr(s, &a, e.at + COMPACT4_LEN, now > e.last6 ? now - e.last6 : 0);
    }
}

/* Reads the store's time from the answer of share_torrent.lua or share_page.lua. */
static int read_page_head(const struct reply *r, uint64_t *now, struct err *err)
{
    int code = reply_expect(r, REPLY_ARRAY, err);

    if (code == 0 && (r->count < 2 || str_u64(r->items[0].str, now) < 0))
        code = err_set(err, ERR_TYPE, "the store answered no swarms");
    return code;
}

static int take_torrent_page(struct share *s, struct str info_hash, struct buf *cursor,
                             struct err *err)
{
    struct arena a = ARENA_INIT(SHARE_READ_MAX);
    const struct str args[] = {s->o.cache->o.prefix, info_hash, buf_str(cursor),
                               arena_fmt(&a, "%d", PEERS)};
    struct reply *r;
    uint64_t now;
    int code = swarm_eval(s->o.store, &a, SCRIPT_share_torrent,
                          &(struct store_args){args, ARRAY_SIZE(args)}, &r, err);

    if (code == 0)
        code = read_page_head(r, &now, err);
    if (code == 0) {
        if (r->count == 3)
            take_shared_peers(s, info_hash, &r->items[2], now);
        buf_reset(cursor);
        buf_append_str(cursor, r->items[1].str);
    }
    arena_release(&a);
    return code;
}

static int take_shared_torrent(struct share *s, struct str info_hash, struct err *err)
{
    struct buf cursor = {0};
    int code;

    buf_append_z(&cursor, "0");
    do {
        code = take_torrent_page(s, info_hash, &cursor, err);
    } while (code == 0 && !str_eq(buf_str(&cursor), STR("0")));
    buf_release(&cursor);
    return code;
}

/* Loads the next page of torrents. A swarm that is too large for the page comes without peers and
 * is loaded on its own. */
static int take_page(struct share *s, struct err *err)
{
    struct arena a = ARENA_INIT(SHARE_READ_MAX);
    const struct str args[] = {s->o.cache->o.prefix, buf_str(&s->cursor),
                               arena_fmt(&a, "%d", TORRENTS), arena_fmt(&a, "%d", PEERS)};
    struct reply *r;
    uint64_t now;
    int code = swarm_eval(s->o.store, &a, SCRIPT_share_page,
                          &(struct store_args){args, ARRAY_SIZE(args)}, &r, err);

    if (code == 0)
        code = read_page_head(r, &now, err);
    for (size_t i = 2; code == 0 && i + 1 < r->count; i += 2) {
        if (r->items[i].str.len != INFO_HASH_LEN)
            continue;
        if (r->items[i + 1].count)
            take_shared_peers(s, r->items[i].str, &r->items[i + 1], now);
        else
            code = take_shared_torrent(s, r->items[i].str, err);
    }
    if (code == 0) {
        buf_reset(&s->cursor);
        buf_append_str(&s->cursor, r->items[1].str);
    }
    arena_release(&a);
    return code;
}

/* Moves a torrent from the list of announced torrents to `out`. False: the list is empty. */
static bool next_asked(struct share *s, uint8_t out[INFO_HASH_LEN])
{
    mutex_lock(&s->lock);
    bool any = s->asked_count > 0;
    if (any)
        memcpy(out, s->asked[--s->asked_count], INFO_HASH_LEN);
    mutex_unlock(&s->lock);
    return any;
}

static void share_take_begin(struct share *s)
{
    mutex_lock(&s->lock);
    if (s->anew) {
        s->anew = false;
        s->taking = true;
        memset(s->seen, 0, sizeof(s->seen));
        buf_reset(&s->cursor);
        buf_append_z(&s->cursor, "0");
    }
    mutex_unlock(&s->lock);
}

bool share_take(struct share *s, int *code, struct err *err)
{
    uint8_t hash[INFO_HASH_LEN];

    *code = 0;
    share_take_begin(s);
    if (!s->taking)
        return false;
    if (next_asked(s, hash)) {
        *code = take_shared_torrent(s, str_n(hash, sizeof(hash)), err);
        return true;
    }
    *code = take_page(s, err);
    if (*code == 0 && str_eq(buf_str(&s->cursor), STR("0"))) {
        mutex_lock(&s->lock);
        s->taking = false;
        s->asked_count = 0;
        mutex_unlock(&s->lock);
    }
    return true;
}
