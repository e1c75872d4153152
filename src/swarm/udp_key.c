/* Shares the key for connection ids. The key is in the store, so that trackers accept each other's
 * ids (U2).
 *
 * A tracker that starts while the store is down makes its own key. A thread keeps asking the store
 * for its key. If the store has none, for instance after a restart that lost the data, the thread
 * gives the tracker's key to the store. So a tracker's key changes only when the store has another
 * key. Ids made with the previous key are accepted until they are too old. */
#include "base/clock.h"
#include "swarm/cache.h"
#include "swarm/udp_int.h"

#include <stdlib.h>

enum { KEY_RETRY_MS = 500, KEY_AGAIN_MS = 10000, KEY_STACK_BYTES = 256 * 1024 };

/* A key, in a list of all keys so far. Loops read a key without a lock, so replaced keys live until
 * the server is stopped. */
struct udp_keys {
    struct hash_key now;
    struct udp_keys *older; /* the key before; NULL: there is none */
};

static void udp_key_install(struct udp_server *u, const uint8_t key[16])
{
    struct udp_keys *next = xcalloc(1, sizeof(*next));

    _Static_assert(sizeof(next->now) == 16, "a key of SipHash");
    memcpy(&next->now, key, sizeof(next->now));
    next->older = atomic_load_explicit(&u->keys, memory_order_relaxed);
    atomic_store_explicit(&u->keys, next, memory_order_release);
}

static const struct udp_keys *udp_keys_of(const struct udp_server *u)
{
    return atomic_load_explicit(&u->keys, memory_order_acquire);
}

uint64_t udp_make_id(const struct udp_server *u, const uint8_t addr[16], int64_t wall_ms)
{
    return connid_make(&udp_keys_of(u)->now, addr, wall_ms);
}

bool udp_check_id(const struct udp_server *u, const uint8_t addr[16], int64_t wall_ms, uint64_t id)
{
    const struct udp_keys *k = udp_keys_of(u);

    return connid_check(&k->now, addr, wall_ms, id) ||
           (k->older && connid_check(&k->older->now, addr, wall_ms, id));
}

/* --- following the store --- */

/* Asks the store for the key and uses it. False: the store did not answer. */
static bool udp_key_ask(struct udp_server *u)
{
    struct hash_key now = udp_keys_of(u)->now;
    struct err err = {0};
    uint8_t key[16];

    memcpy(key, &now, sizeof(key));
    int code = cache_shared_key(u->cache, key, &err);
    if (code == 0 && memcmp(key, &now, sizeof(key)) != 0) {
        udp_key_install(u, key);
        log_info(u->log, "tracker.key_taken");
    }
    secure_zero(key, sizeof(key));
    secure_zero(&now, sizeof(now));
    return code == 0;
}

static struct loop_sleep udp_key_follow(void *ctx)
{
    return loop_sleep_ms(udp_key_ask(ctx) ? KEY_AGAIN_MS : KEY_RETRY_MS);
}

int udp_key_start(struct udp_server *u, const struct udp_options *o, struct err *err)
{
    udp_key_install(u, o->key);
    u->cache = o->cache;
    return u->cache ? loop_start(&u->key_loop,
                                 &(struct loop_options){.name = "udp-key",
                                                        .step = udp_key_follow,
                                                        .ctx = u,
                                                        .first = loop_sleep_ms(KEY_RETRY_MS),
                                                        .stack_size = KEY_STACK_BYTES},
                                 err)
                    : 0;
}

void udp_key_stop(struct udp_server *u)
{
    loop_stop(&u->key_loop);
}

void udp_key_release(struct udp_server *u)
{
    struct udp_keys *older;

    for (struct udp_keys *k = atomic_load(&u->keys); k; k = older) {
        older = k->older;
        secure_zero(k, sizeof(*k));
        free(k);
    }
}
