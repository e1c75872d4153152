/* The feed of deltas, on both engines. */
#include "swarm/feed.h"

#include "unit/swarm/cache_helpers.h"

static struct cache *fed(struct four *f, uint64_t max)
{
    return cache_with(
        (struct cache_options){.store = swarm_store(f), .feed = true, .feed_max = max});
}

static void moved(struct cache *c, unsigned n, uint64_t up, uint64_t down, uint64_t left)
{
    struct announce a = announce_of('u', 't', n, left, EVENT_NONE);
    struct answer out;

    a.uploaded = up;
    a.downloaded = down;
    CHECK_INT(announce(c, a, &out), SWARM_NONE);
}

static struct delta *read_all(struct cache *c, struct arena *a, const char *name, size_t want)
{
    struct delta *d;
    struct err err = {0};
    size_t count;

    CHECK_OK(feed_read(c, a, str_z(name), (struct feed_page){0, 1000}, &d, &count, &err));
    CHECK_INT(count, want);
    return d;
}

TEST_FOUR(feed, each_accepted_announce_is_one_record)
{
    struct cache *c = fed(f, 0);
    struct err err = {0};
    struct arena a = {0};

    add_user(c, 'u', 1);
    add_torrent(c, 't');
    CHECK_OK(feed_add_consumer(c, STR("site"), &err));
    CHECK_ERR(feed_add_consumer(c, STR("site"), &err), ERR_EXISTS);
    moved(c, 1, 100, 0, 50);
    moved(c, 1, 150, 30, 20);
    moved(c, 1, 150, 50, 0);
    CHECK_INT(announce_now(c, 'u', 'x', 1, 0, EVENT_NONE), SWARM_TORRENT); /* refused */
    CHECK_INT(announce_now(c, 'u', 't', 9, 0, EVENT_STOPPED), SWARM_NONE); /* nothing */
    CHECK_INT(announce_now(c, 'u', 't', 1, 0, EVENT_STOPPED), SWARM_NONE);
    struct delta *d = read_all(c, &a, "site", 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(d[i].number, i + 1);
        CHECK_INT(d[i].user_id, 1);
        CHECK_INT(d[i].torrent_id, 1);
        CHECK(d[i].at > 1600000000);
        CHECK(memcmp(d[i].peer_id, peer_id_of(1), PEER_ID_LEN) == 0);
        CHECK_INT(d[i].created, i == 0);
        CHECK_INT(d[i].snatched, i == 2);
        CHECK_INT(d[i].stopped, i == 3);
        CHECK_INT(d[i].seeder, i >= 2);
    }
    CHECK_INT(d[0].raw_uploaded, 0); /* what was before it came is not known to be new */
    CHECK_INT(d[1].raw_uploaded, 50);
    CHECK_INT(d[1].raw_downloaded, 30);
    CHECK_INT(d[1].left, 20);
    CHECK_INT(d[2].raw_downloaded, 20);
    arena_release(&a);
    cache_close(c);
}

TEST_FOUR(feed, freeleech_multipliers_negative_delta)
{
    struct cache *c = fed(f, 0);
    struct err err = {0};
    struct arena a = {0};
    struct swarm_user u = {.up_multiplier = 2, .down_multiplier = 0.5, .slots = -1};
    struct torrent t = {.active = true, .up_multiplier = 1.5, .down_multiplier = 0.5};

    memcpy(u.passkey, passkey_of('u').p, PASSKEY_LEN);
    memcpy(t.info_hash, hash_of('t'), INFO_HASH_LEN);
    CHECK_OK(cache_add_user(c, &u, &err));
    CHECK_OK(cache_add_torrent(c, &t, &err));
    CHECK_OK(feed_add_consumer(c, STR("site"), &err));
    moved(c, 1, 0, 0, 50);
    moved(c, 1, 100, 40, 10);
    moved(c, 1, 60, 10, 10); /* the client began anew: never below none */
    t.down_multiplier = 0;   /* freeleech */
    CHECK_OK(cache_add_torrent(c, &t, &err));
    moved(c, 1, 70, 30, 10);
    moved(c, 1, UINT64_MAX, UINT64_MAX, 10);
    struct delta *d = read_all(c, &a, "site", 5);
    CHECK(d[1].raw_uploaded == 100 && d[1].uploaded == 300);
    CHECK(d[1].raw_downloaded == 40 && d[1].downloaded == 10);
    CHECK(d[2].raw_uploaded == 0 && d[2].uploaded == 0 && d[2].downloaded == 0);
    CHECK(d[3].raw_uploaded == 10 && d[3].uploaded == 30);
    CHECK(d[3].raw_downloaded == 20 && d[3].downloaded == 0);
    CHECK(d[4].raw_uploaded == 1000000000000000000 && d[4].downloaded == 0); /* the most */
    arena_release(&a);
    cache_close(c);
}

TEST_FOUR(feed, deltas_exactly_once_after_backend_stall)
{
    struct cache *c = fed(f, 0);
    struct err err = {0};
    struct arena a = {0};
    struct delta *d;
    uint64_t sum = 0, last = 0, rounds = 0;
    size_t count;

    add_user(c, 'u', -1);
    add_torrent(c, 't');
    CHECK_OK(feed_add_consumer(c, STR("fast"), &err));
    CHECK_OK(feed_add_consumer(c, STR("slow"), &err));
    for (unsigned i = 0; i <= 100; i++) {
        moved(c, 1, 10 * (uint64_t)i, 0, 0);
        if (i % 20 == 19) { /* the fast one goes on while the slow one stalls */
            d = read_all(c, &a, "fast", 20);
            CHECK_OK(feed_acknowledge(c, STR("fast"), d[19].number, &err));
        }
    }
    /* The slow one is killed again and again between taking and acknowledging: it keeps the last
     * number beside what it wrote. */
    do {
        CHECK_OK(feed_read(c, &a, STR("slow"), (struct feed_page){0, 7}, &d, &count, &err));
        for (size_t i = 0; i < count; i++) {
            if (d[i].number <= last)
                continue;
            CHECK_INT(d[i].number, last + 1);
            last = d[i].number;
            sum += d[i].raw_uploaded;
        }
        if (++rounds % 3 == 0)
            CHECK_OK(feed_acknowledge(c, STR("slow"), last, &err));
    } while (last < 101);
    CHECK_INT(sum, 1000);
    CHECK_OK(feed_acknowledge(c, STR("slow"), 101, &err));
    CHECK_OK(feed_acknowledge(c, STR("slow"), 3, &err)); /* already */
    CHECK_ERR(feed_acknowledge(c, STR("slow"), 102, &err), ERR_RANGE);
    CHECK_ERR(feed_acknowledge(c, STR("other"), 1, &err), ERR_NOT_FOUND);
    CHECK_STR(str_z(says(swarm_store(f), STR("LLEN"), STR("deltas"))), STR("2"));
    read_all(c, &a, "slow", 0);
    arena_release(&a);
    cache_close(c);
}

TEST_FOUR(feed, without_a_consumer_none_are_kept_and_numbers_go_on)
{
    struct cache *c = fed(f, 0);
    struct err err = {0};
    struct arena a = {0};
    struct feed_consumer *consumers;
    size_t count;

    add_user(c, 'u', -1);
    add_torrent(c, 't');
    moved(c, 1, 5, 5, 0);
    CHECK_STR(str_z(says(swarm_store(f), STR("EXISTS"), STR("deltas"))), STR("0"));
    CHECK_OK(feed_add_consumer(c, STR("a"), &err));
    moved(c, 1, 6, 5, 0);
    moved(c, 1, 7, 5, 0);
    CHECK_OK(feed_add_consumer(c, STR("b"), &err));
    moved(c, 1, 8, 5, 0);
    CHECK_OK(feed_consumers(c, &a, &consumers, &count, &err));
    CHECK_INT(count, 2);
    for (size_t i = 0; i < 2; i++) {
        bool first = str_eq(consumers[i].name, STR("a"));
        CHECK_INT(consumers[i].acknowledged, first ? 0 : 2);
        CHECK_INT(consumers[i].waiting, first ? 3 : 1);
    }
    CHECK_OK(feed_remove_consumer(c, STR("a"), &err)); /* it held records 1 and 2 */
    CHECK_STR(str_z(says(swarm_store(f), STR("LLEN"), STR("deltas"))), STR("2"));
    CHECK_INT(read_all(c, &a, "b", 1)->number, 3);
    CHECK_OK(feed_remove_consumer(c, STR("b"), &err));
    CHECK_ERR(feed_remove_consumer(c, STR("b"), &err), ERR_NOT_FOUND);
    moved(c, 1, 9, 5, 0);
    CHECK_OK(feed_add_consumer(c, STR("c"), &err));
    moved(c, 1, 10, 5, 0);
    CHECK_INT(read_all(c, &a, "c", 1)->number, 4);
    arena_release(&a);
    cache_close(c);
}

/* A page of the API is 10,000 records, and one record more shows that there is another page. */
TEST_FOUR(feed, records_are_read_from_any_place_in_any_number)
{
    enum { COPIES = 10, RECORDS = 10005 };
    struct cache *c = fed(f, 0);
    struct err err = {0};
    struct arena a = {0};
    struct reply *r;
    struct delta *d;
    size_t count;

    add_user(c, 'u', -1);
    add_torrent(c, 't');
    CHECK_OK(feed_add_consumer(c, STR("site"), &err));
    for (unsigned i = 1; i <= 5; i++)
        moved(c, 1, i, 0, 0);
    CHECK_OK(store_call(swarm_store(f), &a, &r, &err, STR("LINDEX"), STR("deltas"), STR("1")));
    struct str one = r->str;
    for (size_t i = 5; i < RECORDS; i += COPIES)
        CHECK_OK(store_call(swarm_store(f), &a, &r, &err, STR("RPUSH"), STR("deltas"), one, one,
                            one, one, one, one, one, one, one, one));
    CHECK_OK(feed_read(c, &a, STR("site"), (struct feed_page){0, 10001}, &d, &count, &err));
    CHECK_INT(count, 10001);
    CHECK_INT(d[10000].number, 10001);
    CHECK_OK(feed_read(c, &a, STR("site"), (struct feed_page){10000, 1001}, &d, &count, &err));
    CHECK_INT(count, 5);
    CHECK_INT(d[0].number, 10001);
    CHECK_OK(feed_read(c, &a, STR("site"), (struct feed_page){3, 1}, &d, &count, &err));
    CHECK_INT(count, 1);
    CHECK_INT(d[0].number, 4);
    CHECK_OK(feed_read(c, &a, STR("site"), (struct feed_page){RECORDS, 10}, &d, &count, &err));
    CHECK_INT(count, 0);
    arena_release(&a);
    cache_close(c);
}

TEST_FOUR(feed, past_its_bound_announces_are_refused_until_a_consumer_goes_on)
{
    struct cache *c = fed(f, 3);
    struct err err = {0};

    add_user(c, 'u', -1);
    add_torrent(c, 't');
    CHECK_OK(feed_add_consumer(c, STR("site"), &err));
    for (unsigned i = 0; i < 3; i++)
        moved(c, i, 0, 0, 0);
    CHECK_INT(announce_now(c, 'u', 't', 3, 0, EVENT_NONE), SWARM_UNAVAILABLE);
    CHECK_OK(feed_acknowledge(c, STR("site"), 1, &err));
    moved(c, 3, 0, 0, 0);
    CHECK_INT(announce_now(c, 'u', 't', 4, 0, EVENT_NONE), SWARM_UNAVAILABLE);
    cache_close(c);
}
