/* Shared by the files of the cache: cache*.c, feed.c and share*.c. */
#ifndef SWARM_CACHE_INT_H
#define SWARM_CACHE_INT_H

#include "swarm/cache.h"
#include "swarm/scripts.h"

#define WITHDRAWN_KEY "w:torrents_withdrawn"

enum {
    CACHE_ARGS_MAX = 24,
    CACHE_CALL_MAX = 1024 * 1024, /* most bytes of one call's arguments and answer */
    IP_TEXT_MAX = 46,
    NUMWANT_STANDARD = 50,
    NUMWANT_MOST = 200,
    FEED_STANDARD_MAX = 1000000,
};

struct cache {
    struct cache_options o; /* o.prefix points to `prefix` */
    char *prefix, *channel;
    struct str channel_name;
};

/* One call of a script: its arguments, its answer, and the memory of both. */
struct cache_call {
    struct cache *cache;
    struct arena arena;
    struct str args[CACHE_ARGS_MAX];
    size_t count;
    struct reply *reply;
};

/* Begins a call, and adds the prefix as its first argument. */
void call_init(struct cache_call *k, struct cache *c);
void call_release(struct cache_call *k);
void call_str(struct cache_call *k, struct str s); /* `s` is borrowed */
void call_u64(struct cache_call *k, uint64_t n);
void call_i64(struct cache_call *k, int64_t n);
void call_double(struct cache_call *k, double d);
void call_key(struct cache_call *k, const char *kind,
              struct str rest); /* adds a key with the prefix */
int call_run(struct cache_call *k, enum swarm_script which, struct err *err) MUST_CHECK;
/* Does the same as call_run() for a script that answers a number, and puts the number into *out. */
int call_integer(struct cache_call *k, enum swarm_script which, int64_t *out,
                 struct err *err) MUST_CHECK;

struct str cache_key(const struct cache *c, struct arena *a, const char *kind, struct str rest);
struct str base36(struct arena *a, uint64_t n);

/* Whether the tracker accepts this peer id. A peer's key in the store begins with the peer id, so
 * an id is refused if it would make that key look like another kind of key. */
bool peer_id_allowed(const uint8_t *peer_id);

/* Writes the compact form of an address and returns its length: 6 bytes for IPv4, 18 for IPv6. */
size_t addr_compact(const struct peer_addr *addr, uint8_t out[COMPACT6_LEN]);
void addr_from_compact(struct peer_addr *out, const uint8_t *at, bool v6);
struct str addr_ip_text(struct arena *a, const struct peer_addr *addr);

/* Read a model from a reply of the store: a torrent from the values in the order of swarm_find.lua,
 * a user from the names and values of HGETALL. ERR_CORRUPT: a value is missing or is not a number.
 */
int torrent_model_read(struct torrent *out, const struct reply *values, const uint8_t *info_hash,
                       struct err *err) MUST_CHECK;
int swarm_user_read(struct swarm_user *out, const struct reply *hash, struct err *err) MUST_CHECK;

/* A peer's entry in the hash addrs:<torrent id>, as part_peer.lua packs it. */
struct peer_entry {
    char state;        /* 'S' seeder, 'L' leecher, 'P' partial seed (BEP 21) */
    const uint8_t *at; /* the compact IPv4 address, then the compact IPv6 address */
    uint64_t last, last4, last6, uploaded, downloaded, left;
};
int peer_entry_read(struct peer_entry *out, struct str packed, struct err *err) MUST_CHECK;

#endif
