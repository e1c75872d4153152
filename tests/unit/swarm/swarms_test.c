/* Swarms in memory: transitions, who is given out, time, bounds, the file. */
#include "unit/swarm/swarms_util.h"

#include "os/file.h"

#include <stdio.h>
#include <unistd.h>
#include <stdlib.h>

TEST(swarms, the_table_of_transitions_holds)
{
    /* Role before, left and event, role after, change, snatches. '-': absent */
    static const struct {
        char before;
        uint64_t left;
        enum announce_event event;
        char after;
        enum swarm_change change;
        uint32_t snatches;
    } rows[] = {
        {'-', 1, EVENT_STARTED, 'L', SWARM_CHANGE_LEECHER, 0},
        {'-', 0, EVENT_NONE, 'S', SWARM_CHANGE_SEEDER, 0},
        {'-', 0, EVENT_COMPLETED, 'S', SWARM_CHANGE_SEEDER, 0},
        {'-', 1, EVENT_STOPPED, '-', SWARM_CHANGE_NONE, 0},
        {'-', 0, EVENT_STOPPED, '-', SWARM_CHANGE_NONE, 0},
        {'-', 1, EVENT_PAUSED, 'L', SWARM_CHANGE_LEECHER, 0},
        {'L', 1, EVENT_NONE, 'L', SWARM_CHANGE_NONE, 0},
        {'L', 1, EVENT_COMPLETED, 'L', SWARM_CHANGE_NONE, 0},
        {'L', 1, EVENT_PAUSED, 'L', SWARM_CHANGE_LEECHER, 0},
        {'L', 0, EVENT_COMPLETED, 'S', SWARM_CHANGE_COMPLETED, 1},
        {'L', 0, EVENT_NONE, 'S', SWARM_CHANGE_COMPLETED, 1},
        {'L', 1, EVENT_STOPPED, '-', SWARM_CHANGE_STOPPED, 0},
        {'L', 0, EVENT_STOPPED, '-', SWARM_CHANGE_STOPPED_COMPLETED, 1},
        {'S', 1, EVENT_NONE, 'L', SWARM_CHANGE_LEECHER, 0},
        {'S', 0, EVENT_NONE, 'S', SWARM_CHANGE_NONE, 0},
        {'S', 0, EVENT_COMPLETED, 'S', SWARM_CHANGE_NONE, 0},
        {'S', 1, EVENT_STOPPED, '-', SWARM_CHANGE_STOPPED, 0},
        {'S', 0, EVENT_STOPPED, '-', SWARM_CHANGE_STOPPED, 0},
    };
    for (int v6 = 0; v6 < 2; v6++)
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            struct swarms *s = open_swarms(2700);
            struct asked q;
            ask(&q, i, 7, v6);
            if (rows[i].before != '-')
                say(s, &q, rows[i].before == 'L', EVENT_STARTED, 1000);
            CHECK_INT(say(s, &q, rows[i].left, rows[i].event, 1001), rows[i].change);
            CHECK_INT(q.answer.failure, SWARM_NONE);
            CHECK_INT(q.answer.complete, rows[i].after == 'S');
            CHECK_INT(q.answer.incomplete, rows[i].after == 'L');
            CHECK_INT(q.answer.downloaded, rows[i].snatches);
            CHECK_INT(q.answer.peers4.count + q.answer.peers6.count, 0);
            swarms_free(s);
        }
}

/* Scenario 5. */
TEST(swarms, snatch_once_on_udp_retransmit)
{
    struct swarms *s = open_swarms(2700);
    struct asked q;

    ask(&q, 1, 1, false);
    say(s, &q, 5, EVENT_STARTED, 10);
    for (int i = 0; i < 3; i++)
        say(s, &q, 0, EVENT_COMPLETED, 11);
    CHECK_INT(q.answer.downloaded, 1);
    ask(&q, 1, 2, false);
    say(s, &q, 5, EVENT_STARTED, 12);
    for (int i = 0; i < 3; i++)
        say(s, &q, 0, EVENT_STOPPED, 13);
    CHECK_INT(scrape_one(s, 1).downloaded, 2);
    swarms_free(s);
}

static void fill(struct swarms *s, uint64_t torrent, uint32_t seeders, uint32_t leechers)
{
    struct asked q;

    for (uint32_t i = 0; i < seeders + leechers; i++) {
        ask(&q, torrent, i + 1, false);
        say(s, &q, i < seeders ? 0 : 9, EVENT_STARTED, 100);
    }
}

static uint32_t client_at(const struct compact *c, size_t i)
{
    uint32_t client;

    memcpy(&client, c->at + i * COMPACT4_LEN, 4);
    return client;
}

TEST(swarms, a_seeder_gets_leechers_and_a_leecher_seeders_first)
{
    struct swarms *s = open_swarms(2700);
    struct asked q;

    fill(s, 1, 10, 20);
    ask(&q, 1, 1, false);
    say(s, &q, 0, EVENT_NONE, 101);
    CHECK_INT(q.answer.peers4.count, 20);
    for (size_t i = 0; i < 20; i++)
        CHECK(client_at(&q.answer.peers4, i) > 10);
    ask(&q, 1, 11, false);
    q.a.numwant = 10;
    say(s, &q, 1, EVENT_NONE, 101);
    CHECK_INT(q.answer.peers4.count, 10);
    for (size_t i = 0; i < 10; i++)
        CHECK(client_at(&q.answer.peers4, i) <= 10);
    q.a.numwant = 200;
    say(s, &q, 1, EVENT_NONE, 101);
    CHECK_INT(q.answer.peers4.count, 29);
    CHECK(!q.answer.peers4.has_ids);
    swarms_free(s);
}

/* Scenario 50: one that does not know what is left may say 0. */
TEST(swarms, who_starts_as_a_seeder_gets_seeders_behind_the_leechers)
{
    struct swarms *s = open_swarms(2700);
    struct asked q;

    fill(s, 1, 10, 20);
    ask(&q, 1, 40, false);
    say(s, &q, 0, EVENT_STARTED, 101);
    CHECK_INT(q.answer.peers4.count, 30);
    for (size_t i = 0; i < 30; i++)
        CHECK((client_at(&q.answer.peers4, i) > 10) == (i < 20));
    q.a.numwant = 20;
    say(s, &q, 0, EVENT_STARTED, 101);
    for (size_t i = 0; i < 20; i++)
        CHECK(client_at(&q.answer.peers4, i) > 10);
    q.a.numwant = -1;
    q.a.uploaded = 1;
    say(s, &q, 0, EVENT_STARTED, 101);
    CHECK_INT(q.answer.peers4.count, 20);
    q.a.uploaded = 0;
    say(s, &q, 0, EVENT_NONE, 101);
    CHECK_INT(q.answer.peers4.count, 20);
    swarms_free(s);
}

/* Scenario 25, what is not of a protocol. */
TEST(swarms, numwant_matrix)
{
    static const struct {
        int32_t numwant;
        size_t got;
    } rows[] = {{-1, 50}, {-7, 50}, {INT32_MIN, 50}, {0, 0}, {1, 1}, {199, 199}, {5000, 200}};
    struct swarms *s = open_swarms(2700);
    struct asked q;

    fill(s, 1, 150, 150);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        ask(&q, 1, 200, false);
        q.a.numwant = rows[i].numwant;
        say(s, &q, 1, EVENT_NONE, 101);
        CHECK_INT(q.answer.peers4.count, rows[i].got);
    }
    q.a.numwant = 50;
    say(s, &q, 1, EVENT_STOPPED, 101);
    CHECK_INT(q.answer.peers4.count, 0);
    swarms_free(s);
}

/* The announcer is left out wherever it stands and wherever the run begins. */
TEST(swarms, nobody_is_given_itself_and_all_others_come_in_time)
{
    struct swarms *s = open_swarms(2700);
    bool seen[41] = {false};
    struct asked q;

    fill(s, 1, 0, 40);
    for (uint32_t round = 0; round < 4000; round++) {
        uint32_t me = 1 + round % 40;
        ask(&q, 1, me, false);
        q.a.numwant = (int32_t)(round % 45);
        say(s, &q, 1, EVENT_NONE, 101);
        CHECK_INT(q.answer.peers4.count, size_min(round % 45, 39));
        for (size_t i = 0; i < q.answer.peers4.count; i++) {
            CHECK(client_at(&q.answer.peers4, i) != me);
            for (size_t j = 0; j < i; j++)
                CHECK(client_at(&q.answer.peers4, i) != client_at(&q.answer.peers4, j));
            seen[client_at(&q.answer.peers4, i)] |= me == 1;
        }
    }
    for (int i = 2; i <= 40; i++)
        CHECK(seen[i]);
    swarms_free(s);
}

TEST(swarms, over_both_families_at_least_a_quarter_is_of_each)
{
    struct swarms *s = open_swarms(2700);
    struct asked q;

    fill(s, 1, 0, 100);
    for (uint32_t i = 0; i < 100; i++) {
        ask(&q, 1, 1000 + i, true);
        say(s, &q, 1, EVENT_STARTED, 100);
    }
    ask(&q, 1, 1, false);
    q.answer.peers6.max = ROOM;
    q.a.numwant = 40;
    say(s, &q, 1, EVENT_NONE, 101);
    CHECK_INT(q.answer.peers4.count, 30);
    CHECK_INT(q.answer.peers6.count, 10);
    q.a.numwant = 150;
    say(s, &q, 1, EVENT_NONE, 101);
    CHECK_INT(q.answer.peers4.count, 99);
    CHECK_INT(q.answer.peers6.count, 51);
    swarms_free(s);
}

TEST(swarms, only_torrents_that_were_added_are_tracked_when_not_open)
{
    struct swarms_options o = {.max_torrents = 9, .max_peers = 9, .peer_timeout_s = 60};
    uint8_t hash[INFO_HASH_LEN];
    struct err err = {0};
    struct swarms *s;
    struct asked q;

    CHECK_OK(swarms_new(&s, &o, &err));
    ask(&q, 1, 1, false);
    CHECK_INT(say(s, &q, 1, EVENT_STARTED, 5), SWARM_CHANGE_NONE);
    CHECK_INT(q.answer.failure, SWARM_TORRENT);
    CHECK(!scrape_one(s, 1).known);
    number_into(hash, sizeof(hash), 1);
    swarms_add(s, hash, 12);
    CHECK_INT(say(s, &q, 1, EVENT_STARTED, 5), SWARM_CHANGE_LEECHER);
    CHECK_INT(q.answer.downloaded, 12);
    swarms_add(s, hash, 3); /* again: snatches never go back */
    CHECK_INT(scrape_one(s, 1).downloaded, 12);
    swarms_remove(s, hash);
    say(s, &q, 1, EVENT_STARTED, 5);
    CHECK_INT(q.answer.failure, SWARM_TORRENT);
    swarms_free(s);
}

/* Scenario 38: a partial seed is incomplete and no downloader. */
TEST(swarms, paused_partial_seed_downloaders)
{
    struct swarms *s = open_swarms(2700);
    struct scrape_entry e;
    struct asked q;

    fill(s, 1, 1, 5);
    ask(&q, 1, 3, false);
    say(s, &q, 1, EVENT_PAUSED, 100);
    e = scrape_one(s, 1);
    CHECK_INT(e.complete, 1);
    CHECK_INT(e.incomplete, 5);
    CHECK_INT(e.downloaders, 4);
    say(s, &q, 1, EVENT_NONE, 100);
    CHECK_INT(scrape_one(s, 1).downloaders, 5);
    say(s, &q, 1, EVENT_PAUSED, 100);
    say(s, &q, 0, EVENT_COMPLETED, 100);
    CHECK_INT(scrape_one(s, 1).downloaders, 4);
    say(s, &q, 1, EVENT_PAUSED, 100);
    say(s, &q, 1, EVENT_STOPPED, 100);
    CHECK_INT(scrape_one(s, 1).downloaders, 4);
    swarms_free(s);
}

/* Scenario 37. */
TEST(swarms, dual_stack_same_key_counts_once)
{
    for (int v6_first = 0; v6_first < 2; v6_first++) {
        struct swarms *s = open_swarms(2700);
        struct asked a, b, other;

        ask(&a, 1, 1, v6_first);
        ask(&b, 1, 1, !v6_first);
        ask(&other, 1, 2, true);
        say(s, &a, 1, EVENT_STARTED, 100);
        say(s, &other, 1, EVENT_STARTED, 100);
        say(s, &b, 1, EVENT_STARTED, 100);
        CHECK_INT(b.answer.incomplete, 2);
        say(s, &b, 0, EVENT_COMPLETED, 101);
        say(s, &a, 0, EVENT_COMPLETED, 101);
        CHECK_INT(a.answer.complete, 1);
        CHECK_INT(a.answer.incomplete, 1);
        say(s, &a, 0, EVENT_STOPPED, 102);
        CHECK_INT(a.answer.complete, 1);
        say(s, &b, 0, EVENT_STOPPED, 102);
        CHECK_INT(b.answer.complete, 0);
        CHECK_INT(b.answer.incomplete, 1);
        swarms_free(s);
    }
}

/* Scenario 49: a version 2 hash, cut, is a torrent of its own beside the version 1 hash. */
TEST(swarms, v2_truncated_hash)
{
    static const uint8_t sha256[32] = {0xe7, 0xd0, 0xa5, 0x77, 0x5c};
    struct swarms *s = open_swarms(2700);
    struct asked q;

    ask(&q, 1, 1, false);
    say(s, &q, 1, EVENT_STARTED, 1);
    q.a.info_hash = sha256;
    say(s, &q, 1, EVENT_STARTED, 1);
    CHECK_INT(q.answer.incomplete, 1);
    swarms_free(s);
}

TEST(swarms, peers_past_the_timeout_are_not_given_out_without_a_cleaner)
{
    static const uint32_t timeouts[] = {60, 100, 2700, 100000};

    for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
        uint32_t t = timeouts[i];
        struct swarms *s = open_swarms(t);
        struct asked q;
        fill(s, 1, 5, 5); /* at 100 s */
        ask(&q, 1, 1, false);
        say(s, &q, 0, EVENT_NONE, 100 + t / 2);
        ask(&q, 1, 99, false);
        say(s, &q, 1, EVENT_STARTED, 100 + t - t / 20);
        CHECK_INT(q.answer.peers4.count, 10);
        say(s, &q, 1, EVENT_NONE, 100 + t + 1);
        CHECK_INT(q.answer.peers4.count, 1);
        CHECK_INT(q.answer.complete, 1);
        CHECK_INT(q.answer.incomplete, 1);
        say(s, &q, 1, EVENT_NONE, 100 + 3 * t); /* none touched for the timeout */
        CHECK_INT(q.answer.complete, 0);
        for (uint32_t later = 1; later < 300; later++) { /* bytes of time come round */
            struct asked old;
            ask(&old, 1, 98, false);
            say(s, &old, 0, EVENT_STARTED, 100 + 3 * t + later * (t + t / 50 + 1));
            CHECK_INT(old.answer.complete, 1);
            CHECK_INT(old.answer.incomplete, 0);
        }
        swarms_free(s);
    }
}

TEST(swarms, one_that_was_told_of_is_told_again_before_others_forget_it)
{
    struct swarms *s = open_swarms(2700);
    uint32_t last = 0;
    struct asked q;

    ask(&q, 1, 1, false);
    say(s, &q, 1, EVENT_STARTED, 0);
    for (uint32_t now = 0; now < 20000; now += 60) {
        if (say(s, &q, 1, EVENT_NONE, now) == SWARM_CHANGE_NONE)
            continue;
        CHECK(now - last >= 400 && now - last <= 1200);
        last = now;
    }
    CHECK(last > 18000);
    swarms_free(s);
}

TEST(swarms, what_others_tell_counts_unless_ours_is_newer)
{
    struct swarms *s = open_swarms(2700);
    struct scrape_entry e;
    struct asked q;

    ask(&q, 1, 1, false);
    swarms_apply(s, &q.a, SWARM_CHANGE_LEECHER, 5000, 2);
    CHECK_INT(scrape_one(s, 1).incomplete, 1);
    swarms_apply(s, &q.a, SWARM_CHANGE_COMPLETED, 5001, 0);
    e = scrape_one(s, 1);
    CHECK(e.complete == 1 && e.incomplete == 0 && e.downloaded == 1);
    swarms_apply(s, &q.a, SWARM_CHANGE_STOPPED, 5001, 300); /* of before */
    CHECK_INT(scrape_one(s, 1).complete, 1);
    swarms_apply(s, &q.a, SWARM_CHANGE_STOPPED, 5001, 0);
    CHECK_INT(scrape_one(s, 1).complete, 0);
    swarms_apply(s, &q.a, SWARM_CHANGE_SEEDER, 5001, 2701); /* too old */
    CHECK_INT(scrape_one(s, 1).complete, 0);
    swarms_apply(s, &q.a, SWARM_CHANGE_SEEDER, 5001, 2000);
    CHECK_INT(scrape_one(s, 1).complete, 1);
    ask(&q, 1, 2, false);
    say(s, &q, 1, EVENT_STARTED, 5001 + 800);
    CHECK_INT(q.answer.complete, 0);
    swarms_free(s);
}

TEST(swarms, what_the_store_has_counts_only_where_memory_knows_less)
{
    struct swarms *s = open_swarms(2700);
    struct asked q;

    ask(&q, 1, 1, false);
    swarms_apply(s, &q.a, SWARM_CHANGE_COMPLETED, 5000, 0);
    q.a.left = 1;
    swarms_take(s, &q.a, 5001, 1); /* read before it completed, in the same moment */
    CHECK_INT(scrape_one(s, 1).complete, 1);
    swarms_take(s, &q.a, 5400, 0);
    CHECK_INT(scrape_one(s, 1).incomplete, 1);
    ask(&q, 1, 2, false);
    q.a.left = 0;
    swarms_take(s, &q.a, 5400, 100);
    CHECK_INT(scrape_one(s, 1).complete, 1);
    swarms_free(s);
}

TEST(swarms, a_swarm_of_many_is_found_grows_and_shrinks)
{
    enum { MANY = 70000 }; /* past what an index of two bytes holds */
    struct swarms *s = open_swarms(2700);
    struct swarms_stats stats;
    struct asked q;

    for (uint32_t i = 1; i <= MANY; i++) {
        ask(&q, 1, i, false);
        CHECK(say(s, &q, i % 3, EVENT_STARTED, 100) != SWARM_CHANGE_NONE);
    }
    CHECK_INT(q.answer.complete, MANY / 3);
    CHECK_INT(q.answer.incomplete, MANY - MANY / 3);
    swarms_stats(s, &stats);
    CHECK(stats.bytes < sizeof(stats) + 400 * KIB + (size_t)MANY * 17);
    for (uint32_t i = 1; i <= MANY; i++) {
        ask(&q, 1, i, false);
        CHECK_INT(say(s, &q, i % 3, EVENT_NONE, 101), SWARM_CHANGE_NONE);
    }
    for (uint32_t i = 1; i <= MANY; i++) {
        ask(&q, 1, i, false);
        CHECK_INT(say(s, &q, 1, EVENT_STOPPED, 102), SWARM_CHANGE_STOPPED);
    }
    CHECK_INT(q.answer.complete + q.answer.incomplete, 0);
    swarms_stats(s, &stats);
    CHECK(stats.bytes < 400 * KIB);
    CHECK_INT(stats.seeders4 + stats.leechers4, 0);
    swarms_free(s);
}

/* Scenario 61, short: the bytes that a peer and a torrent take. */
TEST(swarms, memory_per_peer_is_bounded)
{
    enum { TORRENTS = 20000 };
    struct swarms *s = open_swarms(2700);
    struct swarms_stats base, ones, more;
    struct asked q;

    swarms_stats(s, &base);
    for (uint32_t t = 0; t < TORRENTS; t++) {
        ask(&q, t, 1, false);
        say(s, &q, 1, EVENT_STARTED, 100);
    }
    swarms_stats(s, &ones);
    CHECK((ones.bytes - base.bytes) / TORRENTS < 100);
    for (uint32_t t = 0; t < TORRENTS / 100; t++)
        for (uint32_t i = 0; i < 400; i++) {
            ask(&q, t, i + 2, false);
            say(s, &q, i % 4 == 0, EVENT_STARTED, 100);
        }
    swarms_stats(s, &more);
    CHECK_INT(more.seeders4 + more.leechers4, TORRENTS + TORRENTS / 100 * 400);
    CHECK((more.bytes - ones.bytes) / (TORRENTS / 100 * 400) < 14);
    swarms_free(s);
}

/* Peers that somebody makes up, by port; IPv6: by the last bytes of the address too. */
static void crowd(struct swarms *s, uint32_t address, uint32_t count, bool v6)
{
    struct asked q;

    for (uint32_t i = 0; i < count; i++) {
        ask(&q, 1, address, v6);
        q.a.addr.port[0] = (uint8_t)(0x20 + (i >> 8));
        q.a.addr.port[1] = (uint8_t)i;
        if (v6)
            q.a.addr.ip[12] = (uint8_t)i;
        say(s, &q, 1, EVENT_STARTED, 100);
        CHECK_INT(q.answer.failure, SWARM_NONE);
    }
}

TEST(swarms, an_address_fills_no_swarm)
{
    enum { NETWORK = 0x08080808, OTHER = 0x09080808, PRIVATE = 0x0100000a }; /* low byte first */
    struct swarms_stats stats;
    struct swarms *s = bounded_swarms((struct swarms_options){
        .max_torrents = 10, .max_peers = 100000, .max_per_address = 10, .peer_timeout_s = 2700});
    struct asked q;

    crowd(s, NETWORK, 50, false);
    CHECK_INT(scrape_one(s, 1).incomplete, 10);
    crowd(s, NETWORK, 50, false); /* those that are there are refreshed */
    CHECK_INT(scrape_one(s, 1).incomplete, 10);
    crowd(s, OTHER, 5, false);
    CHECK_INT(scrape_one(s, 1).incomplete, 15);
    crowd(s, PRIVATE, 30, false);
    CHECK_INT(scrape_one(s, 1).incomplete, 45);
    crowd(s, 0x01001020, 50, true);
    CHECK_INT(scrape_one(s, 1).incomplete, 55);
    swarms_stats(s, &stats);
    CHECK_INT(stats.crowded, 40 + 40 + 40);
    ask(&q, 1, NETWORK, false); /* one more gets its peers */
    CHECK(say(s, &q, 1, EVENT_STARTED, 100) == SWARM_CHANGE_NONE);
    CHECK(q.answer.peers4.count > 40);
    swarms_apply(s, &q.a, SWARM_CHANGE_LEECHER, 100, 0); /* as told by another tracker */
    CHECK_INT(scrape_one(s, 1).incomplete, 55);
    swarms_free(s);
}

/* In a swarm of which only a part is looked at. */
TEST(swarms, an_address_fills_no_large_swarm)
{
    struct swarms_stats stats;
    struct swarms *s = bounded_swarms((struct swarms_options){
        .max_torrents = 10, .max_peers = 100000, .max_per_address = 10, .peer_timeout_s = 2700});

    fill(s, 1, 0, 10000);
    crowd(s, 0x08080808, 5000, false);
    swarms_stats(s, &stats);
    CHECK(stats.leechers4 < 11000); /* the estimate is coarse, never blind */
    CHECK(stats.crowded > 4000);
    swarms_free(s);
}

/* Scenario 63, in memory. */
TEST(swarms, flood_random_infohash_bounded_memory)
{
    struct swarms_stats stats;
    struct swarms *s = bounded_swarms(
        (struct swarms_options){.max_torrents = 2000, .max_peers = 5000, .peer_timeout_s = 2700});
    uint8_t hash[INFO_HASH_LEN];
    struct asked q;

    number_into(hash, sizeof(hash), 1);
    swarms_add(s, hash, 0);
    for (uint64_t t = 2; t < 12; t++)
        fill(s, t, 3, 3);
    for (uint32_t i = 0; i < 20000; i++) {
        ask(&q, 1000 + i, i, false);
        say(s, &q, 1, EVENT_STARTED, 200 + i / 1000);
        CHECK_INT(q.answer.failure, SWARM_NONE);
    }
    swarms_stats(s, &stats);
    CHECK(stats.torrents <= 2000);
    CHECK(stats.evicted > 17000);
    CHECK(scrape_one(s, 1).known);
    for (uint64_t t = 2; t < 12; t++)
        CHECK_INT(scrape_one(s, t).complete, 3);
    for (uint32_t i = 0; i < 20000; i++) { /* peers to one torrent */
        ask(&q, 2, 1000 + i, false);
        say(s, &q, 1, EVENT_STARTED, 300);
    }
    swarms_stats(s, &stats);
    CHECK(stats.leechers4 + stats.seeders4 <= 5000);
    swarms_free(s);
}

TEST(swarms, torrents_that_were_added_are_not_displaced)
{
    struct swarms_options o = {
        .open = true, .max_torrents = 4, .max_peers = 100, .peer_timeout_s = 60};
    uint8_t hash[INFO_HASH_LEN];
    struct err err = {0};
    struct swarms *s;
    struct asked q;

    CHECK_OK(swarms_new(&s, &o, &err));
    for (uint64_t t = 0; t < 4; t++) {
        number_into(hash, sizeof(hash), t);
        swarms_add(s, hash, 0);
    }
    ask(&q, 9, 1, false);
    say(s, &q, 1, EVENT_STARTED, 1);
    CHECK_INT(q.answer.failure, SWARM_FULL);
    for (uint64_t t = 4; t < 7; t++) { /* the list is the operator's: past the bound too */
        number_into(hash, sizeof(hash), t);
        swarms_add(s, hash, 0);
    }
    for (uint64_t t = 0; t < 7; t++) {
        ask(&q, t, 1, false);
        say(s, &q, 1, EVENT_STARTED, 1);
        CHECK_INT(q.answer.failure, SWARM_NONE);
    }
    ask(&q, 9, 1, false);
    say(s, &q, 1, EVENT_STARTED, 1);
    CHECK_INT(q.answer.failure, SWARM_FULL);
    for (uint64_t t = 0; t < 4; t++) { /* room again */
        number_into(hash, sizeof(hash), t);
        swarms_remove(s, hash);
    }
    say(s, &q, 1, EVENT_STARTED, 1);
    CHECK_INT(q.answer.failure, SWARM_NONE);
    swarms_free(s);
}

/* Scenario 62: what the cleaner does in one call is bounded, and all is cleaned in the end. */
TEST(swarms, load_clean_no_latency_spike)
{
    enum { TORRENTS = 50000 };
    struct swarms *s = open_swarms(60);
    struct swarms_stats before, stats;
    uint32_t calls = 0;
    struct asked q;

    for (uint32_t t = 0; t < TORRENTS; t++) {
        ask(&q, t, 1, false);
        say(s, &q, 1, EVENT_STARTED, 100);
    }
    swarms_stats(s, &before);
    do {
        swarms_clean(s, 200);
        calls++;
        swarms_stats(s, &stats);
        CHECK(before.torrents - stats.torrents <= 256);
        before = stats;
    } while (stats.torrents && calls < 10000);
    CHECK_INT(stats.torrents, 0);
    CHECK_INT(stats.leechers4, 0);
    CHECK(stats.bytes < 3 * MIB);
    swarms_free(s);
}

/* --- the file --- */

static const char *file_path(char out[256])
{
    snprintf(out, 256, "%s/swarms", test_dir());
    return out;
}

TEST(swarms, a_snapshot_comes_back_with_counts_and_ages)
{
    struct swarms *s = open_swarms(2700), *back = open_swarms(1000);
    struct err err = {0};
    char path[256];
    struct asked q;

    fill(s, 1, 10, 20);
    fill(s, 2, 1, 0);
    ask(&q, 2, 1, true); /* the same client over IPv6 */
    say(s, &q, 0, EVENT_STARTED, 100);
    ask(&q, 1, 15, false);
    say(s, &q, 1, EVENT_PAUSED, 100 + 2000); /* 2,000 s later: the others are too old for `back` */
    say(s, &q, 0, EVENT_COMPLETED, 100 + 2000);
    ask(&q, 1, 16, false);
    say(s, &q, 1, EVENT_PAUSED, 100 + 2000);
    CHECK_OK(swarms_save(s, file_path(path), 100 + 2000, &err));
    CHECK_OK(swarms_load(back, path, 50, &err));
    CHECK_INT(scrape_one(back, 1).complete, 1);
    CHECK_INT(scrape_one(back, 1).incomplete, 1);
    CHECK_INT(scrape_one(back, 1).downloaders, 0);
    CHECK_INT(scrape_one(back, 1).downloaded, 1);
    CHECK_INT(scrape_one(back, 2).complete, 0);
    swarms_free(back);
    back = open_swarms(2700);
    CHECK_OK(swarms_load(back, path, 7, &err));
    CHECK_INT(scrape_one(back, 1).complete, 11);
    CHECK_INT(scrape_one(back, 1).incomplete, 19);
    CHECK_INT(scrape_one(back, 2).complete, 1);
    ask(&q, 1, 99, false);
    say(back, &q, 1, EVENT_STARTED, 7 + 750);
    CHECK_INT(q.answer.complete, 1);
    swarms_free(back);
    swarms_free(s);
}

TEST(swarms, a_snapshot_of_nothing_is_one)
{
    struct swarms *s = open_swarms(60);
    struct err err = {0};
    char path[256];

    CHECK_ERR(swarms_load(s, file_path(path), 1, &err), ERR_NOT_FOUND);
    CHECK_OK(swarms_save(s, path, 1, &err));
    CHECK_OK(swarms_load(s, path, 1, &err));
    swarms_free(s);
}

/* A process was killed while it wrote. */
TEST(swarms, what_a_save_left_behind_is_written_over)
{
    struct swarms *s = open_swarms(60);
    struct err err = {0};
    char path[256], temporary[300];
    FILE *left;

    snprintf(temporary, sizeof(temporary), "%s.tmp", file_path(path));
    left = fopen(temporary, "w");
    for (int i = 0; i < 10000; i++)
        fputc('x', left);
    fclose(left);
    CHECK_OK(swarms_save(s, path, 1, &err));
    CHECK_OK(swarms_load(s, path, 1, &err));
    CHECK(access(temporary, F_OK) < 0);
    swarms_free(s);
}

TEST(swarms, nothing_of_a_damaged_snapshot_is_taken)
{
    struct swarms *s = open_swarms(2700);
    struct buf file = BUF_INIT(0);
    struct err err = {0};
    char path[256];

    fill(s, 1, 3, 3);
    fill(s, 2, 1, 1);
    CHECK_OK(swarms_save(s, file_path(path), 100, &err));
    swarms_free(s);
    CHECK_OK(file_read(path, &file, &err));
    for (size_t i = 0; i < file.len; i += 7) {
        struct swarms_stats stats;
        s = open_swarms(2700);
        file.p[i] ^= 0x10;
        CHECK_OK(file_write_durable(path, buf_str(&file), 0600, &err));
        CHECK_ERR(swarms_load(s, path, 100, &err), ERR_CORRUPT);
        CHECK_OK(file_write_durable(path, str_head(buf_str(&file), i), 0600, &err));
        CHECK_ERR(swarms_load(s, path, 100, &err), ERR_CORRUPT);
        file.p[i] ^= 0x10;
        swarms_stats(s, &stats);
        CHECK_INT(stats.torrents, 0);
        swarms_free(s);
    }
    buf_release(&file);
}
