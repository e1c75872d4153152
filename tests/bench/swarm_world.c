/* The population of the tracker's load and the check of what a tracker says about it. */
#include "swarm_world.h"

#include "load.h"

#include <arpa/inet.h>
#include <endian.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t x)
{
    /* splitmix64, Steele and others 2014 */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double unit(uint64_t x)
{
    return ((double)(mix(x) >> 11) + .5) / 9007199254740992.0;
}

/* The weight has a flat part and a falling one; a peer falls into one of them and then by it. */
static uint32_t draw_torrent(uint32_t torrents, uint32_t peer)
{
    double n = torrents, flat = n / 2, falling = exp(6.5) * n / 500;
    uint64_t seed = (uint64_t)peer << 2;
    double at =
        unit(seed) * (flat + falling) < flat ? unit(seed + 1) * n : -log(unit(seed + 2)) * n / 500;

    return at < n ? (uint32_t)at : torrents - 1;
}

void world_init(struct world *w, uint32_t torrents, uint32_t peers, bool v6)
{
    *w = (struct world){.torrents = torrents, .peers = peers, .v6 = v6};
    w->torrent_of = calloc(peers, sizeof(*w->torrent_of));
    w->size_of = calloc(torrents, sizeof(*w->size_of));
    w->seeder = calloc(peers, 1);
    if (!w->torrent_of || !w->size_of || !w->seeder)
        load_fail("memory");
    for (uint32_t i = 0; i < peers; i++) {
        w->torrent_of[i] = i < torrents ? i : draw_torrent(torrents, i);
        w->size_of[w->torrent_of[i]]++;
        w->seeder[i] = mix(~(uint64_t)i) % 4 != 0;
    }
}

void world_release(struct world *w)
{
    free(w->torrent_of);
    free(w->size_of);
    free(w->seeder);
    *w = (struct world){0};
}

void world_hash(uint8_t out[WORLD_HASH], uint32_t torrent)
{
    uint64_t words[3];

    for (uint64_t i = 0; i < 3; i++)
        words[i] = mix(0x7377u << 16 ^ ((uint64_t)torrent * 3 + i));
    memcpy(out, words, WORLD_HASH);
}

bool world_is_v6(const struct world *w, uint32_t peer)
{
    return w->v6 && peer % WORLD_V6_EVERY == WORLD_V6_EVERY - 1;
}

uint32_t world_source(uint32_t peer)
{
    return peer % WORLD_SOURCES;
}

uint32_t world_source_ip(uint32_t source)
{
    return htonl(127u << 24 | (1 + (source >> 8)) << 16 | (source & 255) << 8 | 7);
}

uint16_t world_port(const struct world *w, uint32_t peer)
{
    uint32_t n = world_is_v6(w, peer) ? peer / WORLD_V6_EVERY : peer / WORLD_SOURCES;
    return htons((uint16_t)(WORLD_PORT_MIN + n % WORLD_PORTS));
}

/* --- replies --- */

enum { REPLY_PEERS = 20, V4 = 6, V6 = 18, INTERVAL_MAX = 24 * 3600 };
/* Whether an address is there twice is looked for in one reply of so many: the pairs cost more than
 * all other checks. */
enum { TWICE_EVERY = 8 };

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return be32toh(v);
}

/* The peer behind an IPv4 address of a reply; w->peers when there is none. */
static uint32_t peer_at(const struct world *w, const uint8_t *p)
{
    uint32_t ip = u32_at(p), port = (uint32_t)(p[4] << 8 | p[5]);
    uint32_t source = ((ip >> 16 & 255) - 1) << 8 | (ip >> 8 & 255);

    if (source >= WORLD_SOURCES || htonl(ip) != world_source_ip(source) || port < WORLD_PORT_MIN)
        return w->peers;
    uint64_t peer = (uint64_t)(port - WORLD_PORT_MIN) * WORLD_SOURCES + source;
    return peer < w->peers ? (uint32_t)peer : w->peers;
}

static const char *check_v4(const struct world *w, const struct world_asked *a, const uint8_t *p,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t peer = peer_at(w, p + i * V4);
        if (peer >= w->peers || world_is_v6(w, peer) ||
            w->torrent_of[peer] != w->torrent_of[a->peer])
            return "a peer that never was in the torrent";
        if (a->no_self && peer == a->peer)
            return "the announcer itself among the peers";
    }
    for (size_t i = 0; a->tid % TWICE_EVERY == 0 && i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (memcmp(p + i * V4, p + j * V4, V4) == 0)
                return "a peer twice";
    return NULL;
}

static const char *check_v6(const struct world *w, const struct world_asked *a, const uint8_t *p,
                            size_t count)
{
    uint16_t own = world_port(w, a->peer);

    for (size_t i = 0; i < count; i++, p += V6) {
        if (memcmp(p, &in6addr_loopback, 16) != 0)
            return "a peer that never was in the torrent";
        if (a->no_self && memcmp(p + 16, &own, 2) == 0)
            return "the announcer itself among the peers";
    }
    return NULL;
}

static const char *check_announce(const struct world *w, const struct world_asked *a,
                                  const uint8_t *p, size_t len)
{
    bool v6 = world_is_v6(w, a->peer);
    size_t stride = v6 ? V6 : V4;
    if (len < REPLY_PEERS || (len - REPLY_PEERS) % stride != 0)
        return "length of an announce reply";
    if (a->bare)
        return NULL;
    size_t count = (len - REPLY_PEERS) / stride;
    uint32_t interval = u32_at(p + 8), leechers = u32_at(p + 12), seeders = u32_at(p + 16);
    uint64_t all = (uint64_t)leechers + seeders, size = w->size_of[w->torrent_of[a->peer]];
    if (interval == 0 || interval > INTERVAL_MAX)
        return "interval";
    if (count > a->numwant)
        return "more peers than wanted";
    if (all > size || count > all)
        return "counts that cannot be";
    if (a->event != WORLD_STOPPED && (a->seeder ? seeders : leechers) == 0)
        return "the announcer is not counted";
    return v6 ? check_v6(w, a, p + REPLY_PEERS, count) : check_v4(w, a, p + REPLY_PEERS, count);
}

static const char *check_scrape(const struct world *w, const struct world_asked *a,
                                const uint8_t *p, size_t len)
{
    if (len != 8 + 12 * (size_t)a->hashes)
        return "length of a scrape reply";
    for (unsigned i = 0; i < a->hashes && !a->bare; i++) {
        uint32_t torrent = (w->torrent_of[a->peer] + i) % w->torrents;
        uint64_t all = (uint64_t)u32_at(p + 8 + 12 * i) + u32_at(p + 16 + 12 * i);
        if (all > w->size_of[torrent])
            return "counts that cannot be";
    }
    return NULL;
}

const char *world_check(const struct world *w, const struct world_asked *a, const uint8_t *p,
                        size_t len)
{
    if (len < 8 || u32_at(p) != a->kind || u32_at(p + 4) != a->tid)
        return "action or transaction id";
    if (a->kind == WORLD_CONNECT)
        return len == 16 ? NULL : "length of a connect reply";
    return a->kind == WORLD_ANNOUNCE ? check_announce(w, a, p, len) : check_scrape(w, a, p, len);
}
