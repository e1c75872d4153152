/* The tracker: one announce or scrape, whatever protocol it came by, in either mode.
 * docs/swarm.md. Any thread. */
#ifndef SWARM_TRACKER_H
#define SWARM_TRACKER_H

#include "swarm/swarms.h"

struct cache;
struct store;
struct tracker;

enum tracker_mode { TRACKER_PUBLIC, TRACKER_PRIVATE };

struct tracker_options {
    enum tracker_mode mode;
    bool open;  /* public: any torrent */
    bool share; /* public: with other trackers, through the store */
    uint32_t interval_s, min_interval_s;
    uint32_t peer_timeout_s;
    uint32_t numwant, max_numwant, max_scrape;
    uint64_t max_torrents, max_peers;
    uint64_t max_per_user;     /* private: peers of one user; 0: any number */
    uint32_t max_per_address;  /* public: peers of one address in a torrent; 0: any number */
    bool approved_clients;     /* public: the whitelist counts too */
    bool allow_low_ports;      /* peers below port 1024 */
    struct cache *cache;       /* borrowed */
    struct store *store;       /* the cache's */
    struct str prefix;         /* the cache's */
    size_t max_waiting;        /* with share: changes that wait for the store */
    const char *snapshot_path; /* public without share: where swarms are kept over a restart; a
                                  folder that is not there is made */
    uint64_t snapshot_ms;
    const struct log *log;
};
/* Loads the list of torrents and the snapshot. Has two threads of its own: one keeps the time and
 * cleans, the other does what waits: reaps (private mode, or share), saves, and follows changes of
 * the lists. A store that does not answer is no error: the lists come when it does, and until then
 * announces are refused that need them. */
int tracker_open(struct tracker **out, const struct tracker_options *o, struct err *err) MUST_CHECK;
/* Nobody may be in a call. Saves. */
void tracker_close(struct tracker *t);

/* Whether tracker_announce() and tracker_scrape() ask the store, and so may wait. */
bool tracker_waits(const struct tracker *t);
/* For prefetching; NULL in private mode. */
struct swarms *tracker_swarms(struct tracker *t);
uint32_t tracker_now(const struct tracker *t); /* for swarms_*(): seconds, a plain load */

/* Fills the answer, with intervals (varied a little by hash and peer, so that clients spread). When
 * the store cannot be asked that is SWARM_UNAVAILABLE; the first is logged here. */
void tracker_announce(struct tracker *t, const struct announce *a, struct announce_answer *out);
/* Private mode: a passkey that is not known is refused. */
enum swarm_failure tracker_scrape(struct tracker *t, struct str passkey, const uint8_t *hashes,
                                  size_t count, struct scrape_entry *out);
/* Those in force; valid until the tracker is closed. */
const struct tracker_options *tracker_settings(const struct tracker *t);
/* What may change while running: intervals, numwant, max_numwant, max_scrape,
 * approved_clients, allow_low_ports; the rest of `o` is not looked at. One thread at a time. */
void tracker_change(struct tracker *t, const struct tracker_options *o);

/* Whether the lists were loaded at all; for /readyz. */
int tracker_check(struct tracker *t, struct err *err) MUST_CHECK;

/* Counters, by protocol; for metrics and the page of statistics. Fixed labels. */
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
/* Announces that are refused by tracker_announce() it has counted itself; this is for others. */
void tracker_count_failure(struct tracker *t, enum swarm_failure f);
void tracker_counts(struct tracker *t, struct tracker_counts *out);

/* Everything in numbers; asks the store in private mode (what it does not answer is 0). */
struct tracker_stats {
    struct tracker_counts counts;
    struct swarms_stats swarms; /* public */
    struct {                    /* private */
        uint64_t torrents, users, peers;
    } store;
    struct {
        uint64_t on, waiting, written, told, applied, dropped, refused, behind;
    } share;
    uint64_t reaped; /* peers that this tracker took out of the store */
    uint64_t uptime_s;
};
void tracker_stats(struct tracker *t, struct tracker_stats *out);

#endif
