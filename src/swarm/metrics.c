/* The metrics of the tracker. */
#include "swarm/room.h"

/* Tells which trackers have a metric. The numbers of all metrics are in struct tracker_stats. */
enum {
    FROM_TRACKER,
    FROM_SWARMS, /* a public tracker, which has its peers in memory */
    FROM_STORE,  /* a private tracker, which has its peers in the store */
    FROM_SHARE,  /* a public tracker that shares its peers with other trackers */
};

#define TRACKER(member)     METRIC_ONE(FROM_TRACKER, struct tracker_stats, member)
#define SWARMS(member)      METRIC_ONE(FROM_SWARMS, struct tracker_stats, member)
#define SWARM_STORE(member) METRIC_ONE(FROM_STORE, struct tracker_stats, member)
#define SHARE(member)       METRIC_ONE(FROM_SHARE, struct tracker_stats, member)

#define REQUESTS(labels, protocol, action)                                                         \
    labels, offsetof(struct tracker_stats, counts.requests[TRACKER_##protocol][ACTION_##action])
static const struct metric_series requests[] = {
    {REQUESTS("protocol=\"http\",action=\"announce\"", HTTP, ANNOUNCE)},
    {REQUESTS("protocol=\"http\",action=\"scrape\"", HTTP, SCRAPE)},
    {REQUESTS("protocol=\"http\",action=\"error\"", HTTP, ERROR)},
    {REQUESTS("protocol=\"udp\",action=\"connect\"", UDP, CONNECT)},
    {REQUESTS("protocol=\"udp\",action=\"announce\"", UDP, ANNOUNCE)},
    {REQUESTS("protocol=\"udp\",action=\"scrape\"", UDP, SCRAPE)},
    {REQUESTS("protocol=\"udp\",action=\"error\"", UDP, ERROR)},
};

#define FAILURES(name, failure)                                                                    \
    "reason=\"" name "\"", offsetof(struct tracker_stats, counts.failures[SWARM_##failure])
static const struct metric_series failures[] = {
    {FAILURES("malformed", MALFORMED)},
    {FAILURES("passkey", PASSKEY)},
    {FAILURES("user", USER)},
    {FAILURES("client", CLIENT)},
    {FAILURES("torrent", TORRENT)},
    {FAILURES("pruned", PRUNED)},
    {FAILURES("slots", SLOTS)},
    {FAILURES("peers", PEERS)},
    {FAILURES("port", PORT)},
    {FAILURES("full", FULL)},
    {FAILURES("unavailable", UNAVAILABLE)},
};
_Static_assert(ARRAY_SIZE(failures) == SWARM_FAILURE_COUNT - 1, "each failure has a row");

#define PEERS(labels, member) labels, offsetof(struct tracker_stats, swarms.member)
static const struct metric_series peers[] = {
    {PEERS("family=\"ipv4\",role=\"seeder\"", seeders4)},
    {PEERS("family=\"ipv4\",role=\"leecher\"", leechers4)},
    {PEERS("family=\"ipv6\",role=\"seeder\"", seeders6)},
    {PEERS("family=\"ipv6\",role=\"leecher\"", leechers6)},
};

const struct metric swarm_metrics[SWARM_METRICS] = {
    {"weir_tracker_requests_total", METRIC_COUNTER,
     "Requests to the tracker; errors are among the others too.",
     METRIC_SEVERAL(FROM_TRACKER, requests)},
    {"weir_tracker_failures_total", METRIC_COUNTER, "Announces and scrapes refused.",
     METRIC_SEVERAL(FROM_TRACKER, failures)},
    {"weir_tracker_bad_connection_ids_total", METRIC_COUNTER,
     "UDP packets whose connection id is not ours.", TRACKER(counts.bad_connection_ids)},
    {"weir_tracker_banned_total", METRIC_COUNTER, "UDP packets of addresses that are banned.",
     TRACKER(counts.banned)},
    {"weir_tracker_dropped_total", METRIC_COUNTER, "UDP packets that were not answered.",
     TRACKER(counts.dropped)},
    {"weir_tracker_reaped_total", METRIC_COUNTER, "Peers that this tracker took out of the store.",
     TRACKER(reaped)},
    {"weir_tracker_torrents", METRIC_GAUGE, "Torrents in memory (public mode).",
     SWARMS(swarms.torrents)},
    {"weir_tracker_torrents_added", METRIC_GAUGE, "Of these, added ones.", SWARMS(swarms.added)},
    {"weir_tracker_peers", METRIC_GAUGE, "Peers in memory (public mode).",
     METRIC_SEVERAL(FROM_SWARMS, peers)},
    {"weir_tracker_snatches_total", METRIC_COUNTER, "Downloads that were completed.",
     SWARMS(swarms.snatches)},
    {"weir_tracker_evicted_total", METRIC_COUNTER, "Torrents displaced by others.",
     SWARMS(swarms.evicted)},
    {"weir_tracker_crowded_total", METRIC_COUNTER,
     "Announces past the bound of peers of an address, answered and not kept.",
     SWARMS(swarms.crowded)},
    {"weir_tracker_memory_bytes", METRIC_GAUGE, "Memory of torrents and peers.",
     SWARMS(swarms.bytes)},
    {"weir_tracker_store_torrents", METRIC_GAUGE, "Torrents in the store (private mode).",
     SWARM_STORE(store.torrents)},
    {"weir_tracker_store_users", METRIC_GAUGE, "Users in the store.", SWARM_STORE(store.users)},
    {"weir_tracker_store_peers", METRIC_GAUGE, "Peers in the store.", SWARM_STORE(store.peers)},
    {"weir_tracker_share_waiting", METRIC_GAUGE, "Changes of peers that wait for the store.",
     SHARE(share.waiting)},
    {"weir_tracker_share_written_total", METRIC_COUNTER, "Changes written to the store.",
     SHARE(share.written)},
    {"weir_tracker_share_told_total", METRIC_COUNTER, "Changes told to other trackers.",
     SHARE(share.told)},
    {"weir_tracker_share_applied_total", METRIC_COUNTER, "Changes that other trackers told of.",
     SHARE(share.applied)},
    {"weir_tracker_share_dropped_total", METRIC_COUNTER,
     "Changes that were not told, as too many waited.", SHARE(share.dropped)},
    {"weir_tracker_share_refused_total", METRIC_COUNTER, "Changes that the store refused for good.",
     SHARE(share.refused)},
    {"weir_tracker_share_behind", METRIC_GAUGE, "1 while the store cannot be asked.",
     SHARE(share.behind)},
};

void swarm_count(void *state, struct metric_numbers *out)
{
    const struct swarm_room *r = state;
    struct tracker *t = r->service.tracker;
    struct tracker_stats *stats = arena_new(out->arena, struct tracker_stats);

    if (!t || !stats)
        return;
    tracker_stats(t, stats);
    metric_numbers_add(out, FROM_TRACKER, stats);
    metric_numbers_add(out, tracker_settings(t)->mode == TRACKER_PUBLIC ? FROM_SWARMS : FROM_STORE,
                       stats);
    if (stats->share.on)
        metric_numbers_add(out, FROM_SHARE, stats);
}
