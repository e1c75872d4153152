/* What tests of swarms share: torrents and clients by number, and announces of them. */
#ifndef TESTS_UNIT_SWARM_SWARMS_UTIL_H
#define TESTS_UNIT_SWARM_SWARMS_UTIL_H

#include "swarm/swarms.h"
#include "unit/test.h"

enum { ROOM = 250 };

struct asked {
    struct announce a;
    uint8_t hash[INFO_HASH_LEN], id[PEER_ID_LEN];
    char key[4];
    struct announce_answer answer;
    uint8_t room4[ROOM * COMPACT4_LEN], room6[ROOM * COMPACT6_LEN];
};

static inline void number_into(uint8_t *out, size_t len, uint64_t n)
{
    memset(out, 0, len);
    memcpy(out, &n, size_min(len, sizeof(n)));
}

/* Client number `client` at torrent number `torrent`; its address and port come of its number. */
static inline void ask(struct asked *q, uint64_t torrent, uint32_t client, bool v6)
{
    *q = (struct asked){.a = {.left = 1, .numwant = NUMWANT_DEFAULT}};
    number_into(q->hash, INFO_HASH_LEN, torrent);
    number_into(q->id, PEER_ID_LEN, client);
    memcpy(q->key, &client, 4);
    q->a.info_hash = q->hash;
    q->a.peer_id = q->id;
    q->a.key = str_n(q->key, 4);
    q->a.addr.v6 = v6;
    memcpy(q->a.addr.ip, &client, 4);
    if (v6)
        q->a.addr.ip[15] = 6;
    q->a.addr.port[0] = 0x1a;
    q->a.addr.port[1] = (uint8_t)client;
    q->answer.peers4 = (struct compact){.at = q->room4, .max = v6 ? 0 : ROOM};
    q->answer.peers6 = (struct compact){.at = q->room6, .max = v6 ? ROOM : 0};
}

/* Open ones, with these bounds. */
static inline struct swarms *bounded_swarms(struct swarms_options o)
{
    struct swarms *s;
    struct err err = {0};

    o.open = true;
    o.numwant = 50;
    o.max_numwant = 200;
    CHECK_OK(swarms_new(&s, &o, &err));
    return s;
}

static inline struct swarms *open_swarms(uint32_t timeout_s)
{
    return bounded_swarms((struct swarms_options){
        .max_torrents = 1000000, .max_peers = 1000000, .peer_timeout_s = timeout_s});
}

/* Left and event as given; the answer is in *q. */
static inline enum swarm_change say(struct swarms *s, struct asked *q, uint64_t left,
                                    enum announce_event event, uint32_t now)
{
    q->a.left = left;
    q->a.event = event;
    return swarms_announce(s, &q->a, now, &q->answer);
}

static inline struct scrape_entry scrape_one(struct swarms *s, uint64_t torrent)
{
    uint8_t hash[INFO_HASH_LEN];
    struct scrape_entry e;

    number_into(hash, INFO_HASH_LEN, torrent);
    swarms_scrape(s, hash, 1, &e);
    return e;
}

#endif
