/* The swarms that the tracker's load is made of: which peer is in which torrent, under which
 * address, and what a reply about them may say.
 *
 * Everything follows from the number of torrents, so that one process can fill a tracker and
 * another one ask it, and a reply can be checked to the last address: a peer's address says which
 * peer it is.
 *
 * Peers 0 to torrents-1 are one in each torrent; the rest are drawn with the weight
 * 1/2 + exp(6.5 - 500 i/torrents) of torrent i: three quarters of them in one torrent of a hundred,
 * the largest with some hundreds of peers, most torrents with one or two. */
#ifndef TESTS_BENCH_SWARM_WORLD_H
#define TESTS_BENCH_SWARM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* IPv4 sources, each in a /24 of its own under 127.0.0.0/8, so that kernels spread them over
 * sockets and trackers over their tables. */
enum { WORLD_SOURCES = 1024, WORLD_HASH = 20, WORLD_PORT_MIN = 1024, WORLD_PORTS = 64000 };
/* One peer of so many is on IPv6 (::1) when the server has it. */
enum { WORLD_V6_EVERY = 20 };

struct world {
    uint32_t torrents, peers;
    bool v6;
    uint32_t *torrent_of; /* by peer */
    uint32_t *size_of;    /* by torrent: its peers, announced or not */
    uint8_t *seeder;      /* by peer: what it announces next */
};

void world_init(struct world *w, uint32_t torrents, uint32_t peers, bool v6);
void world_release(struct world *w);

void world_hash(uint8_t out[WORLD_HASH], uint32_t torrent);
bool world_is_v6(const struct world *w, uint32_t peer);
/* The source of an IPv4 peer and its address, both orders of bytes the network's. */
uint32_t world_source(uint32_t peer);
uint32_t world_source_ip(uint32_t source);
uint16_t world_port(const struct world *w, uint32_t peer);

/* --- replies --- */

enum world_kind { WORLD_CONNECT, WORLD_ANNOUNCE, WORLD_SCRAPE };
enum { WORLD_NONE, WORLD_COMPLETED, WORLD_STARTED, WORLD_STOPPED }; /* BEP 15's events */
enum { WORLD_SCRAPE_MAX = 10 };

struct world_asked {
    uint32_t tid, peer;
    uint8_t kind, event;
    uint8_t hashes;  /* of a scrape: torrents from the peer's own on */
    uint8_t numwant; /* of an announce */
    bool seeder;     /* what it announced */
    bool bare;       /* nothing but the form is checked: an echo answers */
    bool no_self;    /* the server promises never to name the announcer to itself */
};

/* What is wrong with a reply, or NULL. The answer to a connect is not looked at beyond its form. */
const char *world_check(const struct world *w, const struct world_asked *a, const uint8_t *p,
                        size_t len);

#endif
