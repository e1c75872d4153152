/* Trackers at the same time, and a Redis that is restarted or fails over. */
#include "os/file.h"
#include "os/thread.h"
#include "unit/store/redis_test.h"
#include "unit/swarm/cache_helpers.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 100 };

struct racer {
    struct cache *cache;
    unsigned id;
    struct thread thread;
    _Atomic(unsigned) accepted;
};

static void race(struct cache *const *caches, size_t count, thread_fn *fn,
                 struct racer racers[THREADS])
{
    struct err err = {0};

    for (unsigned i = 0; i < THREADS; i++) {
        racers[i].cache = caches[i % count];
        racers[i].id = i;
        CHECK_OK(thread_start(&racers[i].thread, "racer", 0, fn, &racers[i], &err));
    }
    for (unsigned i = 0; i < THREADS; i++)
        thread_join(&racers[i].thread);
}

/* The first two put a peer in and out, the others look. */
static void find_or_remove(void *ctx)
{
    struct racer *r = ctx;
    struct err err = {0};
    struct arena a = {0};
    struct swarm_user u = user_now(r->cache, 'u');
    struct torrent t = torrent_now(r->cache, &a, 't').torrent;
    struct peer p = peer_of(&u, 100 + r->id, 0);

    for (int i = 0; i < ROUNDS; i++) {
        arena_reset(&a);
        if (r->id < 2) {
            CHECK_OK(cache_add_seeder(r->cache, &t, &p, &err));
            CHECK_OK(cache_remove_seeder(r->cache, &t, &p, &err));
            continue;
        }
        struct torrent_peers got = torrent_now(r->cache, &a, 't');
        CHECK(got.seeder_count >= 3 &&
              got.seeder_count <= 5); /* those that stay are always there */
        for (size_t k = 0; k < got.seeder_count; k++)
            CHECK(got.seeders[k].user_id == u.id && got.seeders[k].addr.ip[0] == 10);
    }
    arena_release(&a);
}

TEST_FOUR(cache_race, find_torrent_during_remove_seeder)
{
    struct cache *caches[] = {cache_on(f), cache_on(f)};
    struct racer racers[THREADS] = {0};

    add_user(caches[0], 'u', -1);
    add_torrent(caches[0], 't');
    for (unsigned i = 0; i < 3; i++)
        CHECK_INT(announce_now(caches[0], 'u', 't', i, 0, EVENT_STARTED), SWARM_NONE);
    race(caches, 2, find_or_remove, racers);
    check_invariants(caches[0]);
    cache_close(caches[0]);
    cache_close(caches[1]);
}

static void start_many(void *ctx)
{
    struct racer *r = ctx;

    for (unsigned i = 0; i < ROUNDS / 4; i++)
        if (announce_now(r->cache, 'u', 't', r->id * 1000 + i, 5, EVENT_STARTED) == SWARM_NONE)
            r->accepted++;
}

TEST_FOUR(cache_race, slots_limit_race_two_trackers)
{
    struct cache *caches[] = {cache_on(f), cache_on(f)};
    struct racer racers[THREADS] = {0};
    unsigned accepted = 0;

    add_user(caches[0], 'u', 5);
    add_torrent(caches[0], 't');
    race(caches, 2, start_many, racers);
    for (unsigned i = 0; i < THREADS; i++)
        accepted += racers[i].accepted;
    CHECK_INT(accepted, 5);
    CHECK_INT(user_now(caches[0], 'u').slots_used, 5);
    check_invariants(caches[0]);
    cache_close(caches[0]);
    cache_close(caches[1]);
}

/* Two refresh, one reaps those that are old, one all. */
static void refresh_or_reap(void *ctx)
{
    struct racer *r = ctx;
    struct err err = {0};
    size_t gone;

    for (unsigned i = 0; i < ROUNDS; i++) {
        if (r->id < 2)
            CHECK_INT(announce_now(r->cache, 'u', 't', i % 5, r->id ? 5 : 0, EVENT_NONE), 0);
        else
            CHECK_OK(cache_reap(r->cache, r->id == 2 ? 100000 : 0, 3, &gone, &err));
    }
}

TEST_FOUR(cache_race, reap_vs_refresh_race)
{
    struct cache *caches[] = {cache_on(f), cache_on(f)};
    struct racer racers[THREADS] = {0};
    struct err err = {0};
    struct arena a = {0};
    size_t gone = 1;

    add_user(caches[0], 'u', -1);
    add_torrent(caches[0], 't');
    race(caches, 2, refresh_or_reap, racers);
    check_invariants(caches[0]);
    CHECK_INT(announce_now(caches[0], 'u', 't', 1, 5, EVENT_NONE), SWARM_NONE);
    CHECK_OK(cache_reap(caches[1], 100000, 100, &gone, &err)); /* it was refreshed just now */
    CHECK_INT(gone, 0);
    struct torrent_peers t = torrent_now(caches[0], &a, 't');
    CHECK(t.leecher_count >= 1);
    arena_release(&a);
    cache_close(caches[0]);
    cache_close(caches[1]);
}

TEST(cache_race, redis_restart_noscript_reload)
{
    static const char *const append[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    struct four f = {.server = {.extra = append}};
    struct err err = {0};

    four_open_redis(&f);
    struct cache *c = cache_on(&f);
    add_user(c, 'u', 1);
    add_torrent(c, 't');
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_STARTED), SWARM_NONE);
    says(swarm_store(&f), STR("SCRIPT"), STR("FLUSH"));
    CHECK_INT(announce_now(c, 'u', 't', 1, 4, EVENT_NONE), SWARM_NONE);
    redis_server_kill(&f.server);
    struct swarm_user u;
    CHECK(cache_find_user(c, passkey_of('u'), &u, &err) != ERR_NOT_FOUND); /* down is not absent */
    CHECK(redis_server_start(&f.server));
    CHECK_SOON(store_ping(swarm_store(&f), &err) == 0);
    CHECK_INT(announce_now(c, 'u', 't', 2, 5, EVENT_STARTED), SWARM_SLOTS); /* it knows of 1 */
    CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_COMPLETED), SWARM_NONE);
    CHECK_INT(user_now(c, 'u').snatches, 1);
    check_invariants(c);
    cache_close(c);
    four_close(&f);
}

static void announce_many(void *ctx)
{
    struct racer *r = ctx;
    struct err err = {0};

    for (unsigned i = 0;; i++) { /* until the primary is gone */
        struct announce a = announce_of('u', i % 2 ? 's' : 't', r->id * 100 + i % 7, i % 3,
                                        i % 5 ? EVENT_NONE : EVENT_STOPPED);
        struct answer out;
        answer_init(&out);
        if (cache_announce(r->cache, &a, &out.a, &err) < 0)
            return;
        r->accepted++;
    }
}

TEST_TIMEOUT(cache_race, redis_failover_invariants, 120)
{
    struct redis_server primary = {0}, replica = {0};
    char folder[300], port[16];
    const char *const follow[] = {"--replicaof", "127.0.0.1", port, NULL};
    struct racer racers[THREADS] = {0};
    struct err err = {0};

    need_redis_server(&primary);
    snprintf(port, sizeof(port), "%d", primary.port);
    snprintf(folder, sizeof(folder), "%s/replica", test_dir());
    CHECK_OK(dir_make(folder, 0700, &err));
    replica.dir = folder;
    replica.extra = follow;
    CHECK(redis_server_start(&replica));
    struct store *one = store_with(
        (struct store_redis_options){.url = str_z(primary.unix_url), .number = DB_SWARM});
    struct store *two = store_with(
        (struct store_redis_options){.url = str_z(replica.unix_url), .number = DB_SWARM});
    struct cache *c = cache_with((struct cache_options){.store = one});
    add_user(c, 'u', -1);
    add_torrent(c, 's');
    add_torrent(c, 't');
    CHECK_SOON(strstr(says(two, STR("INFO"), STR("replication")), "master_link_status:up"));
    for (unsigned i = 0; i < THREADS; i++) {
        racers[i].cache = c;
        racers[i].id = i;
        CHECK_OK(thread_start(&racers[i].thread, "racer", 0, announce_many, &racers[i], &err));
    }
    CHECK_SOON(racers[0].accepted >= ROUNDS);
    redis_server_kill(&primary);
    for (unsigned i = 0; i < THREADS; i++)
        thread_join(&racers[i].thread);
    says(two, STR("REPLICAOF"), STR("NO"), STR("ONE"));
    struct cache *d = cache_with((struct cache_options){.store = two});
    check_invariants(d); /* what it has of announces it has whole */
    for (unsigned i = 0; i < 20; i++)
        CHECK_INT(announce_now(d, 'u', 't', i, i % 2, EVENT_NONE), SWARM_NONE);
    check_invariants(d);
    cache_close(c);
    cache_close(d);
    store_close(one);
    store_close(two);
    redis_server_kill(&replica);
}
