/* Public swarms shared by two trackers: on both engines, and on a Redis that goes away. */
#include "swarm/share.h"

#include "base/clock.h"
#include "swarm/share_int.h"
#include "swarm/swarms.h"
#include "unit/store/redis_test.h"
#include "unit/swarm/cache_helpers.h"

#include <stdio.h>

struct tracker_of {
    struct cache *cache;
    struct swarms *swarms;
    struct share *share;
};

static uint32_t seconds(void *ctx)
{
    return (uint32_t)(clock_mono_ms() / MS_PER_S);
}

static void tracker_bounded(struct tracker_of *t, struct store *store, size_t max_waiting,
                            uint64_t max_torrents, uint64_t max_peers)
{
    struct swarms_options so = {.open = true,
                                .max_torrents = 10000,
                                .max_peers = 100000,
                                .peer_timeout_s = 3600,
                                .numwant = 50,
                                .max_numwant = 200};
    struct err err = {0};

    t->cache = cache_with((struct cache_options){.store = store});
    CHECK_OK(swarms_new(&t->swarms, &so, &err));
    struct share_options o = {.cache = t->cache,
                              .store = store,
                              .swarms = t->swarms,
                              .now = seconds,
                              .peer_timeout_s = 3600,
                              .max_waiting = max_waiting,
                              .max_torrents = max_torrents,
                              .max_peers = max_peers};
    CHECK_OK(share_open(&t->share, &o, &err));
}

static void tracker_start(struct tracker_of *t, struct store *store, size_t max_waiting)
{
    tracker_bounded(t, store, max_waiting, 10000, 100000);
}

static void tracker_end(struct tracker_of *t)
{
    share_close(t->share);
    swarms_free(t->swarms);
    cache_close(t->cache);
}

static void say(struct tracker_of *t, struct announce a)
{
    struct answer out;

    answer_init(&out);
    enum swarm_change change = swarms_announce(t->swarms, &a, seconds(NULL), &out.a);
    CHECK_INT(out.a.failure, SWARM_NONE);
    if (change != SWARM_CHANGE_NONE)
        share_change(t->share, &a, change);
}

static struct scrape_entry scraped(struct tracker_of *t, char torrent)
{
    struct scrape_entry e;

    swarms_scrape(t->swarms, hash_of(torrent), 1, &e);
    return e;
}

static bool counts_are(struct tracker_of *t, char torrent, uint32_t complete, uint32_t incomplete)
{
    struct scrape_entry e = scraped(t, torrent);

    return e.complete == complete && e.incomplete == incomplete;
}

static struct share_stats stats_of(struct tracker_of *t)
{
    struct share_stats s;

    share_stats(t->share, &s);
    return s;
}

static struct announce v6(struct announce a)
{
    a.addr = (struct peer_addr){.ip = {0x20, 1, [15] = 9}, .port = {1, 2}, .v6 = true};
    return a;
}

TEST_FOUR(share, two_trackers_see_each_other)
{
    struct tracker_of one, two;

    tracker_start(&one, swarm_store(f), 1000);
    tracker_start(&two, swarm_store(f), 1000);
    say(&one, announce_of('u', 't', 1, 0, EVENT_STARTED));
    say(&two, announce_of('u', 't', 2, 7, EVENT_STARTED));
    say(&two, v6(announce_of('u', 't', 3, 7, EVENT_STARTED)));
    CHECK_SOON(counts_are(&one, 't', 1, 2));
    CHECK_SOON(counts_are(&two, 't', 1, 2));
    say(&two, announce_of('u', 't', 2, 0, EVENT_COMPLETED));
    CHECK_SOON(counts_are(&one, 't', 2, 1));
    say(&one, announce_of('u', 't', 1, 0, EVENT_STOPPED));
    CHECK_SOON(counts_are(&two, 't', 1, 1));

    struct scrape_entry e;
    swarms_scrape(one.swarms, hash_of('t'), 1, &e);
    CHECK_INT(e.downloaded, 1);
    struct err err = {0};
    CHECK_OK(cache_scrape(one.cache, hash_of('t'), 1, &e, &err));
    CHECK_INT(e.complete, 1);
    CHECK_INT(e.incomplete, 1);
    CHECK_INT(e.downloaded, 1);
    check_invariants(one.cache);
    tracker_end(&one);
    tracker_end(&two);
}

TEST_FOUR(share, a_tracker_takes_over_what_is_in_the_store)
{
    struct tracker_of one, two;
    struct answer out;

    tracker_start(&one, swarm_store(f), 10000);
    for (unsigned i = 0; i < 700; i++) /* one swarm too large for a page, and small ones */
        say(&one, announce_of('u', i < 600 ? 't' : (char)('A' + i % 26), i, i % 2, EVENT_STARTED));
    say(&one, v6(announce_of('u', 'Z', 1, 7, EVENT_PAUSED)));
    CHECK_SOON(stats_of(&one).written >= 701);
    tracker_end(&one);
    tracker_start(&two, swarm_store(f), 1000);
    CHECK_SOON(counts_are(&two, 't', 300, 300));
    CHECK_SOON(counts_are(&two, 'A', 3, 0));
    CHECK_SOON(counts_are(&two, 'Z', 0, 4));
    struct announce a = announce_of('u', 'Z', 5000, 0, EVENT_STARTED);
    answer_init(&out);
    swarms_announce(two.swarms, &a, seconds(NULL), &out.a);
    CHECK_INT(out.a.peers4.count, 3);
    CHECK_INT(out.a.peers6.count, 1);
    check_invariants(two.cache);
    tracker_end(&two);
}

TEST_FOUR(share, only_the_newest_change_of_a_peer_is_written)
{
    struct tracker_of one;
    struct err err = {0};
    struct scrape_entry e;

    tracker_start(&one, swarm_store(f), 1000);
    struct announce first = announce_of('u', 't', 1, 1, EVENT_STARTED);
    share_change(one.share, &first, SWARM_CHANGE_LEECHER);
    CHECK_SOON(stats_of(&one).written >=
               1); /* so that it moves in the store, whatever is left out from here on */
    for (unsigned i = 0; i < 500; i++) {
        struct announce a = announce_of('u', 't', 1, i % 2, EVENT_NONE);
        share_change(one.share, &a, i % 2 ? SWARM_CHANGE_LEECHER : SWARM_CHANGE_SEEDER);
    }
    struct announce a = announce_of('u', 't', 1, 0, EVENT_COMPLETED);
    share_change(one.share, &a, SWARM_CHANGE_COMPLETED);
    share_change(one.share, &a, SWARM_CHANGE_SEEDER);
    share_close(one.share);
    one.share = NULL;
    CHECK_OK(cache_scrape(one.cache, hash_of('t'), 1, &e, &err));
    CHECK_INT(e.complete, 1);
    CHECK_INT(e.incomplete, 0);
    CHECK(e.downloaded >= 1); /* what moved, moved */
    check_invariants(one.cache);
    tracker_end(&one);
}

static void change(struct tracker_of *t, char torrent, enum swarm_change what)
{
    bool seeds = what != SWARM_CHANGE_LEECHER && what != SWARM_CHANGE_STOPPED;
    struct announce a = announce_of('u', torrent, 1, seeds ? 0 : 9, EVENT_NONE);

    share_change(t->share, &a, what);
}

static void check_scrape(struct tracker_of *t, char torrent, struct scrape_entry expected)
{
    struct err err = {0};
    struct scrape_entry e;

    CHECK_OK(cache_scrape(t->cache, hash_of(torrent), 1, &e, &err));
    CHECK_INT(e.complete, expected.complete);
    CHECK_INT(e.incomplete, expected.incomplete);
    CHECK_INT(e.downloaded, expected.downloaded);
}

/* However the changes fall into batches. */
TEST_FOUR(share, a_completion_is_counted_once_whatever_comes_behind_it)
{
    struct tracker_of one;

    tracker_start(&one, swarm_store(f), 1000);
    for (int torrent = 'a'; torrent <= 'e'; torrent++)
        add_torrent(one.cache, (char)torrent);
    change(&one, 'a', SWARM_CHANGE_SEEDER);
    change(&one, 'b', SWARM_CHANGE_LEECHER);
    CHECK_SOON(stats_of(&one).written >= 2);
    change(&one, 'a', SWARM_CHANGE_LEECHER); /* one who was a seeder */
    change(&one, 'a', SWARM_CHANGE_COMPLETED);
    change(&one, 'a', SWARM_CHANGE_SEEDER);
    change(&one, 'b', SWARM_CHANGE_COMPLETED);
    change(&one, 'b', SWARM_CHANGE_LEECHER);
    change(&one, 'c', SWARM_CHANGE_LEECHER);
    change(&one, 'c', SWARM_CHANGE_COMPLETED);
    change(&one, 'c', SWARM_CHANGE_STOPPED);
    change(&one, 'd', SWARM_CHANGE_LEECHER);
    change(&one, 'd', SWARM_CHANGE_STOPPED_COMPLETED);
    change(&one, 'e', SWARM_CHANGE_LEECHER);
    change(&one, 'e', SWARM_CHANGE_STOPPED);
    share_close(one.share);
    one.share = NULL;
    check_scrape(&one, 'a', (struct scrape_entry){.complete = 1, .downloaded = 1});
    check_scrape(&one, 'b', (struct scrape_entry){.incomplete = 1, .downloaded = 1});
    check_scrape(&one, 'c', (struct scrape_entry){.downloaded = 1});
    check_scrape(&one, 'd', (struct scrape_entry){.downloaded = 1});
    check_scrape(&one, 'e', (struct scrape_entry){0});
    check_invariants(one.cache);
    tracker_end(&one);
}

/* Its answer was lost. The thread is not there: each step is taken here. */
TEST_FOUR(share, a_batch_that_is_written_twice_counts_once)
{
    struct tracker_of one;
    struct err err = {0};

    tracker_start(&one, swarm_store(f), 1000);
    mutex_lock(&one.share->lock);
    one.share->stop = true;
    cond_broadcast(&one.share->changed);
    mutex_unlock(&one.share->lock);
    thread_join(&one.share->thread);
    change(&one, 't', SWARM_CHANGE_LEECHER);
    change(&one, 't', SWARM_CHANGE_COMPLETED);
    change(&one, 't', SWARM_CHANGE_LEECHER);
    CHECK(share_gather(one.share));
    CHECK_OK(share_write(one.share, &err));
    change(&one, 't', SWARM_CHANGE_SEEDER); /* waits for the next batch */
    CHECK(share_gather(one.share));
    CHECK_OK(share_write(one.share, &err));
    check_scrape(&one, 't', (struct scrape_entry){.incomplete = 1, .downloaded = 1});
    share_done(one.share);
    CHECK(share_gather(one.share));
    CHECK_OK(share_write(one.share, &err));
    share_done(one.share);
    CHECK(!share_gather(one.share));
    check_scrape(&one, 't', (struct scrape_entry){.complete = 1, .downloaded = 2});
    check_invariants(one.cache);
    tracker_end(&one);
}

TEST_FOUR(share, torrents_that_nobody_added_go_with_their_last_peer)
{
    struct tracker_of one;
    struct err err = {0};
    size_t gone;

    tracker_start(&one, swarm_store(f), 1000);
    add_torrent(one.cache, 'a');
    say(&one, announce_of('u', 'a', 1, 5, EVENT_STARTED));
    say(&one, announce_of('u', 'b', 2, 5, EVENT_STARTED));
    say(&one, announce_of('u', 'c', 3, 5, EVENT_STARTED));
    CHECK_SOON(stats_of(&one).written >= 3);
    CHECK_STR(str_z(says(swarm_store(f), STR("HLEN"), STR("torrent_ids"))), STR("3"));
    say(&one, announce_of('u', 'b', 2, 5, EVENT_STOPPED));
    CHECK_SOON(stats_of(&one).written >= 4);
    CHECK_STR(str_z(says(swarm_store(f), STR("HLEN"), STR("torrent_ids"))), STR("2"));
    CHECK_OK(cache_reap(one.cache, 0, 100, &gone, &err));
    CHECK_INT(gone, 2);
    CHECK_STR(str_z(says(swarm_store(f), STR("HVALS"), STR("torrent_ids"))),
              STR("[\"aaaaaaaaaaaaaaaaaaaa\"]"));
    check_invariants(one.cache);
    tracker_end(&one);
}

/* Memory is bounded by displacing; the store by not taking more. */
TEST_FOUR(share, a_flood_of_torrents_and_of_peers_stays_inside_the_bounds_of_the_store)
{
    struct tracker_of one;

    tracker_bounded(&one, swarm_store(f), 1000, 5, 8);
    add_torrent(one.cache, 'a');
    for (unsigned i = 0; i < 20; i++)
        say(&one, announce_of('u', (char)('b' + i), i, 5, EVENT_STARTED));
    CHECK_SOON(stats_of(&one).written >= 20);
    CHECK_STR(str_z(says(swarm_store(f), STR("HLEN"), STR("torrent_ids"))), STR("5"));
    for (unsigned i = 0; i < 20; i++)
        say(&one, announce_of('u', 'a', i, 5, EVENT_STARTED));
    CHECK_SOON(stats_of(&one).written >= 40);
    CHECK_STR(str_z(says(swarm_store(f), STR("ZCARD"), STR("expiry"))), STR("8"));
    say(&one, announce_of('u', 'b', 0, 0, EVENT_COMPLETED)); /* who is there goes on */
    CHECK_SOON(stats_of(&one).written >= 41);
    check_scrape(&one, 'b', (struct scrape_entry){.complete = 1, .downloaded = 1});
    check_invariants(one.cache);
    tracker_end(&one);
}

/* So many in all, and none waits to be written. */
static bool refused(struct tracker_of *t, uint64_t count)
{
    struct share_stats s = stats_of(t);

    return s.refused == count && s.waiting == 0;
}

/* H5. In one batch and in those behind it; others get to know of all of them. */
TEST_FOUR(share, a_change_that_the_store_refuses_for_good_holds_up_no_other)
{
    struct store *store = swarm_store(f);
    struct tracker_of one, two;

    says(store, STR("SET"), STR("torrent:xxxxxxxxxxxxxxxxxxxx"), STR("somebody's"));
    tracker_start(&one, store, 1000);
    tracker_start(&two, store, 1000);
    change(&one, 'x', SWARM_CHANGE_LEECHER);
    change(&one, 'x', SWARM_CHANGE_COMPLETED); /* two steps of one peer count once */
    change(&one, 'x', SWARM_CHANGE_LEECHER);
    for (int torrent = 'a'; torrent <= 'd'; torrent++)
        change(&one, (char)torrent, SWARM_CHANGE_SEEDER);
    CHECK_SOON(refused(&one, 1));
    CHECK_SOON(stats_of(&one).written >= 4);
    for (int torrent = 'a'; torrent <= 'd'; torrent++)
        CHECK_SOON(counts_are(&two, (char)torrent, 1, 0));
    CHECK_SOON(counts_are(&two, 'x', 0, 1));
    change(&one, 'x', SWARM_CHANGE_STOPPED);
    change(&one, 'a', SWARM_CHANGE_STOPPED);
    CHECK_SOON(counts_are(&two, 'a', 0, 0));
    CHECK_SOON(refused(&one, 2));
    CHECK_SOON(!stats_of(&one).behind);
    CHECK_STR(str_z(says(store, STR("GET"), STR("torrent:xxxxxxxxxxxxxxxxxxxx"))),
              STR("\"somebody's\""));
    says(store, STR("DEL"), STR("torrent:xxxxxxxxxxxxxxxxxxxx"));
    check_invariants(one.cache);
    change(&one, 'x', SWARM_CHANGE_SEEDER); /* with the next announce all is well */
    CHECK_SOON(stats_of(&one).written >= 6);
    check_scrape(&one, 'x', (struct scrape_entry){.complete = 1});
    tracker_end(&one);
    tracker_end(&two);
}

/* It was in the sets before its own key turned out to be no hash. */
TEST_FOUR(share, a_change_that_is_refused_halfway_leaves_nothing_behind)
{
    struct store *store = swarm_store(f);
    struct tracker_of one;

    tracker_start(&one, store, 1000);
    add_torrent(one.cache, 'a');
    struct announce a = announce_of('u', 'a', 1, 0, EVENT_NONE);
    struct buf key = {0};
    buf_append(&key, a.peer_id, PEER_ID_LEN);
    buf_append_z(&key, ":0:1");
    says(store, STR("SET"), buf_str(&key), STR("somebody's"));
    change(&one, 'a', SWARM_CHANGE_SEEDER);
    CHECK_SOON(refused(&one, 1));
    check_scrape(&one, 'a', (struct scrape_entry){0});
    check_invariants(one.cache);
    change(&one, 'a', SWARM_CHANGE_SEEDER);
    CHECK_SOON(stats_of(&one).written >= 1);
    check_scrape(&one, 'a', (struct scrape_entry){.complete = 1});
    check_invariants(one.cache);
    buf_release(&key);
    tracker_end(&one);
}

/* G7: of those who read the store. */
TEST_FOUR(share, a_torrent_that_cannot_be_read_is_passed_over_when_taking_over_and_reaping)
{
    struct store *store = swarm_store(f);
    struct tracker_of one, two;
    struct err err = {0};
    size_t gone = 0;

    tracker_start(&one, store, 1000);
    for (int torrent = 'a'; torrent <= 'c'; torrent++) {
        add_torrent(one.cache, (char)torrent);
        change(&one, (char)torrent, SWARM_CHANGE_SEEDER);
    }
    CHECK_SOON(stats_of(&one).written >= 3);
    tracker_end(&one);
    says(store, STR("DEL"), STR("addrs:2"));
    says(store, STR("SET"), STR("addrs:2"), STR("somebody's"));
    tracker_start(&two, store, 1000);
    change(&two, 'b', SWARM_CHANGE_LEECHER);
    CHECK_SOON(counts_are(&two, 'a', 1, 0));
    CHECK_SOON(counts_are(&two, 'c', 1, 0));
    CHECK_SOON(refused(&two, 1));
    CHECK_SOON(!stats_of(&two).behind);
    CHECK_OK(cache_reap(two.cache, 0, 100, &gone, &err));
    CHECK_INT(gone, 3);
    CHECK_STR(str_z(says(store, STR("EXISTS"), STR("expiry"))), STR("0"));
    tracker_end(&two);
}

TEST_FOUR(share, a_malformed_message_is_passed_over)
{
    struct tracker_of one;
    static const char *bad[] = {"", "\1", "\2aaaaaaaaxxxxx", "\1aaaaaaaax",
                                "\1aaaaaaaa\xff\xff\xff"};

    tracker_start(&one, swarm_store(f), 1000);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        says(swarm_store(f), STR("PUBLISH"), STR("swarm:4:peers"), str_z(bad[i]));
    say(&one, announce_of('u', 't', 1, 0, EVENT_STARTED));
    CHECK_SOON(counts_are(&one, 't', 1, 0));
    tracker_end(&one);
}

TEST_TIMEOUT(share, redis_down_degrades_and_recovers, 120)
{
    struct four f = {0};
    struct tracker_of one, two;
    struct share_stats s;

    four_open_redis(&f);
    struct store_redis_options other = {.url = str_z(f.server.unix_url), .number = DB_SWARM};
    struct store *second = store_with(other);
    tracker_start(&one, swarm_store(&f), 100);
    tracker_start(&two, second, 100);
    say(&one, announce_of('u', 't', 1, 0, EVENT_STARTED));
    CHECK_SOON(counts_are(&two, 't', 1, 0));
    redis_server_kill(&f.server);
    for (unsigned i = 2; i <= 300; i++) /* answered from memory all the time */
        say(&one, announce_of('u', 't', i, 0, EVENT_STARTED));
    CHECK_SOON(stats_of(&one).behind);
    share_stats(one.share, &s);
    CHECK(s.waiting <= 100 && s.dropped >= 100);
    CHECK(redis_server_start(&f.server));
    CHECK_SOON(!stats_of(&one).behind);
    say(&two, announce_of('u', 't', 500, 9, EVENT_STARTED));
    /* two knows the newest 100 of one, and one knows of two */
    CHECK_SOON(scraped(&one, 't').incomplete == 1 && scraped(&two, 't').complete >= 100);
    check_invariants(one.cache);
    tracker_end(&one);
    tracker_end(&two);
    store_close(second);
    four_close(&f);
}

/* Refused, but not for good. */
TEST_TIMEOUT(share, what_a_full_redis_refuses_is_written_when_it_has_room, 120)
{
    struct four f = {0};
    struct tracker_of one;
    struct share_stats s;

    four_open_redis(&f);
    tracker_start(&one, swarm_store(&f), 100);
    change(&one, 'a', SWARM_CHANGE_SEEDER);
    CHECK_SOON(stats_of(&one).written >= 1);
    says(swarm_store(&f), STR("CONFIG"), STR("SET"), STR("maxmemory"), STR("1"));
    change(&one, 'b', SWARM_CHANGE_SEEDER);
    CHECK_SOON(stats_of(&one).behind);
    says(swarm_store(&f), STR("CONFIG"), STR("SET"), STR("maxmemory"), STR("0"));
    CHECK_SOON(stats_of(&one).written >= 2);
    share_stats(one.share, &s);
    CHECK(!s.refused && !s.dropped);
    check_scrape(&one, 'b', (struct scrape_entry){.complete = 1});
    check_invariants(one.cache);
    tracker_end(&one);
    four_close(&f);
}
