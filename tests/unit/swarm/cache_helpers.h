/* What the suites of the cache share: a cache on either engine, and users, torrents and announces
 * in one line. */
#ifndef TESTS_UNIT_SWARM_CACHE_HELPERS_H
#define TESTS_UNIT_SWARM_CACHE_HELPERS_H

#include "swarm/cache.h"
#include "swarm/tracker.h"
#include "unit/store/four.h"

enum { DB_SWARM = 4 };

struct store *swarm_store(struct four *f);
struct cache *cache_on(struct four *f);
struct cache *cache_with(struct cache_options o);
/* A tracker of 1,000 torrents and 1,000 peers; mode and lists are for the test to say. */
struct tracker_options tracker_options_on(struct four *f, struct cache *c);

/* A passkey and an info hash made of one character, a peer id that begins with -TS0001-. */
struct str passkey_of(char c);
const uint8_t *hash_of(char c);
const uint8_t *peer_id_of(unsigned n);

struct swarm_user add_user(struct cache *c, char name, int64_t slots);
struct torrent add_torrent(struct cache *c, char name);
struct swarm_user user_now(struct cache *c, char name);
struct torrent_peers torrent_now(struct cache *c, struct arena *a, char name);

/* Peer `n` of user `u` on torrent `t`, at 10.0.<n>:6881. */
struct announce announce_of(char u, char t, unsigned n, uint64_t left, enum announce_event event);
struct peer peer_of(const struct swarm_user *u, unsigned n, uint64_t left);

/* With room for 200 of each family. */
struct answer {
    struct announce_answer a;
    uint8_t at4[200 * COMPACT4_LEN], at6[200 * COMPACT6_LEN];
    uint8_t ids4[200 * PEER_ID_LEN], ids6[200 * PEER_ID_LEN];
};
void answer_init(struct answer *out);
/* Ends the test when the store cannot be asked. */
enum swarm_failure announce(struct cache *c, struct announce a, struct answer *out);
enum swarm_failure announce_now(struct cache *c, char u, char t, unsigned n, uint64_t left,
                                enum announce_event event);

/* Ends the test with the first violation of I1 to I8. */
void check_invariants(struct cache *c);
/* Whether the check finds that this one ("I4") is. */
bool invariant_broken(struct cache *c, const char *invariant);

/* One command on the store and its printed reply, until the next call. */
const char *store_says(struct store *s, const struct str *argv, size_t argc);
#define says(s, ...)                                                                               \
    store_says((s), (const struct str[]){__VA_ARGS__},                                             \
               sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

#endif
