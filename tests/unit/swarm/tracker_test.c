/* The tracker in both modes, on both engines of the store. */
#include "swarm/tracker.h"
#include "os/file.h"
#include "unit/swarm/cache_helpers.h"

static struct tracker *tracker_with(const struct tracker_options *o)
{
    struct err err = {0};
    struct tracker *t;

    CHECK_OK(tracker_open(&t, o, &err));
    return t;
}

/* What the announce of peer `n` on the torrent is answered. */
static struct answer ask(struct tracker *t, char torrent, unsigned n, uint64_t left)
{
    struct announce a = announce_of('u', torrent, n, left, EVENT_NONE);
    struct answer out;

    answer_init(&out);
    tracker_announce(t, &a, &out.a);
    return out;
}

static enum swarm_failure failure_of(struct tracker *t, char torrent)
{
    return ask(t, torrent, 1, 0).a.failure;
}

/* Until the announce is answered so; the lists are followed by a thread. */
static void wait_failure(struct tracker *t, char torrent, enum swarm_failure want)
{
    CHECK_SOON(failure_of(t, torrent) == want);
}

TEST_FOUR(swarm_tracker, intervals_vary_a_little_and_are_always_the_same_for_the_same)
{
    struct cache *c = cache_on(f);
    struct tracker_options o = tracker_options_on(f, c);
    uint32_t first, least = UINT32_MAX, most = 0;

    o.open = true;
    struct tracker *t = tracker_with(&o);
    first = ask(t, 'a', 1, 0).a.interval_s;
    for (unsigned n = 1; n <= 200; n++) {
        struct announce_answer a = ask(t, 'a', n, 0).a;
        CHECK(a.failure == SWARM_NONE && a.interval_s >= 1710 && a.interval_s <= 1890);
        CHECK_INT(a.min_interval_s, 900);
        least = a.interval_s < least ? a.interval_s : least;
        most = a.interval_s > most ? a.interval_s : most;
    }
    CHECK_INT(ask(t, 'a', 1, 0).a.interval_s, first);
    CHECK(most - least > 90);
    tracker_close(t);
    cache_close(c);
}

TEST_FOUR(swarm_tracker, settings_change_while_it_runs)
{
    struct cache *c = cache_on(f);
    struct tracker_options o = tracker_options_on(f, c);
    struct answer out;

    o.open = true;
    struct tracker *t = tracker_with(&o);
    struct announce a = announce_of('u', 'a', 1, 1, EVENT_NONE);
    a.addr.port[0] = 0, a.addr.port[1] = 80;
    answer_init(&out);
    tracker_announce(t, &a, &out.a);
    CHECK_INT(out.a.failure, SWARM_PORT);
    for (unsigned n = 2; n < 40; n++)
        ask(t, 'a', n, 0);
    o.allow_low_ports = true;
    o.interval_s = o.min_interval_s = 60;
    o.max_numwant = 7;
    tracker_change(t, &o);
    tracker_announce(t, &a, &out.a);
    CHECK_INT(out.a.failure, SWARM_NONE);
    CHECK_INT(out.a.peers4.count + out.a.peers6.count, 7);
    CHECK(out.a.interval_s >= 60 && out.a.interval_s <= 63);
    a.addr.port[1] = 0; /* never */
    tracker_announce(t, &a, &out.a);
    CHECK_INT(out.a.failure, SWARM_PORT);
    tracker_close(t);
    cache_close(c);
}

TEST_FOUR(swarm_tracker, a_list_longer_than_the_bound_of_torrents_is_loaded_and_followed)
{
    struct cache *c = cache_on(f);
    struct tracker_options o = tracker_options_on(f, c);
    struct err err = {0};

    o.max_torrents = 3;
    for (int torrent = 'a'; torrent <= 'g'; torrent++)
        add_torrent(c, (char)torrent);
    struct tracker *t = tracker_with(&o);
    CHECK_OK(tracker_check(t, &err));
    for (int torrent = 'a'; torrent <= 'g'; torrent++)
        CHECK_INT(failure_of(t, (char)torrent), SWARM_NONE);
    CHECK_INT(failure_of(t, 'h'), SWARM_TORRENT);
    add_torrent(c, 'h');
    wait_failure(t, 'h', SWARM_NONE);
    CHECK_OK(cache_remove_torrent(c, hash_of('a'), &err));
    wait_failure(t, 'a', SWARM_TORRENT);
    tracker_close(t);
    cache_close(c);
}

/* G7 */
TEST_FOUR(swarm_tracker, a_key_of_another_type_spoils_no_list_and_is_found_by_the_check)
{
    struct cache *c = cache_on(f);
    struct tracker_options o = tracker_options_on(f, c);

    for (int torrent = 'a'; torrent <= 'c'; torrent++)
        add_torrent(c, (char)torrent);
    check_invariants(c);
    says(swarm_store(f), STR("SET"), STR("torrent:bbbbbbbbbbbbbbbbbbbb"), STR("somebody's"));
    struct tracker *t = tracker_with(&o);
    CHECK_INT(failure_of(t, 'a'), SWARM_NONE);
    CHECK_INT(failure_of(t, 'c'), SWARM_NONE);
    CHECK(invariant_broken(c, "I6"));
    tracker_close(t);
    cache_close(c);
}

TEST_FOUR(swarm_tracker, the_list_of_torrents_is_loaded_and_followed)
{
    struct cache *c = cache_on(f);
    struct tracker_options o = tracker_options_on(f, c);
    struct err err = {0};

    add_torrent(c, 'a');
    struct tracker *t = tracker_with(&o);
    CHECK_OK(tracker_check(t, &err));
    CHECK_INT(failure_of(t, 'a'), SWARM_NONE);
    CHECK_INT(failure_of(t, 'b'), SWARM_TORRENT);
    add_torrent(c, 'b');
    wait_failure(t, 'b', SWARM_NONE);
    CHECK_OK(cache_remove_torrent(c, hash_of('a'), &err));
    wait_failure(t, 'a', SWARM_TORRENT);
    CHECK_INT(failure_of(t, 'b'), SWARM_NONE);
    tracker_close(t);
    cache_close(c);
}

TEST_FOUR(swarm_tracker, whitelist_prefix_and_reload)
{
    struct cache *c = cache_on(f);
    struct tracker_options o = tracker_options_on(f, c);
    struct err err = {0};

    o.open = o.approved_clients = true;
    struct tracker *t = tracker_with(&o);
    CHECK_INT(failure_of(t, 'a'), SWARM_NONE); /* nothing is listed */
    CHECK_OK(cache_whitelist_client(c, STR("-XX"), &err));
    wait_failure(t, 'a', SWARM_CLIENT);
    CHECK_OK(cache_whitelist_client(c, STR("-TS0001-"), &err));
    wait_failure(t, 'a', SWARM_NONE);
    CHECK_OK(cache_unwhitelist_client(c, STR("-TS0001-"), &err));
    wait_failure(t, 'a', SWARM_CLIENT);
    tracker_close(t);
    cache_close(c);
}

TEST_FOUR(swarm_tracker, the_private_mode_asks_the_store)
{
    struct cache *c = cache_on(f);
    struct tracker_options o = tracker_options_on(f, c);
    struct scrape_entry entry;

    o.mode = TRACKER_PRIVATE;
    add_user(c, 'u', -1);
    struct tracker *t = tracker_with(&o);
    CHECK(tracker_waits(t) && !tracker_swarms(t));
    CHECK_INT(failure_of(t, 'a'), SWARM_TORRENT);
    add_torrent(c, 'a');
    CHECK_INT(failure_of(t, 'a'), SWARM_NONE);
    struct announce a = announce_of('u', 'a', 1, 0, EVENT_NONE);
    struct answer out;
    answer_init(&out);
    a.passkey.len--;
    tracker_announce(t, &a, &out.a);
    CHECK_INT(out.a.failure, SWARM_PASSKEY);
    CHECK_INT(tracker_scrape(t, passkey_of('u'), hash_of('a'), 1, &entry), SWARM_NONE);
    CHECK(entry.known && entry.complete == 1);
    CHECK_INT(tracker_scrape(t, passkey_of('v'), hash_of('a'), 1, &entry), SWARM_USER);
    CHECK_INT(tracker_scrape(t, STR_EMPTY, hash_of('a'), 1, &entry), SWARM_PASSKEY);
    struct tracker_stats stats;
    tracker_stats(t, &stats);
    CHECK_INT(stats.store.torrents, 1);
    CHECK_INT(stats.store.users, 1);
    CHECK_INT(stats.store.peers, 1);
    CHECK_INT(stats.counts.failures[SWARM_PASSKEY], 2);
    CHECK_INT(stats.counts.failures[SWARM_USER], 1);
    tracker_close(t);
    cache_close(c);
}

TEST_FOUR(swarm_tracker, swarms_survive_a_restart_and_a_damaged_file_is_left_out)
{
    struct cache *c = cache_on(f);
    struct tracker_options o = tracker_options_on(f, c);
    struct buf path = BUF_INIT(4096);
    struct scrape_entry entry;
    struct err err = {0};

    buf_appendf(&path, "%s/swarm/peers", test_dir());
    o.open = true;
    o.snapshot_path = path.p;
    struct tracker *t = tracker_with(&o);
    CHECK_INT(failure_of(t, 'a'), SWARM_NONE);
    tracker_close(t);
    t = tracker_with(&o);
    CHECK_INT(tracker_scrape(t, STR_EMPTY, hash_of('a'), 1, &entry), SWARM_NONE);
    CHECK(entry.known && entry.complete == 1);
    tracker_close(t);
    CHECK_OK(file_write_durable(path.p, STR("nonsense"), 0600, &err));
    t = tracker_with(&o);
    tracker_scrape(t, STR_EMPTY, hash_of('a'), 1, &entry);
    CHECK_INT(entry.complete, 0);
    tracker_close(t);
    cache_close(c);
    buf_release(&path);
}

TEST_FOUR(swarm_tracker, requests_are_counted_by_protocol_and_action)
{
    struct cache *c = cache_on(f);
    struct tracker_options o = tracker_options_on(f, c);
    struct tracker_counts counts;

    struct tracker *t = tracker_with(&o);
    tracker_count(t, TRACKER_UDP, ACTION_CONNECT, 64);
    tracker_count(t, TRACKER_UDP, ACTION_CONNECT, 1);
    tracker_count(t, TRACKER_HTTP, ACTION_SCRAPE, 1);
    tracker_count_drops(t, 1, 2, 3);
    failure_of(t, 'a');
    tracker_counts(t, &counts);
    CHECK_INT(counts.requests[TRACKER_UDP][ACTION_CONNECT], 65);
    CHECK_INT(counts.requests[TRACKER_HTTP][ACTION_SCRAPE], 1);
    CHECK_INT(counts.requests[TRACKER_HTTP][ACTION_CONNECT], 0);
    CHECK(counts.bad_connection_ids == 1 && counts.banned == 2 && counts.dropped == 3);
    CHECK_INT(counts.failures[SWARM_TORRENT], 1);
    tracker_close(t);
    cache_close(c);
}
