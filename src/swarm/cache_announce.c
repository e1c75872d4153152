/* The announce of the private mode: runs the script and chooses among the peers that it returns. */
#include "swarm/cache_int.h"
#include "base/bytes.h"

enum {
    /* Extra peers to ask for, because some peers belong to the client's own user or are too old. */
    SLACK = 8,
    CANDIDATES = 512, /* most candidates of one address family */
    /* Number of items before the peers in the answer of swarm_announce.lua: counts, time, user. */
    ANSWER_HEAD = 5,
    SCRAPE_FIELDS = 5,
    SCRAPE_PAGE = 1000,
};

/* The reason for a refusal, by the number that swarm_announce.lua returns for it. */
static const enum swarm_failure refusals[] = {
    SWARM_NONE,  SWARM_USER,        SWARM_CLIENT, SWARM_TORRENT, SWARM_PRUNED,
    SWARM_SLOTS, SWARM_UNAVAILABLE, SWARM_FULL,   SWARM_PEERS,
};

/* Peers that may be given out, the preferred ones first. The pointers point into the answer of the
 * script. */
struct candidates {
    const uint8_t *at[CANDIDATES], *ids[CANDIDATES];
    size_t count;
};

struct choice {
    struct candidates four, six;
    struct str user; /* id of the client's user in base 36 */
    uint64_t now, timeout;
    bool seeder, link; /* link: the client may have only a magnet link (announce_maybe_link()) */
};

/* --- choosing --- */

static bool same_user(const struct choice *ch, struct str member)
{
    struct str user = str_skip(member, PEER_ID_LEN + 1);

    return str_starts(user, ch->user) && user.len > ch->user.len && user.p[ch->user.len] == ':';
}

static bool is_fresh(const struct choice *ch, uint64_t last)
{
    return last > 0 && (!ch->timeout || last + ch->timeout > ch->now); /* not too old (I7) */
}

static void add_candidate(struct candidates *list, const uint8_t *at, size_t len, const char *id)
{
    if (list->count == CANDIDATES)
        return;
    /* The script may return a peer with an IPv6 address twice. */
    for (size_t i = 0; i < list->count; i++)
        if (memcmp(list->at[i], at, len) == 0)
            return;
    list->at[list->count] = at;
    list->ids[list->count++] = (const uint8_t *)id;
}

/* Adds peers to the candidates: the seeders among `members`, or with `seeders` false the leechers.
 * `members` are the keys of peers, `entries` their entries in the same order. */
static void take_candidates(struct choice *ch, const struct reply *members,
                            const struct reply *entries, bool seeders)
{
    for (size_t i = 0; i < members->count && i < entries->count; i++) {
        struct str member = members->items[i].str;
        struct peer_entry e;
        if (reply_is_nil(&entries->items[i]) || same_user(ch, member) ||
            peer_entry_read(&e, entries->items[i].str, NULL) < 0 || (e.state == 'S') != seeders)
            continue;
        if (is_fresh(ch, e.last4))
            add_candidate(&ch->four, e.at, COMPACT4_LEN, member.p);
        if (is_fresh(ch, e.last6))
            add_candidate(&ch->six, e.at + COMPACT4_LEN, COMPACT6_LEN, member.p);
    }
}

static void give(struct compact *out, const struct candidates *from, size_t n, size_t len)
{
    out->has_ids = out->ids != NULL;
    for (size_t i = 0; i < n; i++) {
        memcpy(out->at + i * len, from->at[i], len);
        if (out->ids)
            memcpy(out->ids + i * PEER_ID_LEN, from->ids[i], PEER_ID_LEN);
    }
    out->count = n;
}

/* Fills in up to `want` peers. Each address family gets at least a quarter of them, if it has that
 * many candidates. */
static void divide(const struct choice *ch, size_t want, struct announce_answer *out)
{
    size_t have4 = size_min(ch->four.count, out->peers4.max);
    size_t have6 = size_min(ch->six.count, out->peers6.max);
    size_t six = (want + 3) / 4;

    if (have4 + six < want)
        six = want - have4;
    six = size_min(six, have6);
    give(&out->peers4, &ch->four, size_min(have4, want - six), COMPACT4_LEN);
    give(&out->peers6, &ch->six, six, COMPACT6_LEN);
}

static size_t candidates_wanted(const struct cache *c, const struct announce *a,
                                const struct announce_answer *out)
{
    size_t want = a->numwant < 0 ? c->o.numwant : (size_t)a->numwant;

    if (a->event == EVENT_STOPPED)
        return 0;
    want = size_min(want, c->o.max_numwant);
    return size_min(want, out->peers4.max + out->peers6.max);
}

/* --- the announce --- */

static void announce_args(struct cache_call *k, const struct announce *a, size_t want,
                          const struct announce_answer *out)
{
    const struct cache_options *o = &k->cache->o;
    uint8_t compact[COMPACT6_LEN];
    size_t len = addr_compact(&a->addr, compact);
    size_t want6 = !out->peers6.max ? 0 : out->peers4.max ? (want + 3) / 4 : want;

    call_str(k, str_n(a->info_hash, INFO_HASH_LEN));
    call_str(k, str_n(a->peer_id, PEER_ID_LEN));
    call_str(k, addr_ip_text(&k->arena, &a->addr));
    call_u64(k, be16_read(a->addr.port));
    call_u64(k, a->uploaded);
    call_u64(k, a->downloaded);
    call_u64(k, a->left);
    call_str(k, arena_str(&k->arena, str_n(compact, len)));
    call_str(k, a->event == EVENT_PAUSED ? STR("1") : STR_EMPTY);
    call_str(k, a->passkey);
    call_str(k, a->event == EVENT_STOPPED ? STR("1")
                : announce_maybe_link(a)  ? STR("2")
                                          : STR_EMPTY);
    call_u64(k, want && out->peers4.max ? want + SLACK : 0);
    call_u64(k, want6 ? 2 * want6 + SLACK : 0);
    if (o->feed)
        call_u64(k, o->feed_max);
    else
        call_str(k, STR_EMPTY);
    call_u64(k, o->max_peers);
    call_u64(k, o->max_per_user);
}

static int read_count(const struct reply *r, uint32_t *out)
{
    uint64_t n = 0;
    int code = 0;

    if (r->type == REPLY_INTEGER)
        n = r->integer > 0 ? (uint64_t)r->integer : 0;
    else
        code = str_u64(r->str, &n);
    *out = (uint32_t)(n > UINT32_MAX ? UINT32_MAX : n);
    return code;
}

static void take_all_candidates(struct choice *ch, const struct reply *r, bool seeders)
{
    for (size_t i = ANSWER_HEAD; i + 1 < r->count; i += 2)
        take_candidates(ch, &r->items[i], &r->items[i + 1], seeders);
}

/* Reads the script's answer: a head, then lists of the keys and the entries of peers. Peers of the
 * kind that the client prefers (seeders or leechers) become candidates first, so they come first in
 * our answer. */
static int read_announce_answer(const struct reply *r, struct choice *ch,
                                struct announce_answer *out, struct err *err)
{
    if (r->count < ANSWER_HEAD || read_count(&r->items[0], &out->complete) < 0 ||
        read_count(&r->items[1], &out->incomplete) < 0 ||
        read_count(&r->items[2], &out->downloaded) < 0 || str_u64(r->items[3].str, &ch->now) < 0)
        return err_set(err, ERR_TYPE, "the store answered no announce");
    ch->user = r->items[4].str;
    if (!ch->seeder)
        take_all_candidates(ch, r, true);
    take_all_candidates(ch, r, false);
    if (ch->link)
        take_all_candidates(ch, r, true);
    return 0;
}

int cache_announce(struct cache *c, const struct announce *a, struct announce_answer *out,
                   struct err *err)
{
    struct choice ch = {
        .timeout = c->o.peer_timeout_s, .seeder = a->left == 0, .link = announce_maybe_link(a)};
    struct cache_call k;

    announce_answer_reset(out);
    if (a->passkey.len != PASSKEY_LEN || !peer_id_allowed(a->peer_id)) {
        out->failure = a->passkey.len != PASSKEY_LEN ? SWARM_PASSKEY : SWARM_MALFORMED;
        return 0;
    }
    size_t want = candidates_wanted(c, a, out);
    call_init(&k, c);
    announce_args(&k, a, want, out);
    int code = call_run(&k, SCRIPT_swarm_announce, err);
    if (code == 0 && k.reply->type == REPLY_INTEGER) {
        uint64_t refusal = (uint64_t)k.reply->integer;
        out->failure = refusal < ARRAY_SIZE(refusals) ? refusals[refusal] : SWARM_UNAVAILABLE;
    } else if (code == 0) {
        code = reply_expect(k.reply, REPLY_ARRAY, err);
        if (code == 0)
            code = read_announce_answer(k.reply, &ch, out, err);
        if (code == 0)
            divide(&ch, want, out);
    }
    call_release(&k);
    return code;
}

/* --- scrape --- */

static int scrape_page(struct cache *c, const uint8_t *hashes, size_t count,
                       struct scrape_entry *out, struct err *err)
{
    struct arena a = ARENA_INIT(CACHE_CALL_MAX);
    struct str *args = arena_array(&a, count + 1, sizeof(*args));
    struct reply *r = NULL;
    int code = args ? 0 : err_code(err, ERR_NO_MEMORY);

    if (code == 0) {
        args[0] = c->o.prefix;
        for (size_t i = 0; i < count; i++)
            args[i + 1] = str_n(hashes + i * INFO_HASH_LEN, INFO_HASH_LEN);
        code = swarm_eval(c->o.store, &a, SCRIPT_swarm_scrape,
                          &(struct store_args){args, count + 1}, &r, err);
    }
    if (code == 0)
        code = reply_expect(r, REPLY_ARRAY, err);
    if (code == 0 && r->count != count * SCRAPE_FIELDS)
        code = err_set(err, ERR_TYPE, "the store answered %zu of %zu fields", r->count,
                       count * SCRAPE_FIELDS);
    for (size_t i = 0; code == 0 && i < count; i++) {
        const struct reply *f = &r->items[i * SCRAPE_FIELDS];
        uint32_t paused = (uint32_t)f[4].integer;
        out[i] = (struct scrape_entry){.known = f[0].integer == 1,
                                       .complete = (uint32_t)f[1].integer,
                                       .incomplete = (uint32_t)f[2].integer,
                                       .downloaded = (uint32_t)f[3].integer};
        out[i].downloaders = out[i].incomplete > paused ? out[i].incomplete - paused : 0;
    }
    arena_release(&a);
    return code;
}

int cache_scrape(struct cache *c, const uint8_t *hashes, size_t count, struct scrape_entry *out,
                 struct err *err)
{
    int code = 0;

    for (size_t at = 0; code == 0 && at < count; at += SCRAPE_PAGE)
        code = scrape_page(c, hashes + at * INFO_HASH_LEN, size_min(count - at, SCRAPE_PAGE),
                           out + at, err);
    return code;
}
