/* What the suites of the cache share. */
#include "unit/swarm/cache_helpers.h"
#include "base/clock.h"

#include <stdio.h>

struct store *swarm_store(struct four *f)
{
    return f->stores[DB_SWARM];
}

struct cache *cache_with(struct cache_options o)
{
    struct err err = {0};
    struct cache *c;

    CHECK_OK(cache_open(&c, &o, &err));
    return c;
}

struct tracker_options tracker_options_on(struct four *f, struct cache *c)
{
    return (struct tracker_options){.interval_s = 1800,
                                    .min_interval_s = 900,
                                    .peer_timeout_s = 2700,
                                    .numwant = 50,
                                    .max_numwant = 200,
                                    .max_scrape = 74,
                                    .max_torrents = 1000,
                                    .max_peers = 1000,
                                    .snapshot_ms = MS_PER_MINUTE,
                                    .cache = c,
                                    .store = swarm_store(f)};
}

struct cache *cache_on(struct four *f)
{
    return cache_with((struct cache_options){.store = swarm_store(f)});
}

struct str passkey_of(char c)
{
    static _Thread_local char keys[128][PASSKEY_LEN];

    memset(keys[(int)c], c, PASSKEY_LEN);
    return str_n(keys[(int)c], PASSKEY_LEN);
}

const uint8_t *hash_of(char c)
{
    static _Thread_local uint8_t hashes[128][INFO_HASH_LEN];

    memset(hashes[(int)c], c, INFO_HASH_LEN);
    return hashes[(int)c];
}

const uint8_t *peer_id_of(unsigned n)
{
    static _Thread_local char ids[8][PEER_ID_LEN + 1];
    static _Thread_local unsigned at;
    char *id = ids[at++ % 8];

    snprintf(id, PEER_ID_LEN + 1, "-TS0001-%012u", n);
    return (const uint8_t *)id;
}

struct swarm_user add_user(struct cache *c, char name, int64_t slots)
{
    struct swarm_user u = {.up_multiplier = 1, .down_multiplier = 1, .slots = slots};
    struct err err = {0};

    memcpy(u.passkey, passkey_of(name).p, PASSKEY_LEN);
    CHECK_OK(cache_add_user(c, &u, &err));
    return u;
}

struct torrent add_torrent(struct cache *c, char name)
{
    struct torrent t = {.active = true, .up_multiplier = 1, .down_multiplier = 1};
    struct err err = {0};

    memcpy(t.info_hash, hash_of(name), INFO_HASH_LEN);
    CHECK_OK(cache_add_torrent(c, &t, &err));
    return t;
}

struct swarm_user user_now(struct cache *c, char name)
{
    struct swarm_user u;
    struct err err = {0};

    CHECK_OK(cache_find_user(c, passkey_of(name), &u, &err));
    return u;
}

struct torrent_peers torrent_now(struct cache *c, struct arena *a, char name)
{
    struct torrent_peers t;
    struct err err = {0};

    CHECK_OK(cache_find_torrent(c, a, hash_of(name), &t, &err));
    return t;
}

static struct peer_addr addr_of(unsigned n)
{
    return (struct peer_addr){.ip = {10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n},
                              .port = {6881 >> 8, 6881 & 255}};
}

struct announce announce_of(char u, char t, unsigned n, uint64_t left, enum announce_event event)
{
    return (struct announce){.info_hash = hash_of(t),
                             .peer_id = peer_id_of(n),
                             .addr = addr_of(n),
                             .left = left,
                             .event = event,
                             .numwant = NUMWANT_DEFAULT,
                             .passkey = passkey_of(u)};
}

struct peer peer_of(const struct swarm_user *u, unsigned n, uint64_t left)
{
    struct peer p = {.user_id = u->id, .addr = addr_of(n), .left = left};

    memcpy(p.id, peer_id_of(n), PEER_ID_LEN);
    return p;
}

void answer_init(struct answer *out)
{
    out->a.peers4 = (struct compact){.at = out->at4, .max = 200, .ids = out->ids4};
    out->a.peers6 = (struct compact){.at = out->at6, .max = 200, .ids = out->ids6};
}

enum swarm_failure announce(struct cache *c, struct announce a, struct answer *out)
{
    struct err err = {0};

    answer_init(out);
    CHECK_OK(cache_announce(c, &a, &out->a, &err));
    return out->a.failure;
}

enum swarm_failure announce_now(struct cache *c, char u, char t, unsigned n, uint64_t left,
                                enum announce_event event)
{
    struct answer out;

    return announce(c, announce_of(u, t, n, left, event), &out);
}

static void found(void *ctx, const char *invariant, struct str key)
{
    test_fail(__FILE__, __LINE__, "%s: " STR_FMT, invariant, STR_ARG(key));
}

void check_invariants(struct cache *c)
{
    struct err err = {0};

    CHECK_OK(cache_check(c, found, NULL, &err));
}

struct wanted {
    const char *invariant;
    bool found;
};

static void look(void *ctx, const char *invariant, struct str key)
{
    struct wanted *w = ctx;

    if (strcmp(invariant, w->invariant) == 0)
        w->found = true;
}

bool invariant_broken(struct cache *c, const char *invariant)
{
    struct wanted w = {.invariant = invariant};
    struct err err = {0};

    CHECK_OK(cache_check(c, look, &w, &err));
    return w.found;
}

const char *store_says(struct store *s, const struct str *argv, size_t argc)
{
    static _Thread_local char text[4096];
    struct arena a = {0};
    struct buf b = {0};
    struct reply *r;
    struct err err = {0};

    CHECK_OK(store_command(s, &a, &r, argv, argc, &err));
    reply_print(&b, r);
    snprintf(text, sizeof(text), STR_FMT, STR_ARG(buf_str(&b)));
    buf_release(&b);
    arena_release(&a);
    return text;
}
