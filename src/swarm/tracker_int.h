/* Shared by the files of the tracker: tracker*.c. */
#ifndef SWARM_TRACKER_INT_H
#define SWARM_TRACKER_INT_H

#include "base/vec.h"
#include "os/loop.h"
#include "store/store.h"
#include "swarm/cache.h"
#include "swarm/tracker.h"

/* Counters that some of the threads use, on their own lines of the processor's cache. */
enum { COUNT_SLOTS = 16, COUNT_LINE = 64 };
struct count_slot {
    _Alignas(COUNT_LINE) _Atomic(uint64_t) requests[TRACKER_PROTOCOLS][TRACKER_ACTIONS];
    _Atomic(uint64_t) failures[SWARM_FAILURE_COUNT];
    _Atomic(uint64_t) bad_connection_ids, banned, dropped;
};

/* Settings are read without a lock, so replaced settings live until the tracker is closed. */
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

/* Public mode: the store's lists of torrents and approved clients, in memory, and the changes that
 * are still to be loaded. */
struct lists {
    struct store_subscription *sub;
    VEC(struct hash_item)
    known; /* torrents that were added to the swarms; used by the follower alone */

    struct mutex clients_lock; /* class "tracker.clients"; guards `clients` */
    VEC(struct client_item) clients;

    struct mutex lock; /* class "tracker"; guards the members below */
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
    struct swarms *swarms; /* NULL: private mode */
    struct share *share;   /* NULL: not shared */
    struct lists lists;
    _Atomic(bool) listed;      /* the lists have been loaded */
    _Atomic(bool) store_fails; /* the store does not answer, and that was logged */
    struct loop clock, follower;
    uint64_t ticks;                  /* used by the clock alone */
    struct swarms_stats counts_seen; /* used by the clock alone: numbers of the last count */
    struct tracker_due due;          /* used by the follower alone */
    _Atomic(uint32_t) now_s;
    _Atomic(uint64_t) reaped;
    uint64_t started_ms;
    struct count_slot *counts; /* an array of COUNT_SLOTS */
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
/* Loads changed torrents and clients. False: the store did not answer; try again. */
bool lists_follow(struct tracker *t);

/* --- tracker_threads.c --- */

int tracker_threads_start(struct tracker *t, struct err *err) MUST_CHECK;
void tracker_threads_stop(struct tracker *t);
void tracker_tick(struct tracker *t); /* sets now_s */
void tracker_save(struct tracker *t); /* writes the snapshot, if one is configured */

#endif
