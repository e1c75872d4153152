/* Inside the cache: for cache*.c, feed.c and share*.c only. */
#ifndef SWARM_CACHE_INT_H
#define SWARM_CACHE_INT_H

#include "swarm/cache.h"
#include "swarm/scripts.h"

#define WITHDRAWN_KEY "w:torrents_withdrawn"

enum {
    CACHE_ARGS_MAX = 24,
    CACHE_CALL_MAX = 1024 * 1024, /* bytes of one call's arguments and answer */
    ID_MAX_BITS = 53,             /* Lua counts in doubles */
    IP_TEXT_MAX = 46,
    NUMWANT_STANDARD = 50,
    NUMWANT_MOST = 200,
    FEED_STANDARD_MAX = 1000000,
};

struct cache {
    struct cache_options o; /* its prefix is `prefix` */
    char *prefix, *channel;
    struct str channel_name;
};

/* What one call needs: its arguments, and memory for them and the answer. */
struct cache_call {
    struct cache *cache;
    struct arena arena;
    struct str args[CACHE_ARGS_MAX];
    size_t count;
    struct reply *reply;
};

/* With the prefix as the first argument. */
void call_init(struct cache_call *k, struct cache *c);
void call_release(struct cache_call *k);
void call_str(struct cache_call *k, struct str s); /* borrowed */
void call_u64(struct cache_call *k, uint64_t n);
void call_i64(struct cache_call *k, int64_t n);
void call_double(struct cache_call *k, double d);
void call_key(struct cache_call *k, const char *kind, struct str rest); /* with the prefix */
int call_run(struct cache_call *k, enum swarm_script which, struct err *err) MUST_CHECK;
/* The same with an answer that must be a number. */
int call_integer(struct cache_call *k, enum swarm_script which, int64_t *out,
                 struct err *err) MUST_CHECK;

struct str cache_key(const struct cache *c, struct arena *a, const char *kind, struct str rest);
struct str base36(struct arena *a, uint64_t n);

/* The key of a peer begins with its id: one like a torrent's key could be taken for one. */
bool peer_id_allowed(const uint8_t *peer_id);

/* What a peer's compact form is: 6 or 18 bytes. */
size_t addr_compact(const struct peer_addr *addr, uint8_t out[COMPACT6_LEN]);
void addr_from_compact(struct peer_addr *out, const uint8_t *at, bool v6);
struct str addr_ip_text(struct arena *a, const struct peer_addr *addr);

/* Values into a model: of a torrent as swarm_find.lua has them, of a user with names as HGETALL
 * has. ERR_CORRUPT when one is missing or is no number. */
int read_torrent(const struct reply *values, const uint8_t *info_hash, struct torrent *out,
                 struct err *err) MUST_CHECK;
int read_user(const struct reply *fields, struct swarm_user *out, struct err *err) MUST_CHECK;

/* An entry of addrs:<torrent id> (part_peer.lua). */
struct entry {
    char state;        /* S, L, P */
    const uint8_t *at; /* COMPACT4_LEN, then COMPACT6_LEN bytes */
    uint64_t last, last4, last6, uploaded, downloaded, left;
};
int read_entry(struct str packed, struct entry *out, struct err *err) MUST_CHECK;

#endif
