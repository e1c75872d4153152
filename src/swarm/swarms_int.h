/* Swarms in memory, for swarm/swarms*.c only: a torrent's entry, its peers, a stripe's table.
 *
 * A torrent is one line of the processor's cache: its hash, counts, and up to three IPv4 peers in
 * place. With more, or with one of IPv6, it has a block for each family: all addresses one behind
 * the other as they are given out, seeders first and leechers behind them, so that an answer is a
 * copy of one or two runs from a random place; beside them what is known of each (four bytes); and
 * from INDEX_FROM peers on an index by address. Below that looking through is as fast.
 *
 * Time is counted in units of a hundredth of the timeout (at least a second), and a peer has the
 * low 8 bits of the unit of its last announce. They cannot be misread: whenever a torrent is
 * touched those past the timeout go first (`oldest` tells when there may be one), and one that was
 * not touched for the timeout has no living peer at all. */
#ifndef SWARM_SWARMS_INT_H
#define SWARM_SWARMS_INT_H

#include "os/thread.h"
#include "swarm/swarms.h"

enum {
    STRIPES = 1024,
    FEW_PEERS = 3,
    INDEX_FROM = 512,
    TIMEOUT_UNITS = 100,
    TWIN_PEERS_MAX = 8192, /* with more peers of IPv4 tags say little: no twins are looked for */
    CROWD_LOOK = 4096,     /* peers that are looked at for those of one address */
    CROWD_STRETCH = 64,    /* of a larger swarm, in so many one behind the other */
    LOOK_SLOTS = 256       /* of a table, in one call of swarms_clean() */
};

enum family { V4, V6, FAMILIES };

enum { TOLD_MASK = 0x3f, PEER_PAUSED = 0x40, PEER_TWIN = 0x80 };

struct peer_meta {
    uint8_t seen; /* unit of the last announce */
    uint8_t told; /* unit / 4 when the others were told, and the flags */
    uint16_t tag; /* of peer id and key: twins on the two families have the same */
};

struct block {
    uint32_t cap, count, seeders, paused;
    uint32_t twins[2]; /* IPv6: leechers, seeders that are of IPv4 too, and are counted there */
    uint32_t slots;    /* of the index; 0: none */
    uint8_t bytes[];   /* addresses, struct peer_meta, index: position + 1, of 2 or 4 bytes */
};

enum { TORRENT_ADDED = 1, TORRENT_BLOCKS = 2 };

struct torrent_entry {
    uint8_t hash[INFO_HASH_LEN];
    uint32_t snatches;
    uint32_t touched; /* unit of the last announce */
    uint8_t flags;
    uint8_t oldest;         /* no peer's `seen` is before it */
    uint8_t count, seeders; /* in place */
    union {
        struct {
            uint8_t addr[FEW_PEERS * COMPACT4_LEN];
            struct peer_meta meta[FEW_PEERS];
        } few;
        struct block *block[FAMILIES]; /* either may be NULL */
    };
};
_Static_assert(sizeof(struct torrent_entry) == 64, "one line of the cache");

/* A keyed hash of five words of 32 bits, h = (k0 + sum of k[i] * word[i]) >> 32 twice: for any two
 * inputs the keys under which they collide are one of 2^32 (Lemire and Kaser, "Strongly universal
 * string hashing is fast", 2014). Who does not have the keys cannot choose hashes that meet; the
 * hash is never told. Ten multiplications where SipHash takes fifty cycles and more. */
struct words_key {
    uint64_t k[2][6];
};

/* Open addressing, with a byte of the hash for each entry, so that nearly always one entry alone is
 * looked at. An entry that goes lets those behind it move up: there are no marks of removed ones.
 *
 * Written under the stripe's lock; read without it to prefetch, and to pass by empty ones. All of
 * them stand together, so that they stay in the processor's cache. */
struct table {
    _Atomic(uint8_t *) marks; /* 0: free */
    _Atomic(struct torrent_entry *) entries;
    _Atomic(uint32_t) cap, count;
};

struct stripe {
    struct mutex lock; /* class "swarms": all of the stripe; no other lock inside */
    struct table *table;
    uint32_t hand; /* where the cleaner goes on */
    uint32_t evict_hand;
    _Atomic(uint32_t) added; /* torrents that no other displaces */
    uint64_t snatches, evicted, bytes, crowded;
    uint64_t peers[FAMILIES][2]; /* leechers, seeders */
};

struct swarms {
    struct swarms_options options;
    struct words_key key;
    uint32_t unit_s, limit;                   /* peers older than this many units go */
    uint32_t tell_units;                      /* a peer is told of again after these */
    _Atomic(uint32_t) now_s;                  /* the latest that was given */
    _Atomic(uint64_t) torrents, peers;        /* of all stripes: for the bounds */
    _Atomic(uint32_t) clean_hand, evict_hand; /* stripes */
    struct table tables[STRIPES];
    struct stripe stripes[STRIPES];
};

struct words_hash {
    uint32_t a, b;
};
struct words_hash words_hash(const struct words_key *key, const uint8_t bytes[20]);

/* --- one stripe's table (swarms_table.c); under its lock --- */

struct stripe *swarms_stripe(struct swarms *s, const uint8_t *info_hash); /* without the lock */
void table_prefetch(const struct swarms *s, const uint8_t *info_hash);    /* without it too */
struct torrent_entry *table_find(struct swarms *s, struct stripe *stripe, const uint8_t *info_hash);
/* New and empty; there must be none. Moves others: pointers to entries end. */
struct torrent_entry *table_insert(struct swarms *s, struct stripe *stripe,
                                   const uint8_t *info_hash);
/* Without peers; as above. */
void table_remove(struct swarms *s, struct stripe *stripe, struct torrent_entry *t);
/* What is in a slot, or NULL; there are table_slots(). */
struct torrent_entry *table_at(struct stripe *stripe, uint32_t slot);
uint32_t table_slots(struct stripe *stripe);
void table_release(struct stripe *stripe);

/* --- peers of one torrent (swarms_peers.c); under its stripe's lock --- */

/* One family of a torrent, taken apart; what is changed goes back by swarm_end(). */
struct peers {
    uint8_t *addr;
    struct peer_meta *meta;
    struct block *block; /* NULL: in place, or none */
    size_t stride;
    uint32_t cap, count, seeders, paused;
};

struct swarm {
    struct swarms *s;
    struct stripe *stripe;
    struct torrent_entry *t;
    uint32_t now; /* unit */
    struct peers of[FAMILIES];
};

/* Peers past the timeout are gone then. */
void swarm_begin(struct swarm *w, struct swarms *s, struct stripe *stripe, struct torrent_entry *t);
void swarm_end(struct swarm *w);
/* Where it is, or -1. `addr` in compact form. */
int64_t swarm_find(const struct swarm *w, enum family f, const uint8_t *addr);
/* How many there are of the address, or of its /64; of a large swarm an estimate. */
uint64_t swarm_neighbours(const struct swarm *w, enum family f, const uint8_t *addr);
void swarm_put(struct swarm *w, enum family f, const uint8_t *addr, struct peer_meta meta,
               bool seeder);
void swarm_drop(struct swarm *w, enum family f, uint32_t at);
/* To the other role; its new place. */
uint32_t swarm_turn(struct swarm *w, enum family f, uint32_t at);
void swarm_pause(struct swarm *w, enum family f, uint32_t at, bool paused);
void swarm_retag(struct swarm *w, enum family f, uint32_t at, uint16_t tag);
void swarm_clear(struct swarm *w); /* all peers */

/* How many units ago; what seems to come from the future (a clock read a little later by another
 * thread) is of now. */
static inline uint32_t units_ago(uint32_t now, uint8_t seen)
{
    uint8_t age = (uint8_t)(now - seen);

    return age > 2 * TIMEOUT_UNITS + 20 ? 0 : age;
}

static inline uint8_t told_mark(uint32_t unit)
{
    return unit / 4 & TOLD_MASK;
}

static inline uint32_t swarm_count(const struct swarm *w, bool seeder)
{
    uint32_t n = 0;

    for (int f = V4; f <= V6; f++) {
        const struct peers *p = &w->of[f];
        n += seeder ? p->seeders : p->count - p->seeders;
        n -= f == V6 && p->block ? p->block->twins[seeder] : 0;
    }
    return n;
}

/* The latest time that anybody gave. Written only when it changes: the line is shared. */
static inline void swarms_set_now(struct swarms *s, uint32_t now_s)
{
    if (now_s > atomic_load_explicit(&s->now_s, memory_order_relaxed))
        atomic_store_explicit(&s->now_s, now_s, memory_order_relaxed);
}

static inline uint32_t swarm_unit(const struct swarms *s)
{
    return atomic_load_explicit(&s->now_s, memory_order_relaxed) / s->unit_s;
}

/* The peers for who announces, who is at `at` in each family (-1: is not). */
void swarm_answer(const struct swarm *w, const struct announce *a, const int64_t at[FAMILIES],
                  struct announce_answer *out);

#endif
