/* The tracker: answers announces and scrapes of both protocols, in public and in private mode.
 * docs/swarm.md describes it. Any thread may call these functions. */
#ifndef SWARM_TRACKER_H
#define SWARM_TRACKER_H

#include "swarm/swarms.h"

struct cache;
struct store;
struct tracker;

enum tracker_mode { TRACKER_PUBLIC, TRACKER_PRIVATE };

struct tracker_options {
    enum tracker_mode mode;
    bool open;  /* public: any torrent is tracked, not only those that were added */
    bool share; /* public: peers are shared with other trackers through the store */
    uint32_t interval_s, min_interval_s;
    uint32_t peer_timeout_s;
    uint32_t numwant, max_numwant, max_scrape;
    uint64_t max_torrents, max_peers;
    uint64_t max_per_user;    /* private: peers of one user; 0: any number */
    uint32_t max_per_address; /* public: peers of one address in a torrent; 0: any number */
    /* Public: only approved clients are served, as they always are in private mode. */
    bool approved_clients;
    bool allow_low_ports; /* peers on a port below 1024 are accepted */
    struct cache *cache;  /* borrowed */
    struct store *store;  /* the store of the cache */
    struct str prefix;    /* the prefix of the cache */
    size_t max_waiting;   /* with share: most changes that wait to be written to the store */
    /* Public without share: path of the file that keeps the swarms over a restart. Its folder is
     * created. */
    const char *snapshot_path;
    uint64_t snapshot_ms;
    const struct log *log;
};
/* Loads the lists of torrents and clients, and the snapshot. Starts two threads. The first (the
 * clock) keeps the time and removes old peers from memory. The second (the follower) does
 * everything that may wait: it removes old peers from the store (private mode, or share), saves the
 * snapshot and loads changes of the lists. A store that does not answer is not an error: the lists
 * are loaded when it answers, and until then announces that need them are refused. */
int tracker_open(struct tracker **out, const struct tracker_options *o, struct err *err) MUST_CHECK;
/* Saves the snapshot and frees the tracker. No other call may be under way. */
void tracker_close(struct tracker *t);

/* Whether tracker_announce() and tracker_scrape() ask the store, and so may wait. */
bool tracker_waits(const struct tracker *t);
/* Returns the swarms in memory, for prefetching; NULL in private mode. */
struct swarms *tracker_swarms(struct tracker *t);
uint32_t tracker_now(const struct tracker *t); /* the time in seconds, for swarms_*() */

/* Handles an announce and fills in the answer. The interval varies a little from peer to peer, so
 * that announces spread out. SWARM_UNAVAILABLE: the store cannot be asked; the first such failure
 * is logged. */
void tracker_announce(struct tracker *t, const struct announce *a, struct announce_answer *out);
/* Answers a scrape: fills in `count` entries. In private mode an unknown passkey is refused. */
enum swarm_failure tracker_scrape(struct tracker *t, struct str passkey, const uint8_t *hashes,
                                  size_t count, struct scrape_entry *out);
/* The settings in force; valid until the tracker is closed. */
const struct tracker_options *tracker_settings(const struct tracker *t);
/* Changes the intervals, numwant, max_numwant, max_scrape, approved_clients and allow_low_ports;
 * the rest of `o` is ignored. Only one thread at a time may call this. */
void tracker_change(struct tracker *t, const struct tracker_options *o);

/* Returns an error until the lists have been loaded; for /readyz. */
int tracker_check(struct tracker *t, struct err *err) MUST_CHECK;

/* Counters, for the metrics and the page of statistics. */
enum tracker_protocol { TRACKER_HTTP, TRACKER_UDP, TRACKER_PROTOCOLS };
enum tracker_action {
    ACTION_CONNECT,
    ACTION_ANNOUNCE,
    ACTION_SCRAPE,
    ACTION_ERROR,
    TRACKER_ACTIONS
};
struct tracker_counts {
    uint64_t requests[TRACKER_PROTOCOLS][TRACKER_ACTIONS];
    uint64_t failures[SWARM_FAILURE_COUNT];
    uint64_t bad_connection_ids, banned, dropped;
};
void tracker_count(struct tracker *t, enum tracker_protocol p, enum tracker_action a, uint64_t n);
void tracker_count_drops(struct tracker *t, uint64_t bad_ids, uint64_t banned, uint64_t dropped);
/* Counts a refusal. tracker_announce() and tracker_scrape() count their own refusals. */
void tracker_count_failure(struct tracker *t, enum swarm_failure f);
void tracker_counts(struct tracker *t, struct tracker_counts *out);

/* All statistics. In private mode the store is asked; numbers that the store did not give are 0. */
struct tracker_stats {
    struct tracker_counts counts;
    struct swarms_stats swarms; /* public mode */
    struct {                    /* private mode */
        uint64_t torrents, users, peers;
    } store;
    struct {
        uint64_t on, waiting, written, told, applied, dropped, refused, behind;
    } share;
    uint64_t reaped; /* old peers that this tracker removed from the store */
    uint64_t uptime_s;
};
void tracker_stats(struct tracker *t, struct tracker_stats *out);

#endif
