/* The private announce, on both engines: the table of transitions cell by cell, and what it
 * refuses, counts and gives out. */
#include "unit/swarm/cache_helpers.h"

#include <stdio.h>
#include <stdlib.h>

/* --- transitions --- */

enum state { ABSENT, LEECHER, SEEDER };

/* What a user and a torrent have. */
struct sums {
    size_t seeders, leechers;
    int64_t used;
    uint64_t snatches;
};

static struct sums sums_now(struct cache *c)
{
    struct arena a = {0};
    struct torrent_peers t = torrent_now(c, &a, 't');
    struct swarm_user u = user_now(c, 'u');
    struct sums out = {t.seeder_count, t.leecher_count, u.slots_used, u.snatches};

    CHECK_INT(t.torrent.snatches, u.snatches);
    arena_release(&a);
    return out;
}

static void bring_to(struct cache *c, unsigned n, enum state state)
{
    if (state != ABSENT)
        CHECK_INT(announce_now(c, 'u', 't', n, state == LEECHER ? 10 : 0, EVENT_STARTED), 0);
}

TEST_FOUR(cache_announce, every_cell_of_the_table_of_transitions)
{
    struct cache *c = cache_on(f);
    static const struct {
        enum state before;
        uint64_t left;
        bool stopped;
        enum state after;
        uint64_t snatches;
    } cells[] = {
        {ABSENT, 5, false, LEECHER, 0},  {ABSENT, 0, false, SEEDER, 0},
        {ABSENT, 5, true, ABSENT, 0},    {ABSENT, 0, true, ABSENT, 0},
        {LEECHER, 5, false, LEECHER, 0}, {LEECHER, 0, false, SEEDER, 1},
        {LEECHER, 5, true, ABSENT, 0},   {LEECHER, 0, true, ABSENT, 1},
        {SEEDER, 5, false, LEECHER, 0},  {SEEDER, 0, false, SEEDER, 0},
        {SEEDER, 5, true, ABSENT, 0},    {SEEDER, 0, true, ABSENT, 0},
    };
    static const enum announce_event live[] = {EVENT_NONE, EVENT_STARTED, EVENT_COMPLETED,
                                               EVENT_PAUSED};
    unsigned n = 0;

    add_user(c, 'u', -1);
    add_torrent(c, 't');
    for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
        for (size_t e = 0; e < (cells[i].stopped ? 1 : ARRAY_SIZE(live)); e++) {
            struct sums before = sums_now(c);
            bring_to(c, ++n, cells[i].before);
            CHECK_INT(announce_now(c, 'u', 't', n, cells[i].left,
                                   cells[i].stopped ? EVENT_STOPPED : live[e]),
                      SWARM_NONE);
            struct sums after = sums_now(c);
            CHECK_INT(after.seeders - before.seeders, cells[i].after == SEEDER);
            CHECK_INT(after.leechers - before.leechers, cells[i].after == LEECHER);
            CHECK_INT(after.used - before.used, cells[i].after == LEECHER);
            CHECK_INT(after.snatches - before.snatches, cells[i].snatches);
            check_invariants(c);
        }
    cache_close(c);
}

TEST_FOUR(cache_announce, snatch_once_on_udp_retransmit)
{
    struct cache *c = cache_on(f);

    add_user(c, 'u', 1);
    add_torrent(c, 't');
    bring_to(c, 1, LEECHER);
    for (int i = 0; i < 3; i++)
        CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_COMPLETED), SWARM_NONE);
    CHECK_INT(sums_now(c).snatches, 1);
    for (int i = 0; i < 3; i++)
        CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_STOPPED), SWARM_NONE);
    CHECK_INT(sums_now(c).snatches, 1);
    CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_COMPLETED), SWARM_NONE); /* a replay */
    CHECK_INT(sums_now(c).snatches, 1);
    cache_close(c);
}

/* One who makes up peer ids. */
TEST_FOUR(cache_announce, a_flood_of_peers_stays_inside_the_bound)
{
    struct cache *c = cache_with((struct cache_options){.store = swarm_store(f), .max_peers = 5});

    add_user(c, 'u', -1);
    add_torrent(c, 't');
    for (unsigned i = 0; i < 20; i++)
        CHECK_INT(announce_now(c, 'u', 't', i, i % 2, EVENT_STARTED),
                  i < 5 ? SWARM_NONE : SWARM_FULL);
    CHECK_STR(str_z(says(swarm_store(f), STR("ZCARD"), STR("expiry"))), STR("5"));
    CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_COMPLETED),
              SWARM_NONE); /* who is there stays */
    CHECK_INT(announce_now(c, 'u', 't', 9, 0, EVENT_STOPPED), SWARM_NONE);
    CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_STOPPED), SWARM_NONE);
    CHECK_INT(announce_now(c, 'u', 't', 9, 0, EVENT_STARTED), SWARM_NONE);
    check_invariants(c);
    cache_close(c);
}

/* The same where others have room: it is the flooder alone who is refused. */
TEST_FOUR(cache_announce, a_user_has_no_more_peers_than_the_bound_and_keeps_those)
{
    struct cache *c =
        cache_with((struct cache_options){.store = swarm_store(f), .max_per_user = 4});

    add_user(c, 'u', -1);
    add_user(c, 'v', -1);
    add_torrent(c, 's');
    add_torrent(c, 't');
    for (unsigned i = 0; i < 10; i++)
        CHECK_INT(announce_now(c, 'u', i % 2 ? 's' : 't', i, i % 3, EVENT_STARTED),
                  i < 4 ? SWARM_NONE : SWARM_PEERS);
    CHECK_STR(str_z(says(swarm_store(f), STR("ZCARD"), STR("expiry"))), STR("4"));
    CHECK_INT(announce_now(c, 'v', 't', 5, 7, EVENT_STARTED), SWARM_NONE);
    CHECK_INT(announce_now(c, 'u', 't', 0, 0, EVENT_NONE), SWARM_NONE); /* renewed */
    CHECK_INT(announce_now(c, 'u', 's', 1, 0, EVENT_COMPLETED), SWARM_NONE);
    CHECK_INT(announce_now(c, 'u', 's', 1, 9, EVENT_NONE), SWARM_NONE); /* lost its data */
    CHECK_INT(announce_now(c, 'u', 't', 8, 0, EVENT_STOPPED), SWARM_NONE);
    CHECK_INT(announce_now(c, 'u', 't', 8, 0, EVENT_STARTED), SWARM_PEERS);
    CHECK_INT(announce_now(c, 'u', 't', 2, 0, EVENT_STOPPED), SWARM_NONE);
    CHECK_INT(announce_now(c, 'u', 't', 8, 0, EVENT_STARTED), SWARM_NONE);
    check_invariants(c);
    cache_close(c);
}

TEST_FOUR(cache_announce, stop_with_left0_counts_snatch)
{
    struct cache *c = cache_on(f);

    add_user(c, 'u', 1);
    add_torrent(c, 't');
    bring_to(c, 1, LEECHER);
    for (int i = 0; i < 2; i++)
        CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_STOPPED), SWARM_NONE);
    struct sums s = sums_now(c);
    CHECK_INT(s.snatches, 1);
    CHECK_INT(s.used, 0);
    cache_close(c);
}

TEST_FOUR(cache_announce, stop_before_start_ignored)
{
    struct cache *c = cache_on(f);

    add_user(c, 'u', 1);
    add_torrent(c, 't');
    CHECK_INT(announce_now(c, 'u', 't', 1, 7, EVENT_STOPPED), SWARM_NONE);
    CHECK_STR(str_z(says(swarm_store(f), STR("EXISTS"), STR("-TS0001-000000000001:1:1"),
                         STR("addrs:1"), STR("expiry"), STR("userpeers:1"))),
              STR("0"));
    CHECK_INT(announce_now(c, 'u', 't', 1, 7, EVENT_STARTED), SWARM_NONE);
    CHECK_INT(sums_now(c).leechers, 1);
    cache_close(c);
}

TEST_FOUR(cache_announce, peer_in_both_sets_heals)
{
    struct cache *c = cache_on(f);
    struct store *s = swarm_store(f);
    struct err err = {0};
    struct str member = STR("-TS0001-000000000001:1:1");

    struct swarm_user u = add_user(c, 'u', -1);
    struct torrent t = add_torrent(c, 't');
    bring_to(c, 1, SEEDER);
    says(s, STR("SADD"), STR("leechers:1"), member);
    CHECK(invariant_broken(c, "I2"));
    CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_NONE), SWARM_NONE);
    struct sums now = sums_now(c);
    CHECK_INT(now.snatches, 0);
    CHECK_INT(now.used, 0);
    check_invariants(c);

    /* Removing it from one set leaves what the other one needs. */
    says(s, STR("SADD"), STR("leechers:1"), member);
    struct peer p = peer_of(&u, 1, 0);
    CHECK_OK(cache_remove_leecher(c, &t, &p, &err));
    CHECK_STR(str_z(says(s, STR("EXISTS"), member)), STR("1"));
    check_invariants(c);
    CHECK_INT(sums_now(c).seeders, 1);
    cache_close(c);
}

TEST_FOUR(cache_announce, a_member_without_a_hash_is_taken_out_on_sight)
{
    struct cache *c = cache_on(f);
    struct store *s = swarm_store(f);

    add_user(c, 'u', -1);
    add_torrent(c, 't');
    says(s, STR("SADD"), STR("seeders:1"), STR("-TS0001-000000000009:2:1"));
    CHECK_INT(announce_now(c, 'u', 't', 1, 4, EVENT_NONE), SWARM_NONE);
    CHECK_STR(str_z(says(s, STR("SCARD"), STR("seeders:1"))), STR("0"));
    check_invariants(c);
    cache_close(c);
}

/* --- what is refused --- */

TEST_FOUR(cache_announce, what_is_not_known_is_refused_and_nothing_is_written)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    struct announce a = announce_of('u', 't', 1, 5, EVENT_STARTED);
    struct answer out;

    CHECK_INT(announce(c, a, &out), SWARM_USER);
    a.passkey = STR("short");
    CHECK_INT(announce(c, a, &out), SWARM_PASSKEY);
    add_user(c, 'u', -1);
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_STARTED), SWARM_TORRENT);
    CHECK_OK(cache_whitelist_client(c, STR("-XX"), &err));
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_STARTED), SWARM_CLIENT);
    a = announce_of('u', 't', 1, 5, EVENT_STARTED);
    a.peer_id = (const uint8_t *)"torrent:123456789012";
    CHECK_INT(announce(c, a, &out), SWARM_MALFORMED);
    CHECK_STR(str_z(says(swarm_store(f), STR("DBSIZE"))), STR("4"));
    cache_close(c);
}

TEST_FOUR(cache_announce, a_client_is_approved_by_any_beginning_of_its_peer_id)
{
    struct cache *c = cache_on(f);
    struct err err = {0};

    add_user(c, 'u', -1);
    add_torrent(c, 't');
    CHECK_OK(cache_whitelist_client(c, STR("-YY"), &err));
    for (size_t len = 1; len <= PEER_ID_LEN; len++) {
        struct str client = str_n("-TS0001-000000000001", len);
        CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_NONE), SWARM_CLIENT);
        CHECK_OK(cache_whitelist_client(c, client, &err));
        CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_NONE), SWARM_NONE);
        CHECK_OK(cache_unwhitelist_client(c, client, &err));
    }
    CHECK_OK(cache_unwhitelist_client(c, STR("-YY"), &err));
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_NONE), SWARM_NONE); /* none: all are */
    cache_close(c);
}

TEST_FOUR(cache_announce, inactive_torrent_unprune)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    struct arena a = {0};

    add_user(c, 'u', -1);
    struct torrent t = add_torrent(c, 't');
    bring_to(c, 1, LEECHER);
    CHECK_OK(cache_mark_inactive(c, &t, &err));
    CHECK_INT(announce_now(c, 'u', 't', 2, 5, EVENT_STARTED), SWARM_PRUNED);
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_STOPPED), SWARM_NONE); /* gives its slot back */
    CHECK_INT(sums_now(c).used, 0);
    CHECK(!torrent_now(c, &a, 't').torrent.active);
    CHECK_INT(announce_now(c, 'u', 't', 3, 0, EVENT_STARTED), SWARM_NONE);
    CHECK(torrent_now(c, &a, 't').torrent.active);
    CHECK_INT(announce_now(c, 'u', 't', 2, 5, EVENT_STARTED), SWARM_NONE);
    arena_release(&a);
    cache_close(c);
}

TEST_FOUR(cache_announce, slots_released_on_complete_stop_reap_delete)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    size_t gone;

    add_user(c, 'u', 1);
    add_torrent(c, 't');
    bring_to(c, 1, LEECHER);
    CHECK_INT(announce_now(c, 'u', 't', 2, 5, EVENT_STARTED), SWARM_SLOTS);
    CHECK_INT(announce_now(c, 'u', 't', 1, 3, EVENT_NONE), SWARM_NONE); /* it has its slot */
    CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_COMPLETED), SWARM_NONE);
    bring_to(c, 2, LEECHER);
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_NONE), SWARM_SLOTS); /* lost its data */
    CHECK_INT(announce_now(c, 'u', 't', 2, 5, EVENT_STOPPED), SWARM_NONE);
    bring_to(c, 3, LEECHER);
    CHECK_OK(cache_reap(c, 0, 100, &gone, &err));
    CHECK_INT(gone, 2); /* 1, a seeder, and 3 */
    check_invariants(c);
    bring_to(c, 4, LEECHER);
    CHECK_OK(cache_remove_torrent(c, hash_of('t'), &err));
    CHECK_INT(user_now(c, 'u').slots_used, 0);
    add_torrent(c, 't');
    bring_to(c, 5, LEECHER);
    check_invariants(c);
    cache_close(c);
}

TEST_FOUR(cache_announce, old_peers_are_reaped_a_few_at_a_time)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    size_t gone;

    add_user(c, 'u', -1);
    add_torrent(c, 't');
    for (unsigned i = 0; i < 7; i++)
        bring_to(c, i, i % 2 ? LEECHER : SEEDER);
    CHECK_OK(cache_reap(c, 1000, 100, &gone, &err));
    CHECK_INT(gone, 0);
    CHECK_OK(cache_reap(c, 0, 5, &gone, &err));
    CHECK_INT(gone, 5);
    check_invariants(c);
    CHECK_OK(cache_reap(c, 0, 5, &gone, &err));
    CHECK_INT(gone, 2);
    CHECK_INT(sums_now(c).seeders + sums_now(c).leechers, 0);
    cache_close(c);
}

/* --- peers --- */

static bool has_peer(const struct answer *out, unsigned n)
{
    for (size_t i = 0; i < out->a.peers4.count; i++)
        if (out->at4[i * COMPACT4_LEN + 3] == n) {
            CHECK(memcmp(out->ids4 + i * PEER_ID_LEN, peer_id_of(n), PEER_ID_LEN) == 0);
            return true;
        }
    return false;
}

TEST_FOUR(cache_announce, seeders_get_leechers_and_leechers_seeders_first)
{
    struct cache *c = cache_on(f);
    struct answer out;

    add_user(c, 'u', -1);
    add_user(c, 'v', -1);
    add_torrent(c, 't');
    for (unsigned i = 1; i <= 20; i++)
        CHECK_INT(announce_now(c, 'v', 't', i, i <= 10 ? 0 : 5, EVENT_STARTED), SWARM_NONE);
    CHECK_INT(announce(c, announce_of('u', 't', 30, 5, EVENT_STARTED), &out), SWARM_NONE);
    CHECK_INT(out.a.complete, 10);
    CHECK_INT(out.a.incomplete, 11);
    CHECK_INT(out.a.peers4.count, 20);
    CHECK(out.a.peers4.has_ids);
    for (unsigned i = 0; i < 10; i++)
        CHECK(out.at4[i * COMPACT4_LEN + 3] <= 10); /* seeders in front */
    CHECK_INT(announce(c, announce_of('u', 't', 30, 0, EVENT_COMPLETED), &out), SWARM_NONE);
    CHECK_INT(out.a.downloaded, 1);
    CHECK_INT(out.a.peers4.count, 10);
    for (unsigned i = 11; i <= 20; i++)
        CHECK(has_peer(&out, i));
    struct announce few = announce_of('u', 't', 30, 5, EVENT_NONE);
    few.numwant = 4;
    CHECK_INT(announce(c, few, &out), SWARM_NONE);
    CHECK_INT(out.a.peers4.count, 4);
    few.numwant = 0;
    CHECK_INT(announce(c, few, &out), SWARM_NONE);
    CHECK_INT(out.a.peers4.count, 0);
    /* Never the announcer, nor another of the same user. */
    CHECK_INT(announce(c, announce_of('v', 't', 1, 5, EVENT_NONE), &out), SWARM_NONE);
    CHECK_INT(out.a.peers4.count, 1);
    CHECK(has_peer(&out, 30));
    CHECK_INT(announce(c, announce_of('v', 't', 1, 5, EVENT_STOPPED), &out), SWARM_NONE);
    CHECK_INT(out.a.peers4.count, 0);
    cache_close(c);
}

/* Scenario 50: one that does not know what is left may say 0. */
TEST_FOUR(cache_announce, who_starts_as_a_seeder_gets_seeders_behind_the_leechers)
{
    struct cache *c = cache_on(f);
    struct answer out;

    add_user(c, 'u', -1);
    add_user(c, 'v', -1);
    add_torrent(c, 't');
    for (unsigned i = 1; i <= 8; i++)
        CHECK_INT(announce_now(c, 'v', 't', i, i <= 5 ? 0 : 5, EVENT_STARTED), SWARM_NONE);
    struct announce a = announce_of('u', 't', 30, 0, EVENT_STARTED);
    a.uploaded = a.downloaded = 0;
    CHECK_INT(announce(c, a, &out), SWARM_NONE);
    CHECK_INT(out.a.complete, 6);
    CHECK_INT(out.a.peers4.count, 8);
    for (unsigned i = 0; i < 8; i++)
        CHECK((out.at4[i * COMPACT4_LEN + 3] > 5) == (i < 3));
    a.event = EVENT_NONE;
    CHECK_INT(announce(c, a, &out), SWARM_NONE);
    CHECK_INT(out.a.peers4.count, 3);
    cache_close(c);
}

static struct announce over_v6(struct announce a, unsigned n)
{
    a.addr = (struct peer_addr){
        .ip = {0x20, 1, 0x0d, 0xb8, [15] = (uint8_t)n}, .port = {1, 2}, .v6 = true};
    return a;
}

TEST_FOUR(cache_announce, dual_stack_same_key_counts_once)
{
    struct cache *c = cache_on(f);
    struct answer out;
    struct announce a = announce_of('u', 't', 1, 5, EVENT_STARTED);

    add_user(c, 'u', 1);
    add_user(c, 'v', -1);
    add_torrent(c, 't');
    CHECK_INT(announce(c, a, &out), SWARM_NONE);
    CHECK_INT(announce(c, over_v6(a, 1), &out), SWARM_NONE);
    CHECK_INT(out.a.incomplete, 1);
    CHECK_INT(sums_now(c).used, 1);
    CHECK_INT(announce(c, announce_of('v', 't', 2, 0, EVENT_STARTED), &out), SWARM_NONE);
    CHECK_INT(out.a.peers4.count, 1);
    CHECK_INT(out.a.peers6.count, 1);
    CHECK(memcmp(out.at6, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\1\2", COMPACT6_LEN) == 0);
    CHECK(memcmp(out.ids6, peer_id_of(1), PEER_ID_LEN) == 0);
    check_invariants(c);
    CHECK_INT(announce(c, announce_of('u', 't', 1, 5, EVENT_STOPPED), &out), SWARM_NONE);
    CHECK_INT(out.a.incomplete, 0);
    CHECK_STR(str_z(says(swarm_store(f), STR("EXISTS"), STR("v6:1"))), STR("0"));
    cache_close(c);
}

TEST_FOUR(cache_announce, each_family_has_a_quarter_where_there_are)
{
    struct cache *c = cache_on(f);
    struct answer out;
    struct err err = {0};

    add_user(c, 'u', -1);
    add_user(c, 'v', -1);
    add_torrent(c, 't');
    for (unsigned i = 1; i <= 120; i++) {
        struct announce a = announce_of('v', 't', i, 0, EVENT_STARTED);
        CHECK_INT(announce(c, i > 100 ? over_v6(a, i) : a, &out), SWARM_NONE);
    }
    struct announce a = announce_of('u', 't', 200, 5, EVENT_NONE);
    a.numwant = 40;
    CHECK_INT(announce(c, a, &out), SWARM_NONE);
    CHECK_INT(out.a.peers4.count, 30);
    CHECK_INT(out.a.peers6.count, 10);
    /* Over UDP there is room for one family alone. */
    answer_init(&out);
    out.a.peers4.max = 0;
    CHECK_OK(cache_announce(c, &a, &out.a, &err));
    CHECK_INT(out.a.peers4.count, 0);
    CHECK_INT(out.a.peers6.count, 20);
    answer_init(&out);
    out.a.peers6.max = 0;
    CHECK_OK(cache_announce(c, &a, &out.a, &err));
    CHECK(out.a.peers4.count >= 28 && out.a.peers4.count <= 40); /* of 48 that it looked at */
    CHECK_INT(out.a.peers6.count, 0);
    cache_close(c);
}

TEST_FOUR(cache_announce, a_peer_past_the_timeout_is_not_given_out)
{
    struct cache *c =
        cache_with((struct cache_options){.store = swarm_store(f), .peer_timeout_s = 1000});
    struct answer out;
    struct str entry = STR("S\x0a\0\0\x01\x1a\xe1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                           "1600000000:1600000000:0:0:0:0");

    add_user(c, 'u', -1);
    add_user(c, 'v', -1);
    add_torrent(c, 't');
    CHECK_INT(announce_now(c, 'v', 't', 1, 0, EVENT_STARTED), SWARM_NONE);
    CHECK_INT(announce(c, announce_of('u', 't', 2, 5, EVENT_NONE), &out), SWARM_NONE);
    CHECK_INT(out.a.peers4.count, 1);
    says(swarm_store(f), STR("HSET"), STR("addrs:1"), STR("-TS0001-000000000001:2:1"), entry);
    CHECK_INT(announce(c, announce_of('u', 't', 2, 5, EVENT_NONE), &out), SWARM_NONE);
    CHECK_INT(out.a.peers4.count, 0);
    cache_close(c);
}

TEST_FOUR(cache_announce, paused_partial_seed_downloaders)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    struct arena a = {0};
    struct scrape_entry out[2];
    uint8_t hashes[2 * INFO_HASH_LEN];
    struct str member = STR("-TS0001-000000000001:1:1");

    memcpy(hashes, hash_of('t'), INFO_HASH_LEN);
    memcpy(hashes + INFO_HASH_LEN, hash_of('x'), INFO_HASH_LEN);
    add_user(c, 'u', -1);
    add_torrent(c, 't');
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_PAUSED), SWARM_NONE);
    CHECK_INT(announce_now(c, 'u', 't', 2, 5, EVENT_STARTED), SWARM_NONE);
    CHECK_INT(announce_now(c, 'u', 't', 3, 0, EVENT_STARTED), SWARM_NONE);
    CHECK_OK(cache_scrape(c, hashes, 2, out, &err));
    CHECK(out[0].known && !out[1].known);
    CHECK_INT(out[0].complete, 1);
    CHECK_INT(out[0].incomplete, 2);
    CHECK_INT(out[0].downloaders, 1);
    CHECK_INT(out[0].downloaded, 0);
    CHECK_STR(str_z(says(swarm_store(f), STR("HGET"), member, STR("paused"))), STR("\"1\""));
    check_invariants(c);
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_NONE), SWARM_NONE); /* goes on */
    CHECK_STR(str_z(says(swarm_store(f), STR("HEXISTS"), member, STR("paused"))), STR("0"));
    CHECK_OK(cache_scrape(c, hashes, 1, out, &err));
    CHECK_INT(out[0].downloaders, 2);
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_PAUSED), SWARM_NONE);
    CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_PAUSED), SWARM_NONE);
    CHECK_OK(cache_scrape(c, hashes, 1, out, &err));
    CHECK_INT(out[0].complete, 2);
    CHECK_INT(out[0].downloaders, 1);
    check_invariants(c);
    arena_release(&a);
    cache_close(c);
}

TEST_FOUR(cache_announce, peer_id_with_colons_and_nul)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    struct arena a = {0};
    static const char *ids[] = {"::::::::::::::::::::", "\0\0\0:1:1\0\0\0\0\0\0\0\0\0\0\0\0\0",
                                "\xff\xfe%s\r\n*3\r\n$3\0:z:zzab", "-TS0001-:1:1:1:1:1:1"};
    struct answer out;
    size_t gone;

    add_user(c, 'u', -1);
    add_torrent(c, 't');
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        struct announce an = announce_of('u', 't', (unsigned)i, 5, EVENT_STARTED);
        an.peer_id = (const uint8_t *)ids[i];
        CHECK_INT(announce(c, an, &out), SWARM_NONE);
        check_invariants(c);
    }
    struct torrent_peers t = torrent_now(c, &a, 't');
    CHECK_INT(t.leecher_count, ARRAY_SIZE(ids));
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        bool found = false;
        for (size_t k = 0; k < t.leecher_count; k++)
            found |= memcmp(t.leechers[k].id, ids[i], PEER_ID_LEN) == 0;
        CHECK(found);
    }
    CHECK_OK(cache_reap(c, 0, 100, &gone, &err));
    CHECK_INT(gone, ARRAY_SIZE(ids));
    CHECK_INT(sums_now(c).used, 0);
    check_invariants(c);
    arena_release(&a);
    cache_close(c);
}
