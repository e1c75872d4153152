/* The seed's models and its cache: torrents, peers, users and approved clients in the store, shared
 * by all trackers. docs/swarm.md has the keys and the invariants I1 to I8.
 *
 * Every call is one script or command: one round trip, atomic, whatever other trackers do at the
 * same time. A caller sends what it wants done and never writes back what it has read. All calls
 * block, any thread. A negative code says that the store could not be asked, and never that
 * something is absent: that is ERR_NOT_FOUND alone. */
#ifndef SWARM_CACHE_H
#define SWARM_CACHE_H

#include "base/arena.h"
#include "base/err.h"
#include "store/store.h"
#include "swarm/announce.h"

struct cache;

struct cache_options {
    struct store *store; /* swarmDB; borrowed */
    struct str prefix;   /* before every key; may be empty */
    bool feed;           /* each accepted private announce appends a record: feed.h */
    uint64_t feed_max;   /* records that wait; past it announces are refused (SWARM_UNAVAILABLE);
                          * 0: a million */
    uint64_t max_peers; /* in the store; past it new ones are refused (SWARM_FULL); 0: any number */
    uint64_t max_per_user; /* peers; past it a user's new ones are refused (SWARM_PEERS); 0: any */
    uint32_t peer_timeout_s;       /* cache_announce() gives out none that is older; 0: any */
    uint32_t numwant, max_numwant; /* default and bound of cache_announce(); 0: 50 and 200 */
};
int cache_open(struct cache **out, const struct cache_options *o, struct err *err) MUST_CHECK;
void cache_close(struct cache *c);

/* --- models: the fields of the hashes, in their order --- */

struct torrent {
    uint64_t id;
    uint8_t info_hash[INFO_HASH_LEN];
    bool active;
    uint64_t snatches;
    double up_multiplier, down_multiplier;
    int64_t last_action; /* seconds since 1970 */
};

struct peer {
    uint8_t id[PEER_ID_LEN];
    uint64_t user_id, torrent_id;
    struct peer_addr addr; /* in the hash: ip as text, port as a number */
    uint64_t uploaded, downloaded, left;
    int64_t last_announce; /* seconds since 1970, by the store's clock */
    bool paused;           /* BEP 21; an additional field, there only when set */
};

struct swarm_user {
    uint64_t id;
    char passkey[PASSKEY_LEN + 1];
    double up_multiplier, down_multiplier;
    int64_t slots; /* -1: any number */
    int64_t slots_used;
    uint64_t snatches;
};

/* A torrent with all of its peers, as of one moment. In an arena. */
struct torrent_peers {
    struct torrent torrent;
    struct peer *seeders, *leechers;
    size_t seeder_count, leecher_count;
};

/* --- the seed's interface --- */

/* ERR_NOT_FOUND: there is none. */
int cache_find_user(struct cache *c, struct swarm_user *out, struct str passkey,
                    struct err *err) MUST_CHECK;
/* By its id: for people, who do not name one by the passkey. */
int cache_find_passkey(struct cache *c, char out[PASSKEY_LEN + 1], uint64_t id,
                       struct err *err) MUST_CHECK;
int cache_find_torrent(struct cache *c, struct arena *a, struct torrent_peers *out,
                       const uint8_t *info_hash, struct err *err) MUST_CHECK;
int cache_client_whitelisted(struct cache *c, bool *out, struct str client,
                             struct err *err) MUST_CHECK;

/* One more on both; ERR_NOT_FOUND, and nothing is written, when either is missing. The numbers that
 * they have then go into the structs. */
int cache_record_snatch(struct cache *c, struct swarm_user *u, struct torrent *t,
                        struct err *err) MUST_CHECK;
int cache_mark_active(struct cache *c, struct torrent *t, struct err *err) MUST_CHECK;
int cache_mark_inactive(struct cache *c, struct torrent *t, struct err *err) MUST_CHECK;

/* Add: idempotent, also moves it out of the other set (I2) and keeps the slots (I4); ERR_NOT_FOUND
 * without the torrent or the user. Set: refreshes a peer that is there, else ERR_NOT_FOUND. Remove:
 * idempotent. Add names the torrent by its info hash, Set and Remove by its id; the user is the id
 * in the peer.
 */
int cache_add_seeder(struct cache *c, const struct torrent *t, const struct peer *p,
                     struct err *err) MUST_CHECK;
int cache_add_leecher(struct cache *c, const struct torrent *t, const struct peer *p,
                      struct err *err) MUST_CHECK;
int cache_set_seeder(struct cache *c, const struct torrent *t, const struct peer *p,
                     struct err *err) MUST_CHECK;
int cache_set_leecher(struct cache *c, const struct torrent *t, const struct peer *p,
                      struct err *err) MUST_CHECK;
int cache_remove_seeder(struct cache *c, const struct torrent *t, const struct peer *p,
                        struct err *err) MUST_CHECK;
int cache_remove_leecher(struct cache *c, const struct torrent *t, const struct peer *p,
                         struct err *err) MUST_CHECK;
/* Moves and refreshes; *moved false: it was no leecher (then it is added as a seeder). */
int cache_leecher_finished(struct cache *c, const struct torrent *t, const struct peer *p,
                           bool *moved, struct err *err) MUST_CHECK;

/* slots_used by one, never below 0; the new number goes into the struct. */
int cache_increment_slots(struct cache *c, struct swarm_user *u, struct err *err) MUST_CHECK;
int cache_decrement_slots(struct cache *c, struct swarm_user *u, struct err *err) MUST_CHECK;

/* id 0: the next free one, put into the struct. One that is there gets the multipliers alone (and
 * its id is put into the struct). ERR_EXISTS: the id is another's. last_action 0: now. */
int cache_add_torrent(struct cache *c, struct torrent *t, struct err *err) MUST_CHECK;
/* The same for the torrent of an object (docs/torrents.md): one that is there keeps its
 * multipliers. ERR_PRECONDITION: it was withdrawn, and not added since. */
int cache_offer_torrent(struct cache *c, struct torrent *t, struct err *err) MUST_CHECK;
/* Whether it is there, and not withdrawn. */
int cache_torrent_listed(struct cache *c, bool *out, const uint8_t *info_hash,
                         struct err *err) MUST_CHECK;
/* With all of its peers; slots are given back. ERR_NOT_FOUND. */
int cache_remove_torrent(struct cache *c, const uint8_t *info_hash, struct err *err) MUST_CHECK;
/* The same by an operator: the torrent of an object comes back by cache_add_torrent() alone. */
int cache_withdraw_torrent(struct cache *c, const uint8_t *info_hash, struct err *err) MUST_CHECK;
/* The same; one that is there gets multipliers and slots alone. ERR_INVALID: the passkey. */
int cache_add_user(struct cache *c, struct swarm_user *u, struct err *err) MUST_CHECK;
/* With all of its peers. ERR_NOT_FOUND. */
int cache_remove_user(struct cache *c, struct str passkey, struct err *err) MUST_CHECK;
int cache_whitelist_client(struct cache *c, struct str client, struct err *err) MUST_CHECK;
int cache_unwhitelist_client(struct cache *c, struct str client, struct err *err) MUST_CHECK;

/* --- pages, for people and for memory --- */

/* Calls fn for each, in no order; fn's negative code ends it and is returned. */
typedef int cache_torrent_fn(void *ctx, const struct torrent *t, struct err *err);
typedef int cache_user_fn(void *ctx, const struct swarm_user *u, struct err *err);
typedef int cache_client_fn(void *ctx, struct str client, struct err *err);
int cache_each_torrent(struct cache *c, cache_torrent_fn *fn, void *ctx,
                       struct err *err) MUST_CHECK;
int cache_each_user(struct cache *c, cache_user_fn *fn, void *ctx, struct err *err) MUST_CHECK;
int cache_each_client(struct cache *c, cache_client_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* --- the announce path of the private mode --- */

/* The whole announce as one script (docs/swarm.md, the table of transitions): refuses, counts
 * slots and snatches, feeds, and chooses peers. Intervals are left to the caller. */
int cache_announce(struct cache *c, const struct announce *a, struct announce_answer *out,
                   struct err *err) MUST_CHECK;
/* `hashes`: count times INFO_HASH_LEN bytes. */
int cache_scrape(struct cache *c, const uint8_t *hashes, size_t count, struct scrape_entry *out,
                 struct err *err) MUST_CHECK;

/* Peers that have not announced for `timeout_s` go, at most `limit` of them; *gone is how many did.
 * Any number of trackers may do it at once. */
int cache_reap(struct cache *c, uint64_t timeout_s, size_t limit, size_t *gone,
               struct err *err) MUST_CHECK;

/* Looks for what the invariants forbid; each is told to fn in words. For `weir swarm check`. */
typedef void cache_finding_fn(void *ctx, const char *invariant, struct str key);
int cache_check(struct cache *c, cache_finding_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* The channel on which changes of torrents, users and clients are told ("torrent <hash>", "user",
 * "client"). */
struct str cache_channel(const struct cache *c);
/* The key that connection ids are made with, the same for all trackers: the store's, or when it has
 * none the one that is given. */
int cache_shared_key(struct cache *c, uint8_t key[16], struct err *err) MUST_CHECK;

#endif
