/* Shared by the files of the swarms in memory (swarms*.c): a torrent's entry, its peers, a stripe's
 * table.
 *
 * The entry of a torrent is as large as one line of the processor's cache. It has the hash, counts,
 * and up to three IPv4 peers. A torrent with more peers, or with an IPv6 peer, has a block for each
 * address family. A block has three parts. First come the addresses, in the form in which answers
 * give them out, seeders before leechers: an answer copies one or two runs from a random place.
 * Then come four bytes about each peer (struct peer_meta). From INDEX_FROM peers on the third part
 * is an index by address; with fewer peers a search through the addresses is as fast.
 *
 * Time is counted in units of a hundredth of the peer timeout, at least a second. A peer keeps the
 * low 8 bits of the unit of its last announce. Eight bits are enough. Whenever a torrent is used,
 * peers past the timeout are removed first (`oldest` tells whether there may be any). If a torrent
 * was not used for the whole timeout, all its peers are past the timeout. */
#ifndef SWARM_SWARMS_INT_H
#define SWARM_SWARMS_INT_H

#include "os/thread.h"
#include "swarm/swarms.h"

enum {
    STRIPES = 1024,
    FEW_PEERS = 3,
    INDEX_FROM = 512,
    TIMEOUT_UNITS = 100,
    /* With more IPv4 peers than this, tags collide too often to look for twins (struct peer_meta).
     */
    TWIN_PEERS_MAX = 8192,
    CROWD_LOOK = 4096, /* most peers that are looked at to count the peers of one address */
    /* If a swarm has more than CROWD_LOOK peers, only random runs of peers are looked at. Each run
     * has this many peers. */
    CROWD_STRETCH = 64,
    LOOK_SLOTS = 256 /* number of slots of a table that one call of swarms_clean() looks at */
};

enum family { V4, V6, FAMILIES };

enum { TOLD_MASK = 0x3f, PEER_PAUSED = 0x40, PEER_TWIN = 0x80 };

struct peer_meta {
    uint8_t seen; /* low 8 bits of the unit of the last announce */
    /* Two values in one byte. The bits of TOLD_MASK say when the peer was last published to other
     * trackers, as told_mark() encodes the time. The other bits are PEER_ flags. */
    uint8_t told;
    /* Hash of peer id and key. A client that announces over IPv4 and over IPv6 is a peer of both
     * families with the same tag. Its IPv6 peer is then called a twin. */
    uint16_t tag;
};

struct block {
    uint32_t cap, count, seeders, paused;
    /* How many leechers and seeders of an IPv6 block are twins. Their clients are counted under
     * IPv4. */
    uint32_t twins[2];
    uint32_t slots;  /* slots of the index; 0: there is no index */
    uint8_t bytes[]; /* addresses, struct peer_meta, index (a peer's place + 1, in 2 or 4 bytes) */
};

enum { TORRENT_ADDED = 1, TORRENT_BLOCKS = 2 };

struct torrent_entry {
    uint8_t hash[INFO_HASH_LEN];
    uint32_t snatches;
    uint32_t touched; /* unit of the last announce */
    uint8_t flags;
    uint8_t oldest;         /* `seen` of the peer that announced longest ago */
    uint8_t count, seeders; /* how many peers and seeders are in `few` */
    union {
        struct {
            uint8_t addr[FEW_PEERS * COMPACT4_LEN];
            struct peer_meta meta[FEW_PEERS];
        } few;
        struct block *block[FAMILIES]; /* with TORRENT_BLOCKS; NULL: no peers of this family */
    };
};
_Static_assert(sizeof(struct torrent_entry) == 64, "one line of the cache");

/* The secret key of words_hash(), which hashes five 32-bit words: h = (k0 + sum of k[i] * word[i])
 * >> 32, computed twice with different keys. Two inputs collide in one h with a probability of
 * 2^-32 (Lemire and Kaser, "Strongly universal string hashing is fast", 2014). Without the key
 * nobody can choose info hashes that collide, and the hash never leaves the process. The hash takes
 * ten multiplications; SipHash would take fifty cycles or more. */
struct words_key {
    uint64_t k[2][6];
};

/* A hash table with open addressing. The table has one byte of each entry's hash, so nearly always
 * only one entry must be compared. When an entry is removed, entries behind it move up, so there
 * are no marks of removed entries.
 *
 * A table is written under its stripe's lock. It is read without the lock to prefetch, and to skip
 * empty tables. All struct table are next to each other, so that they stay in the processor's
 * cache. */
struct table {
    _Atomic(uint8_t *) marks; /* a byte for each slot; 0: free */
    _Atomic(struct torrent_entry *) entries;
    _Atomic(uint32_t) cap, count;
};

struct stripe {
    /* Class "swarms"; guards the stripe; no other lock is taken while it is held. */
    struct mutex lock;
    struct table *table;
    uint32_t hand;           /* slot at which cleaning continues */
    uint32_t evict_hand;     /* slot at which the search for a torrent to drop continues */
    _Atomic(uint32_t) added; /* torrents that were added, and so are never dropped */
    uint64_t snatches, evicted, bytes, crowded;
    uint64_t peers[FAMILIES][2]; /* leechers, seeders */
};

struct swarms {
    struct swarms_options options;
    struct words_key key;
    uint32_t unit_s, limit;  /* seconds in a unit; age in units above which a peer is removed */
    uint32_t tell_units;     /* units after which a refreshed peer is published again */
    _Atomic(uint32_t) now_s; /* the latest time that a caller gave */
    _Atomic(uint64_t) torrents, peers; /* numbers in all stripes, to check the bounds */
    /* The next stripe to clean; the next stripe from which to drop a torrent. */
    _Atomic(uint32_t) clean_hand, evict_hand;
    struct table tables[STRIPES];
    struct stripe stripes[STRIPES];
};

struct words_hash {
    uint32_t a, b;
};
struct words_hash words_hash(const struct words_key *key, const uint8_t bytes[20]);

/* --- swarms_table.c: the table of a stripe. The caller holds the stripe's lock unless noted --- */

struct stripe *swarms_stripe(struct swarms *s, const uint8_t *info_hash); /* needs no lock */
void table_prefetch(const struct swarms *s, const uint8_t *info_hash);    /* needs no lock */
struct torrent_entry *table_find(struct swarms *s, struct stripe *stripe, const uint8_t *info_hash);
/* Adds an empty entry for a torrent that has no entry. This moves other entries, so the caller must
 * find them again. */
struct torrent_entry *table_insert(struct swarms *s, struct stripe *stripe,
                                   const uint8_t *info_hash);
/* Removes an entry that has no peers. This moves other entries, so the caller must find them again.
 */
void table_remove(struct swarms *s, struct stripe *stripe, struct torrent_entry *t);
/* Returns the entry in a slot (below table_slots()), or NULL if the slot is free. */
struct torrent_entry *table_at(struct stripe *stripe, uint32_t slot);
uint32_t table_slots(struct stripe *stripe);
void table_release(struct stripe *stripe);

/* --- swarms_peers.c: the peers of one torrent. The caller holds the stripe's lock --- */

/* The peers of one family, unpacked from the torrent's entry; swarm_end() packs them again. */
struct peers {
    uint8_t *addr;
    struct peer_meta *meta;
    struct block *block; /* NULL: the peers are in the entry, or there are none */
    size_t stride;
    uint32_t cap, count, seeders, paused;
};

struct swarm {
    struct swarms *s;
    struct stripe *stripe;
    struct torrent_entry *t;
    uint32_t now; /* in units */
    struct peers of[FAMILIES];
};

/* Unpacks a torrent's entry into *w and removes peers past the timeout. */
void swarm_begin(struct swarm *w, struct swarms *s, struct stripe *stripe, struct torrent_entry *t);
void swarm_end(struct swarm *w);
/* Returns the place of the peer with this address (in compact form), or -1. */
int64_t swarm_find(const struct swarm *w, enum family f, const uint8_t *addr);
/* Returns how many peers have this IPv4 address, or are in this IPv6 /64. In a large swarm this is
 * an estimate. */
uint64_t swarm_neighbours(const struct swarm *w, enum family f, const uint8_t *addr);
void swarm_put(struct swarm *w, enum family f, const uint8_t *addr, struct peer_meta meta,
               bool seeder);
void swarm_drop(struct swarm *w, enum family f, uint32_t at);
/* Turns a leecher into a seeder, or back. Returns the new place of the peer. */
uint32_t swarm_turn(struct swarm *w, enum family f, uint32_t at);
void swarm_pause(struct swarm *w, enum family f, uint32_t at, bool paused);
void swarm_retag(struct swarm *w, enum family f, uint32_t at, uint16_t tag);
void swarm_clear(struct swarm *w); /* drops all peers */

/* Returns the age of `seen` in units. A time that seems to be in the future, because another thread
 * read the clock a little later, has age 0. */
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

/* Remembers the latest time. Writes now_s only when it changes, because all processors share its
 * line of the cache. */
static inline void swarms_set_now(struct swarms *s, uint32_t now_s)
{
    if (now_s > atomic_load_explicit(&s->now_s, memory_order_relaxed))
        atomic_store_explicit(&s->now_s, now_s, memory_order_relaxed);
}

static inline uint32_t swarm_unit(const struct swarms *s)
{
    return atomic_load_explicit(&s->now_s, memory_order_relaxed) / s->unit_s;
}

/* Chooses the peers for a client and copies them into *out. `at` is the client's own place in each
 * family; -1: the client is no peer of that family. */
void swarm_answer(const struct swarm *w, const struct announce *a, const int64_t at[FAMILIES],
                  struct announce_answer *out);

#endif
