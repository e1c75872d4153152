/* Torrents and their peers in the store. */
#include "swarm/cache_int.h"
#include "base/bytes.h"

/* --- finding --- */

static int parse_base36(struct str s, uint64_t *out)
{
    uint64_t n = 0;

    if (s.len == 0 || s.len > 12)
        return ERR_PARSE;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10
                                                : 36;
        if (digit == 36)
            return ERR_PARSE;
        n = n * 36 + digit;
    }
    *out = n;
    return 0;
}

/* Reads a peer's key: <peer id, 20 bytes>:<user>:<torrent>. */
static int read_member(struct str member, struct peer *out, struct err *err)
{
    struct str rest = str_skip(member, PEER_ID_LEN + 1), user, torrent;

    if (member.len <= PEER_ID_LEN || member.p[PEER_ID_LEN] != ':' ||
        !str_cut(rest, ':', &user, &torrent) || parse_base36(user, &out->user_id) < 0 ||
        parse_base36(torrent, &out->torrent_id) < 0)
        return err_set(err, ERR_CORRUPT, "the key of a peer in the store is damaged");
    memcpy(out->id, member.p, PEER_ID_LEN);
    return 0;
}

static int read_peer(const struct reply *pair, struct peer *out, char *state, struct err *err)
{
    struct peer_entry e;
    int code = read_member(pair[0].str, out, err);

    if (code == 0)
        code = peer_entry_read(&e, pair[1].str, err);
    if (code < 0)
        return code;
    bool v6 = e.last6 > e.last4; /* the peer is given the address of its last announce */
    addr_from_compact(&out->addr, v6 ? e.at + COMPACT4_LEN : e.at, v6);
    out->uploaded = e.uploaded;
    out->downloaded = e.downloaded;
    out->left = e.left;
    out->last_announce = (int64_t)e.last;
    out->paused = e.state == 'P';
    *state = e.state;
    return 0;
}

/* Reads all peers of a torrent into one array: seeders from the front, leechers from the back. */
static int read_peers(struct arena *a, const struct reply *entries, struct torrent_peers *out,
                      struct err *err)
{
    size_t count = entries->count / 2;
    struct peer *peers = arena_array(a, count + 1, sizeof(*peers));

    if (!peers)
        return err_code(err, ERR_NO_MEMORY);
    out->seeders = peers;
    out->leechers = peers + count;
    for (size_t i = 0; i < count; i++) {
        struct peer p = {0};
        char state;
        int code = read_peer(&entries->items[2 * i], &p, &state, err);
        if (code < 0)
            return code;
        if (state == 'S') {
            out->seeders[out->seeder_count++] = p;
        } else {
            *--out->leechers = p;
            out->leecher_count++;
        }
    }
    return 0;
}

int cache_find_torrent(struct cache *c, struct arena *a, const uint8_t *info_hash,
                       struct torrent_peers *out, struct err *err)
{
    const struct str args[] = {c->o.prefix, str_n(info_hash, INFO_HASH_LEN)};
    struct reply *reply;
    int code = swarm_eval(c->o.store, a, SCRIPT_swarm_find,
                          &(struct store_args){args, ARRAY_SIZE(args)}, &reply, err);

    *out = (struct torrent_peers){0};
    if (code == 0 && reply_is_nil(reply))
        code = err_set(err, ERR_NOT_FOUND, "no such torrent");
    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && reply->count != 2)
        code = err_set(err, ERR_TYPE, "the store answered no torrent");
    if (code == 0)
        code = torrent_model_read(&out->torrent, &reply->items[0], info_hash, err);
    return code == 0 ? read_peers(a, &reply->items[1], out, err) : code;
}

/* --- torrents --- */

int cache_record_snatch(struct cache *c, struct swarm_user *u, struct torrent *t, struct err *err)
{
    struct cache_call k;

    call_init(&k, c);
    call_key(&k, "user:", str_z(u->passkey));
    call_key(&k, "torrent:", str_n(t->info_hash, INFO_HASH_LEN));
    int code = call_run(&k, SCRIPT_swarm_snatch, err);
    if (code == 0 && reply_is_nil(k.reply))
        code = err_set(err, ERR_NOT_FOUND, "no such user or torrent");
    if (code == 0)
        code = reply_expect(k.reply, REPLY_ARRAY, err);
    if (code == 0 && k.reply->count != 2)
        code = err_set(err, ERR_TYPE, "the store answered no two numbers");
    if (code == 0) {
        u->snatches = (uint64_t)k.reply->items[0].integer;
        t->snatches = (uint64_t)k.reply->items[1].integer;
    }
    call_release(&k);
    return code;
}

static int mark_torrent(struct cache *c, struct torrent *t, bool active, struct err *err)
{
    struct cache_call k;
    int64_t done = 0;

    call_init(&k, c);
    call_key(&k, "torrent:", str_n(t->info_hash, INFO_HASH_LEN));
    call_str(&k, active ? STR("1") : STR("0"));
    int code = call_integer(&k, SCRIPT_swarm_mark, &done, err);
    call_release(&k);
    if (code == 0 && !done)
        code = err_set(err, ERR_NOT_FOUND, "no such torrent");
    if (code == 0)
        t->active = active;
    return code;
}

int cache_mark_active(struct cache *c, struct torrent *t, struct err *err)
{
    return mark_torrent(c, t, true, err);
}

int cache_mark_inactive(struct cache *c, struct torrent *t, struct err *err)
{
    return mark_torrent(c, t, false, err);
}

/* --- peers --- */

/* The script that changes a peer, and the set (seeders or leechers) that it changes. */
struct peer_call {
    enum swarm_script script;
    bool seeder;
};

static void peer_args(struct cache_call *k, const struct torrent *t, const struct peer *p,
                      bool seeder)
{
    uint8_t compact[COMPACT6_LEN];
    size_t len = addr_compact(&p->addr, compact);

    call_str(k, str_n(t->info_hash, INFO_HASH_LEN));
    call_str(k, str_n(p->id, PEER_ID_LEN));
    call_str(k, addr_ip_text(&k->arena, &p->addr));
    call_u64(k, be16_read(p->addr.port));
    call_u64(k, p->uploaded);
    call_u64(k, p->downloaded);
    call_u64(k, p->left);
    call_str(k, arena_str(&k->arena, str_n(compact, len)));
    call_str(k, p->paused ? STR("1") : STR_EMPTY);
    call_str(k, base36(&k->arena, p->user_id));
    call_u64(k, p->user_id);
    call_str(k, seeder ? STR("S") : STR("L"));
}

/* Runs a script that changes a peer. *answer is the number that the script returns. */
static int write_peer(struct cache *c, const struct torrent *t, const struct peer *p,
                      const struct peer_call *what, int64_t *answer, struct err *err)
{
    struct cache_call k;

    if (!peer_id_allowed(p->id))
        return err_set(err, ERR_INVALID, "no peer id may begin with 'torrent:'");
    call_init(&k, c);
    peer_args(&k, t, p, what->seeder);
    if (what->script == SCRIPT_swarm_set) {
        call_u64(&k, t->id);
        call_str(&k, base36(&k.arena, t->id));
    }
    int code = call_integer(&k, what->script, answer, err);
    call_release(&k);
    return code;
}

static int put_peer(struct cache *c, const struct torrent *t, const struct peer *p, bool seeder,
                    bool *moved, struct err *err)
{
    int64_t answer = 0;
    int code = write_peer(c, t, p, &(struct peer_call){SCRIPT_swarm_put, seeder}, &answer, err);

    if (code == 0 && answer < 0)
        code = err_set(err, ERR_NOT_FOUND, "no such torrent");
    *moved = code == 0 && answer == 1;
    return code;
}

int cache_add_seeder(struct cache *c, const struct torrent *t, const struct peer *p,
                     struct err *err)
{
    bool moved;
    return put_peer(c, t, p, true, &moved, err);
}

int cache_add_leecher(struct cache *c, const struct torrent *t, const struct peer *p,
                      struct err *err)
{
    bool moved;
    return put_peer(c, t, p, false, &moved, err);
}

int cache_leecher_finished(struct cache *c, const struct torrent *t, const struct peer *p,
                           bool *moved, struct err *err)
{
    return put_peer(c, t, p, true, moved, err);
}

static int set_peer(struct cache *c, const struct torrent *t, const struct peer *p, bool seeder,
                    struct err *err)
{
    int64_t answer = 0;
    int code = write_peer(c, t, p, &(struct peer_call){SCRIPT_swarm_set, seeder}, &answer, err);

    return code == 0 && answer == 0 ? err_set(err, ERR_NOT_FOUND, "no such peer") : code;
}

int cache_set_seeder(struct cache *c, const struct torrent *t, const struct peer *p,
                     struct err *err)
{
    return set_peer(c, t, p, true, err);
}

int cache_set_leecher(struct cache *c, const struct torrent *t, const struct peer *p,
                      struct err *err)
{
    return set_peer(c, t, p, false, err);
}

static int remove_peer(struct cache *c, const struct torrent *t, const struct peer *p, bool seeder,
                       struct err *err)
{
    struct cache_call k;
    int64_t was;

    call_init(&k, c);
    call_str(&k, base36(&k.arena, t->id));
    call_str(&k, str_n(p->id, PEER_ID_LEN));
    call_str(&k, base36(&k.arena, p->user_id));
    call_str(&k, seeder ? STR("S") : STR("L"));
    int code = call_integer(&k, SCRIPT_swarm_remove, &was, err);
    call_release(&k);
    return code;
}

int cache_remove_seeder(struct cache *c, const struct torrent *t, const struct peer *p,
                        struct err *err)
{
    return remove_peer(c, t, p, true, err);
}

int cache_remove_leecher(struct cache *c, const struct torrent *t, const struct peer *p,
                         struct err *err)
{
    return remove_peer(c, t, p, false, err);
}
