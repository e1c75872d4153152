/* Between the files of the tracker. */
#ifndef SWARM_TRACKER_INT_H
#define SWARM_TRACKER_INT_H

#include "base/vec.h"
#include "os/loop.h"
#include "store/store.h"
#include "swarm/cache.h"
#include "swarm/tracker.h"

/* Counters of some threads, on their own lines of the processor's cache. */
enum { COUNT_SLOTS = 16, COUNT_LINE = 64 };
struct count_slot {
    _Alignas(COUNT_LINE) _Atomic(uint64_t) requests[TRACKER_PROTOCOLS][TRACKER_ACTIONS];
    _Atomic(uint64_t) failures[SWARM_FAILURE_COUNT];
    _Atomic(uint64_t) bad_connection_ids, banned, dropped;
};

/* Readers take no lock, so replaced settings live until the tracker is closed. */
struct settings {
    struct tracker_options o;
    struct settings *older;
};

struct hash_item {
    uint8_t hash[INFO_HASH_LEN];
};

struct client_item {
    uint8_t len, bytes[PEER_ID_LEN];
};

/* Public mode: the lists of torrents and approved clients of the store, in memory, and what is
 * known of their changes. */
struct lists {
    struct store_subscription *sub;
    VEC(struct hash_item) known; /* torrents that were added to the swarms; the follower's */

    struct mutex clients_lock; /* class "tracker.clients"; guards the next */
    VEC(struct client_item) clients;

    struct mutex lock; /* class "tracker"; guards what follows */
    bool all_stale, clients_stale;
    VEC(struct hash_item) changed; /* torrents to look up again */
};

/* When the follower's regular jobs are due, clock_mono_ms(); UINT64_MAX: not at all. */
struct tracker_due {
    uint64_t reap_ms, save_ms, retry_ms;
};

struct tracker {
    _Atomic(struct settings *) settings;
    enum tracker_mode mode;
    const struct log *log;
    struct cache *cache;
    struct store *store;
    struct swarms *swarms; /* NULL: private */
    struct share *share;   /* NULL: not shared */
    struct lists lists;
    _Atomic(bool) listed;      /* the lists have been loaded */
    _Atomic(bool) store_fails; /* the store does not answer, and that was logged */
    struct loop clock, follower;
    uint64_t ticks;                  /* of the clock alone */
    struct swarms_stats counts_seen; /* of the clock alone: as of the last count */
    struct tracker_due due;          /* of the follower alone */
    _Atomic(uint32_t) now_s;
    _Atomic(uint64_t) reaped;
    uint64_t started_ms;
    struct count_slot *counts; /* COUNT_SLOTS of them */
};

/* --- tracker_count.c --- */

struct count_slot *count_slots_new(void);

/* --- tracker_lists.c --- */

/* Subscribes to changes and loads the lists. A failure to load is logged, and the follower tries
 * again. */
int lists_start(struct tracker *t, struct err *err) MUST_CHECK;
void lists_end(struct tracker *t);     /* ends the subscription */
void lists_release(struct tracker *t); /* frees the memory */
bool lists_approve(struct tracker *t, const uint8_t *peer_id);
/* Takes over the changes. False: the store did not answer; try again. */
bool lists_follow(struct tracker *t);

/* --- tracker_threads.c --- */

int tracker_threads_start(struct tracker *t, struct err *err) MUST_CHECK;
void tracker_threads_stop(struct tracker *t);
void tracker_tick(struct tracker *t); /* sets now_s */
void tracker_save(struct tracker *t); /* writes the snapshot, where there is one */

#endif
