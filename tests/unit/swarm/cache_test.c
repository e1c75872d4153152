/* The seed's calls, on both engines. */
#include "unit/swarm/cache_helpers.h"

#include <stdio.h>

TEST_FOUR(cache, a_user_is_found_as_it_was_added)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    struct swarm_user u = {.id = 77, .up_multiplier = 1.5, .down_multiplier = 0.1, .slots = 3};

    memcpy(u.passkey, passkey_of('u').p, PASSKEY_LEN);
    CHECK_OK(cache_add_user(c, &u, &err));
    struct swarm_user got = user_now(c, 'u');
    CHECK_INT(got.id, 77);
    CHECK(got.up_multiplier == 1.5 && got.down_multiplier == 0.1);
    CHECK_INT(got.slots, 3);
    CHECK_STR(str_z(got.passkey), passkey_of('u'));
    struct str key = STR("user:uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu");
    CHECK_STR(str_z(says(swarm_store(f), STR("HMGET"), key, STR("id"), STR("passkey"),
                         STR("up_multiplier"), STR("down_multiplier"), STR("slots"),
                         STR("slots_used"), STR("snatches"))),
              STR("[\"77\", \"uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu\", \"1.5\", \"0.1\", \"3\", "
                  "\"0\", \"0\"]"));
    CHECK_STR(str_z(says(swarm_store(f), STR("HLEN"), key)), STR("7"));
    CHECK_ERR(cache_find_user(c, passkey_of('v'), &got, &err), ERR_NOT_FOUND);
    CHECK_ERR(cache_find_user(c, STR("short"), &got, &err), ERR_NOT_FOUND);
    cache_close(c);
}

TEST_FOUR(cache, adding_again_changes_what_may_change_and_ids_are_not_given_twice)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    struct swarm_user u = add_user(c, 'u', 1), v = add_user(c, 'v', 1);

    CHECK_INT(u.id, 1);
    CHECK_INT(v.id, 2);
    struct torrent t = add_torrent(c, 't');
    CHECK_OK(cache_record_snatch(c, &u, &t, &err));
    CHECK_OK(cache_increment_slots(c, &u, &err));
    struct swarm_user again = {.id = 9, .up_multiplier = 2, .down_multiplier = 3, .slots = 8};
    memcpy(again.passkey, u.passkey, PASSKEY_LEN);
    CHECK_OK(cache_add_user(c, &again, &err));
    CHECK_INT(again.id, 1);
    u = user_now(c, 'u');
    CHECK_INT(u.slots, 8);
    CHECK_INT(u.slots_used, 1);
    CHECK_INT(u.snatches, 1);
    CHECK(u.down_multiplier == 3);
    struct swarm_user other = {.id = 2, .slots = 1};
    memcpy(other.passkey, passkey_of('w').p, PASSKEY_LEN);
    CHECK_ERR(cache_add_user(c, &other, &err), ERR_EXISTS);
    other.id = (uint64_t)1 << 60;
    CHECK_ERR(cache_add_user(c, &other, &err), ERR_RANGE);
    other.id = 40;
    CHECK_OK(cache_add_user(c, &other, &err));
    CHECK_INT(add_user(c, 'x', 1).id, 41);
    struct torrent changed = t;
    changed.down_multiplier = 0;
    changed.snatches = 500;
    CHECK_OK(cache_add_torrent(c, &changed, &err));
    struct arena a = {0};
    struct torrent_peers now = torrent_now(c, &a, 't');
    CHECK_INT(now.torrent.snatches, 1);
    CHECK(now.torrent.down_multiplier == 0 && now.torrent.active);
    arena_release(&a);
    cache_close(c);
}

TEST_FOUR(cache, a_torrent_is_found_with_all_of_its_peers)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    struct arena a = {0};
    struct swarm_user u = add_user(c, 'u', -1);
    struct torrent t = add_torrent(c, 't');

    for (unsigned i = 0; i < 6; i++) {
        struct peer p = peer_of(&u, i, i < 4 ? 0 : 100 + i);
        p.uploaded = UINT64_MAX;
        p.downloaded = i;
        CHECK_OK(i < 4 ? cache_add_seeder(c, &t, &p, &err) : cache_add_leecher(c, &t, &p, &err));
    }
    struct torrent_peers got = torrent_now(c, &a, 't');
    CHECK_INT(got.seeder_count, 4);
    CHECK_INT(got.leecher_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct peer *p = &got.leechers[i];
        CHECK(p->downloaded == 4 || p->downloaded == 5);
        CHECK_INT(p->left, 100 + p->downloaded);
        CHECK(p->uploaded == UINT64_MAX && p->user_id == u.id && p->torrent_id == t.id);
        CHECK(p->addr.ip[0] == 10 && p->addr.ip[3] == p->downloaded && !p->addr.v6);
        CHECK_INT(p->addr.port[0] << 8 | p->addr.port[1], 6881);
        CHECK(memcmp(p->id, peer_id_of((unsigned)p->downloaded), PEER_ID_LEN) == 0);
        CHECK(p->last_announce > 1600000000);
    }
    CHECK_ERR(cache_find_torrent(c, &a, hash_of('x'), &got, &err), ERR_NOT_FOUND);
    check_invariants(c);
    arena_release(&a);
    cache_close(c);
}

TEST_FOUR(cache, keys_are_the_seed_s_byte_for_byte)
{
    struct cache *c = cache_on(f);
    struct store *s = swarm_store(f);
    struct err err = {0};
    struct swarm_user u = {.id = 36, .slots = -1};
    struct torrent t = {.id = 1295, .active = true, .up_multiplier = 1, .down_multiplier = 1};

    memcpy(u.passkey, passkey_of('u').p, PASSKEY_LEN);
    memcpy(t.info_hash, "\x01\xff:23456789012345678", INFO_HASH_LEN);
    t.last_action = 5;
    CHECK_OK(cache_add_user(c, &u, &err));
    CHECK_OK(cache_add_torrent(c, &t, &err));
    struct str key = STR("torrent:\x01\xff:23456789012345678");
    CHECK_STR(
        str_z(says(s, STR("HMGET"), key, STR("id"), STR("infohash"), STR("active"), STR("snatches"),
                   STR("up_multiplier"), STR("down_multiplier"), STR("last_action"))),
        STR("[\"1295\", \"\\x01\\xff:23456789012345678\", \"1\", \"0\", \"1\", \"1\", "
            "\"5\"]"));
    CHECK_STR(str_z(says(s, STR("HLEN"), key)), STR("7"));
    struct peer p = peer_of(&u, 7, 9);
    CHECK_OK(cache_add_leecher(c, &t, &p, &err));
    CHECK_STR(str_z(says(s, STR("SMEMBERS"), STR("leechers:zz"))),
              STR("[\"-TS0001-000000000007:10:zz\"]"));
    CHECK_STR(str_z(says(s, STR("HLEN"), STR("-TS0001-000000000007:10:zz"))), STR("9"));
    CHECK_STR(str_z(says(s, STR("HMGET"), STR("-TS0001-000000000007:10:zz"), STR("id"),
                         STR("user_id"), STR("torrent_id"), STR("ip"), STR("port"), STR("uploaded"),
                         STR("downloaded"), STR("left"))),
              STR("[\"-TS0001-000000000007\", \"36\", \"1295\", \"10.0.0.7\", \"6881\", \"0\", "
                  "\"0\", \"9\"]"));
    CHECK_STR(
        str_z(says(s, STR("HEXISTS"), STR("-TS0001-000000000007:10:zz"), STR("last_announce"))),
        STR("1"));
    CHECK_OK(cache_whitelist_client(c, STR("-TS0001-"), &err));
    CHECK_STR(str_z(says(s, STR("SMEMBERS"), STR("whitelist"))), STR("[\"-TS0001-\"]"));
    cache_close(c);
}

TEST_FOUR(cache, clients_are_approved_and_not)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    bool is;

    CHECK_OK(cache_client_whitelisted(c, STR("-TR"), &is, &err));
    CHECK(!is);
    CHECK_OK(cache_whitelist_client(c, STR("-TR"), &err));
    CHECK_OK(cache_client_whitelisted(c, STR("-TR"), &is, &err));
    CHECK(is);
    CHECK_OK(cache_unwhitelist_client(c, STR("-TR"), &err));
    CHECK_OK(cache_client_whitelisted(c, STR("-TR"), &is, &err));
    CHECK(!is);
    CHECK_ERR(cache_whitelist_client(c, STR("123456789012345678901"), &err), ERR_INVALID);
    cache_close(c);
}

TEST_FOUR(cache, slots_are_counted_and_never_below_none)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    struct swarm_user u = add_user(c, 'u', 2);

    CHECK_OK(cache_decrement_slots(c, &u, &err));
    CHECK_INT(u.slots_used, 0);
    CHECK_OK(cache_increment_slots(c, &u, &err));
    CHECK_OK(cache_increment_slots(c, &u, &err));
    CHECK_INT(u.slots_used, 2);
    CHECK_INT(u.slots, 2);
    CHECK_OK(cache_decrement_slots(c, &u, &err));
    CHECK_INT(user_now(c, 'u').slots_used, 1);
    cache_close(c);
}

TEST_FOUR(cache, peers_are_set_moved_and_removed)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    struct arena a = {0};
    struct swarm_user u = add_user(c, 'u', -1);
    struct torrent t = add_torrent(c, 't'), none = t;
    struct peer p = peer_of(&u, 1, 50);
    bool moved;

    memset(none.info_hash, 'n', INFO_HASH_LEN);
    none.id = 99;
    CHECK_ERR(cache_set_leecher(c, &t, &p, &err), ERR_NOT_FOUND);
    CHECK_ERR(cache_add_leecher(c, &none, &p, &err), ERR_NOT_FOUND);
    CHECK_OK(cache_add_leecher(c, &t, &p, &err));
    CHECK_OK(cache_add_leecher(c, &t, &p, &err));
    CHECK_INT(user_now(c, 'u').slots_used, 1);
    CHECK_ERR(cache_set_seeder(c, &t, &p, &err), ERR_NOT_FOUND);
    p.left = 20;
    p.addr.ip[0] = 11;
    CHECK_OK(cache_set_leecher(c, &t, &p, &err));
    struct torrent_peers got = torrent_now(c, &a, 't');
    CHECK_INT(got.leechers[0].left, 20);
    CHECK_INT(got.leechers[0].addr.ip[0], 11);
    CHECK_OK(cache_remove_seeder(c, &t, &p, &err)); /* it is none: nothing happens */
    p.left = 0;
    CHECK_OK(cache_leecher_finished(c, &t, &p, &moved, &err));
    CHECK(moved);
    CHECK_OK(cache_leecher_finished(c, &t, &p, &moved, &err));
    CHECK(!moved);
    CHECK_INT(user_now(c, 'u').slots_used, 0);
    got = torrent_now(c, &a, 't');
    CHECK_INT(got.seeder_count, 1);
    CHECK_INT(got.leecher_count, 0);
    check_invariants(c);
    CHECK_OK(cache_remove_seeder(c, &t, &p, &err));
    CHECK_OK(cache_remove_seeder(c, &t, &p, &err));
    got = torrent_now(c, &a, 't');
    CHECK_INT(got.seeder_count, 0);
    CHECK_STR(str_z(says(swarm_store(f), STR("ZCARD"), STR("expiry"))), STR("0"));
    CHECK_STR(str_z(says(swarm_store(f), STR("EXISTS"), STR("addrs:1"), STR("seeders:1"),
                         STR("userpeers:1"), STR("-TS0001-000000000001:1:1"))),
              STR("0"));
    arena_release(&a);
    cache_close(c);
}

static void check_keys(struct store *s, const char *want)
{
    CHECK_STR(str_z(says(s, STR("DBSIZE"))), str_z(want));
}

TEST_FOUR(cache, removed_torrent_no_stub_hash)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    struct swarm_user u = add_user(c, 'u', -1);
    struct torrent t = add_torrent(c, 't');
    struct peer p = peer_of(&u, 1, 50), q = peer_of(&u, 2, 0);
    bool moved;

    CHECK_OK(cache_add_leecher(c, &t, &p, &err));
    CHECK_OK(cache_add_seeder(c, &t, &q, &err));
    CHECK_OK(cache_remove_torrent(c, t.info_hash, &err));
    CHECK_ERR(cache_remove_torrent(c, t.info_hash, &err), ERR_NOT_FOUND);
    CHECK_INT(user_now(c, 'u').slots_used, 0);
    check_keys(swarm_store(f), "3"); /* the user, user_ids, ids */

    CHECK_ERR(cache_record_snatch(c, &u, &t, &err), ERR_NOT_FOUND);
    CHECK_ERR(cache_mark_active(c, &t, &err), ERR_NOT_FOUND);
    CHECK_ERR(cache_mark_inactive(c, &t, &err), ERR_NOT_FOUND);
    CHECK_ERR(cache_add_seeder(c, &t, &q, &err), ERR_NOT_FOUND);
    CHECK_ERR(cache_set_leecher(c, &t, &p, &err), ERR_NOT_FOUND);
    CHECK_ERR(cache_leecher_finished(c, &t, &p, &moved, &err), ERR_NOT_FOUND);
    CHECK_OK(cache_remove_leecher(c, &t, &p, &err));
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_STARTED), SWARM_TORRENT);
    check_keys(swarm_store(f), "3");
    CHECK_OK(cache_remove_user(c, passkey_of('u'), &err));
    CHECK_ERR(cache_increment_slots(c, &u, &err), ERR_NOT_FOUND);
    CHECK_ERR(cache_decrement_slots(c, &u, &err), ERR_NOT_FOUND);
    CHECK_ERR(cache_record_snatch(c, &u, &t, &err), ERR_NOT_FOUND);
    check_keys(swarm_store(f), "1"); /* ids */
    cache_close(c);
}

TEST_FOUR(cache, a_removed_user_takes_its_peers_along)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    struct arena a = {0};

    add_user(c, 'u', -1);
    add_user(c, 'v', -1);
    add_torrent(c, 's');
    add_torrent(c, 't');
    for (unsigned i = 0; i < 4; i++) {
        CHECK_INT(announce_now(c, 'u', i % 2 ? 's' : 't', i, i < 2 ? 0 : 7, EVENT_STARTED), 0);
        CHECK_INT(announce_now(c, 'v', i % 2 ? 's' : 't', i, i < 2 ? 0 : 7, EVENT_STARTED), 0);
    }
    CHECK_OK(cache_remove_user(c, passkey_of('u'), &err));
    check_invariants(c);
    struct torrent_peers s = torrent_now(c, &a, 's');
    CHECK_INT(s.seeder_count, 1);
    CHECK_INT(s.leecher_count, 1);
    CHECK_INT(s.seeders[0].user_id, 2);
    CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_NONE), SWARM_USER);
    arena_release(&a);
    cache_close(c);
}

static int count_torrent(void *ctx, const struct torrent *t, struct err *err)
{
    bool *seen = ctx;

    CHECK(t->id < 1000 && t->active && t->info_hash[2] == (uint8_t)t->id);
    seen[t->id] = true;
    return 0;
}

static int stop_at_user(void *ctx, const struct swarm_user *u, struct err *err)
{
    *(uint64_t *)ctx = u->id;
    return ERR_CANCELED;
}

static int see_client(void *ctx, struct str client, struct err *err)
{
    CHECK_STR(client, STR("-qB"));
    ++*(int *)ctx;
    return 0;
}

TEST_FOUR(cache, each_torrent_user_and_client_is_told)
{
    struct cache *c = cache_on(f);
    struct err err = {0};
    bool seen[1000] = {0};
    uint64_t id = 0;
    int clients = 0;

    for (int i = 1; i < 700; i++) {
        struct torrent t = {.active = true, .up_multiplier = 1, .down_multiplier = 1};
        t.info_hash[0] = 1;
        t.info_hash[1] = (uint8_t)(i >> 8);
        t.info_hash[2] = (uint8_t)i;
        CHECK_OK(cache_add_torrent(c, &t, &err));
    }
    CHECK_OK(cache_each_torrent(c, count_torrent, seen, &err));
    for (int i = 1; i < 700; i++)
        CHECK(seen[i]);
    add_user(c, 'u', 1);
    add_user(c, 'v', 1);
    CHECK_ERR(cache_each_user(c, stop_at_user, &id, &err), ERR_CANCELED);
    CHECK(id == 1 || id == 2);
    CHECK_OK(cache_whitelist_client(c, STR("-qB"), &err));
    CHECK_OK(cache_each_client(c, see_client, &clients, &err));
    CHECK_INT(clients, 1);
    cache_close(c);
}

TEST_FOUR(cache, all_trackers_have_the_same_key_for_connection_ids)
{
    struct cache *c = cache_on(f), *d = cache_on(f);
    struct err err = {0};
    uint8_t one[16] = {0}, two[16] = {1};

    CHECK_OK(cache_shared_key(c, one, &err));
    CHECK_OK(cache_shared_key(d, two, &err));
    CHECK(memcmp(one, two, 16) == 0);
    cache_close(c);
    cache_close(d);
}

TEST_FOUR(cache, prefix_isolation)
{
    struct store *s = swarm_store(f);
    struct cache *c = cache_with((struct cache_options){.store = s, .prefix = STR("one:")});
    struct cache *d = cache_with((struct cache_options){.store = s, .prefix = STR("two:")});
    struct err err = {0};
    struct arena a = {0};
    struct torrent_peers t;
    struct swarm_user u;

    add_user(c, 'u', 1);
    add_torrent(c, 't');
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_STARTED), SWARM_NONE);
    CHECK_ERR(cache_find_user(d, passkey_of('u'), &u, &err), ERR_NOT_FOUND);
    CHECK_ERR(cache_find_torrent(d, &a, hash_of('t'), &t, &err), ERR_NOT_FOUND);
    add_user(d, 'u', 1);
    add_torrent(d, 't');
    CHECK_INT(torrent_now(d, &a, 't').leecher_count, 0);
    CHECK_OK(cache_remove_torrent(d, hash_of('t'), &err));
    CHECK_INT(torrent_now(c, &a, 't').leecher_count, 1);
    CHECK_STR(str_z(says(s, STR("SMEMBERS"), STR("one:leechers:1"))),
              STR("[\"-TS0001-000000000001:1:1\"]")); /* members have no prefix */
    CHECK_STR(str_z(says(s, STR("EXISTS"), STR("one:-TS0001-000000000001:1:1"))), STR("1"));
    check_invariants(c);
    check_invariants(d);
    arena_release(&a);
    cache_close(c);
    cache_close(d);
}

TEST_FOUR(cache, the_check_finds_what_the_invariants_forbid)
{
    struct cache *c = cache_on(f);
    struct store *s = swarm_store(f);
    /* What is broken, and how it is repaired. */
    static const struct {
        const char *invariant;
        struct str breaks[4], mends[4];
    } cases[] = {
        {"I1",
         {STR("SADD"), STR("seeders:1"), STR("-TS0001-000000000009:1:1")},
         {STR("SREM"), STR("seeders:1"), STR("-TS0001-000000000009:1:1")}},
        {"I2",
         {STR("SADD"), STR("seeders:1"), STR("-TS0001-000000000001:1:1")},
         {STR("SREM"), STR("seeders:1"), STR("-TS0001-000000000001:1:1")}},
        {"I3",
         {STR("HSET"), STR("-TS0001-000000000001:1:z"), STR("id"), STR("x")},
         {STR("DEL"), STR("-TS0001-000000000001:1:z")}},
        {"I4",
         {STR("HSET"), STR("user:uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu"), STR("slots_used"), STR("2")},
         {STR("HSET"), STR("user:uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu"), STR("slots_used"), STR("1")}},
        {"I6",
         {STR("HSET"), STR("torrent:nnnnnnnnnnnnnnnnnnnn"), STR("active"), STR("1")},
         {STR("DEL"), STR("torrent:nnnnnnnnnnnnnnnnnnnn")}},
        {"I7",
         {STR("ZADD"), STR("expiry"), STR("5"), STR("-TS0001-000000000001:1:1")},
         {STR_EMPTY}},
        {"I8", {STR("SREM"), STR("leechers:1"), STR("-TS0001-000000000001:1:1")}, {STR_EMPTY}},
    };
    add_user(c, 'u', -1);
    add_torrent(c, 't');
    CHECK_INT(announce_now(c, 'u', 't', 1, 5, EVENT_STARTED), SWARM_NONE);
    check_invariants(c);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t n = 4;
        while (!cases[i].breaks[n - 1].p)
            n--;
        store_says(s, cases[i].breaks, n);
        CHECK(invariant_broken(c, cases[i].invariant));
        for (n = 4; n && !cases[i].mends[n - 1].p;)
            n--;
        if (n) {
            store_says(s, cases[i].mends, n);
            check_invariants(c);
        }
    }
    cache_close(c);
}

/* docs/torrents.md, "Taking a torrent off the tracker". */
TEST_FOUR(cache, the_torrent_of_an_object_that_was_withdrawn_is_not_offered_again)
{
    struct cache *c = cache_on(f);
    struct torrent t = {.active = true, .up_multiplier = 1, .down_multiplier = 1};
    struct torrent mine = {.active = true, .up_multiplier = 3, .down_multiplier = 4};
    struct torrent_peers found;
    struct arena a = {0};
    struct err err = {0};
    bool listed = true;

    memcpy(t.info_hash, hash_of('a'), INFO_HASH_LEN);
    memcpy(mine.info_hash, hash_of('a'), INFO_HASH_LEN);
    CHECK_OK(cache_torrent_listed(c, t.info_hash, &listed, &err));
    CHECK(!listed);
    CHECK_OK(cache_offer_torrent(c, &t, &err));
    CHECK_OK(cache_add_torrent(c, &mine, &err));
    CHECK_OK(cache_offer_torrent(c, &t, &err));
    CHECK_OK(cache_find_torrent(c, &a, t.info_hash, &found, &err));
    CHECK(found.torrent.up_multiplier == 3);
    CHECK_OK(cache_torrent_listed(c, t.info_hash, &listed, &err));
    CHECK(listed);

    CHECK_OK(cache_withdraw_torrent(c, t.info_hash, &err)); /* of no object: nothing is kept */
    CHECK_STR(str_z(says(swarm_store(f), STR("EXISTS"), STR("w:torrents_withdrawn"))), STR("0"));
    CHECK_OK(cache_offer_torrent(c, &t, &err));
    says(swarm_store(f), STR("ZADD"),
         STR("w:torrents_by_info_hash:6161616161616161616161616161616161616161"), STR("0"),
         STR("1:local:box:key:null"));
    CHECK_OK(cache_remove_torrent(c, t.info_hash, &err)); /* by no operator */
    CHECK_OK(cache_offer_torrent(c, &t, &err));
    CHECK_OK(cache_withdraw_torrent(c, t.info_hash, &err));
    t.id = 0;
    CHECK_ERR(cache_offer_torrent(c, &t, &err), ERR_PRECONDITION);
    CHECK_OK(cache_torrent_listed(c, t.info_hash, &listed, &err));
    CHECK(!listed);
    mine.id = 0;
    CHECK_OK(cache_add_torrent(c, &mine, &err));
    CHECK_OK(cache_offer_torrent(c, &t, &err));
    check_invariants(c);
    arena_release(&a);
    cache_close(c);
}
