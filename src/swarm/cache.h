/* The data of the tracker in the store, where all trackers share it. A *model* is a torrent, a
 * peer, a user or an approved client. docs/swarm.md has the keys and the invariants I1 to I8.
 *
 * Every call is one script or command: one round trip, which is atomic. A caller sends the change
 * that it wants, and never writes back what it has read. All calls may wait for the store. Any
 * thread may call. Only ERR_NOT_FOUND says that something is absent; other negative codes say that
 * the store could not be asked. */
#ifndef SWARM_CACHE_H
#define SWARM_CACHE_H

#include "base/arena.h"
#include "base/err.h"
#include "store/store.h"
#include "swarm/announce.h"

struct cache;

struct cache_options {
    struct store *store; /* the tracker's database (store.redis.swarmDB); borrowed */
    struct str prefix;   /* the beginning of every key; may be empty */
    bool feed;           /* each accepted private announce appends a record to the feed (feed.h) */
    /* Bounds. When `feed_max` records wait in the feed, announces are refused (SWARM_UNAVAILABLE);
     * 0: a million. When the store has `max_peers` peers, new peers are refused (SWARM_FULL); 0:
     * any number. When a user has `max_per_user` peers, new peers of this user are refused
     * (SWARM_PEERS); 0: any number. */
    uint64_t feed_max, max_peers, max_per_user;
    /* No answer of cache_announce() has a peer that is older than this; 0: peers of any age. */
    uint32_t peer_timeout_s;
    /* Peers in an answer: the default, and the maximum; 0: 50 and 200. */
    uint32_t numwant, max_numwant;
};
int cache_open(struct cache **out, const struct cache_options *o, struct err *err) MUST_CHECK;
void cache_close(struct cache *c);

/* --- models: each struct has the fields of a hash in the store, in their order --- */

/* The greatest id of a user or torrent, and number of a record: Lua's numbers are doubles. */
#define SWARM_ID_MAX ((INT64_C(1) << 53) - 1)

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
    struct peer_addr addr; /* in the store's hash: ip as text, port as a number */
    uint64_t uploaded, downloaded, left;
    int64_t last_announce; /* seconds since 1970, by the store's clock */
    bool paused;           /* BEP 21; the store has this field only when it is true */
};

struct swarm_user {
    uint64_t id;
    char passkey[PASSKEY_LEN + 1];
    double up_multiplier, down_multiplier;
    int64_t slots; /* torrents that may be downloaded at once; -1: any number */
    int64_t slots_used;
    uint64_t snatches;
};

/* A torrent with all of its peers, read at one moment. Lives in an arena. */
struct torrent_peers {
    struct torrent torrent;
    struct peer *seeders, *leechers;
    size_t seeder_count, leecher_count;
};

/* --- finding, adding, changing and removing models --- */

/* Finds a user by the passkey. ERR_NOT_FOUND: there is no such user. */
int cache_find_user(struct cache *c, struct str passkey, struct swarm_user *out,
                    struct err *err) MUST_CHECK;
/* Finds the passkey of the user with this id. Operators name a user by the id, because the passkey
 * is secret. ERR_NOT_FOUND: there is no such user. */
int cache_find_passkey(struct cache *c, uint64_t id, char out[PASSKEY_LEN + 1],
                       struct err *err) MUST_CHECK;
int cache_find_torrent(struct cache *c, struct arena *a, const uint8_t *info_hash,
                       struct torrent_peers *out, struct err *err) MUST_CHECK;
int cache_client_whitelisted(struct cache *c, struct str client, bool *out,
                             struct err *err) MUST_CHECK;

/* Adds one snatch (a completed download) to the user and to the torrent, and puts the new numbers
 * into the structs. ERR_NOT_FOUND: one of the two is missing, and nothing was written. */
int cache_record_snatch(struct cache *c, struct swarm_user *u, struct torrent *t,
                        struct err *err) MUST_CHECK;
int cache_mark_active(struct cache *c, struct torrent *t, struct err *err) MUST_CHECK;
int cache_mark_inactive(struct cache *c, struct torrent *t, struct err *err) MUST_CHECK;

/* cache_add_*() add a peer to the set of seeders or of leechers, remove it from the other set (I2),
 * and count the user's slots (I4). ERR_NOT_FOUND: the torrent or the user is missing. cache_set_*()
 * store a peer's new announce. ERR_NOT_FOUND: the peer is missing. Adding or removing twice is
 * fine. cache_add_*() find the torrent by its info hash, cache_set_*() and cache_remove_*() by its
 * id. All six find the user by the id in the peer. */
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
/* Turns a leecher into a seeder and stores its new announce. *moved is false when the peer was no
 * leecher; then the peer is added as a seeder. */
int cache_leecher_finished(struct cache *c, const struct torrent *t, const struct peer *p,
                           bool *moved, struct err *err) MUST_CHECK;

/* These functions change slots_used by one, never below 0, and set the new number in the struct. */
int cache_increment_slots(struct cache *c, struct swarm_user *u, struct err *err) MUST_CHECK;
int cache_decrement_slots(struct cache *c, struct swarm_user *u, struct err *err) MUST_CHECK;

/* Adds a torrent. If the torrent exists, only its multipliers (factors for the bytes that users are
 * credited with) are changed. With id 0 the torrent gets the next free id. The id is put into the
 * struct. last_action 0: now. ERR_EXISTS: another torrent has the id. */
int cache_add_torrent(struct cache *c, struct torrent *t, struct err *err) MUST_CHECK;
/* Like cache_add_torrent(), but for the torrent of an object (docs/torrents.md): a torrent that
 * exists keeps its multipliers. ERR_PRECONDITION: an operator has withdrawn the torrent. */
int cache_offer_torrent(struct cache *c, struct torrent *t, struct err *err) MUST_CHECK;
/* Sets *out to whether the torrent exists and no operator has withdrawn it
 * (cache_withdraw_torrent()). */
int cache_torrent_listed(struct cache *c, const uint8_t *info_hash, bool *out,
                         struct err *err) MUST_CHECK;
/* Removes the torrent with all of its peers and gives their slots back. ERR_NOT_FOUND: there is no
 * such torrent. */
int cache_remove_torrent(struct cache *c, const uint8_t *info_hash, struct err *err) MUST_CHECK;
/* Like cache_remove_torrent(), but for an operator: afterwards only cache_add_torrent() can bring
 * the torrent back, not cache_offer_torrent(). */
int cache_withdraw_torrent(struct cache *c, const uint8_t *info_hash, struct err *err) MUST_CHECK;
/* Adds a user. If the user exists, only the multipliers and slots are changed. With id 0 the user
 * gets the next free id. The id is put into the struct. ERR_INVALID: the passkey is malformed.
 * ERR_EXISTS: another user has the id. */
int cache_add_user(struct cache *c, struct swarm_user *u, struct err *err) MUST_CHECK;
/* Removes the user with all of the user's peers. ERR_NOT_FOUND: there is no such user. */
int cache_remove_user(struct cache *c, struct str passkey, struct err *err) MUST_CHECK;
int cache_whitelist_client(struct cache *c, struct str client, struct err *err) MUST_CHECK;
int cache_unwhitelist_client(struct cache *c, struct str client, struct err *err) MUST_CHECK;

/* --- walks over all torrents, users and clients --- */

/* Call fn for each torrent, user or approved client, in no particular order. A negative code of fn
 * ends the walk and is returned. */
typedef int cache_torrent_fn(void *ctx, const struct torrent *t, struct err *err);
typedef int cache_user_fn(void *ctx, const struct swarm_user *u, struct err *err);
typedef int cache_client_fn(void *ctx, struct str client, struct err *err);
int cache_each_torrent(struct cache *c, cache_torrent_fn *fn, void *ctx,
                       struct err *err) MUST_CHECK;
int cache_each_user(struct cache *c, cache_user_fn *fn, void *ctx, struct err *err) MUST_CHECK;
int cache_each_client(struct cache *c, cache_client_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* --- the announce path of the private mode --- */

/* Handles an announce in one script, which may refuse it, counts slots and snatches, appends to the
 * feed, and chooses peers (docs/swarm.md, the table of transitions). The caller fills in the
 * intervals. */
int cache_announce(struct cache *c, const struct announce *a, struct announce_answer *out,
                   struct err *err) MUST_CHECK;
/* Answers a scrape: fills in `count` entries. `hashes` has `count` times INFO_HASH_LEN bytes. */
int cache_scrape(struct cache *c, const uint8_t *hashes, size_t count, struct scrape_entry *out,
                 struct err *err) MUST_CHECK;

/* Removes up to `limit` peers that have not announced for `timeout_s` seconds. *gone is the number
 * of removed peers. Several trackers may call this at the same time. */
int cache_reap(struct cache *c, uint64_t timeout_s, size_t limit, size_t *gone,
               struct err *err) MUST_CHECK;

/* Looks for violations of the invariants I1 to I8 and calls fn for each, for `weir swarm check`. */
typedef void cache_finding_fn(void *ctx, const char *invariant, struct str key);
int cache_check(struct cache *c, cache_finding_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* The channel of the store on which changes of torrents, users and clients are published, as the
 * messages "torrent <hash>", "user" and "client". */
struct str cache_channel(const struct cache *c);
/* Agrees with the other trackers on the key for connection ids (connid.h): replaces `key` by the
 * store's key. A store that has no key stores the given key. */
int cache_shared_key(struct cache *c, uint8_t key[16], struct err *err) MUST_CHECK;

#endif
