/* Shared by the files of the tracker: tracker*.c. */
#ifndef SWARM_TRACKER_INT_H
#define SWARM_TRACKER_INT_H

#include "base/vec.h"
#include "os/loop.h"
#include "store/store.h"
#include "swarm/cache.h"
#include "swarm/tracker.h"

/* A slot of counters for some of the threads. Each slot has its own lines of the processor's cache,
 * so that threads do not slow each other down. */
enum { COUNT_SLOTS = 16, COUNT_LINE = 64 };
struct count_slot {
    _Alignas(COUNT_LINE) _Atomic(uint64_t) requests[TRACKER_PROTOCOLS][TRACKER_ACTIONS];
    _Atomic(uint64_t) failures[SWARM_FAILURE_COUNT];
    _Atomic(uint64_t) bad_connection_ids, banned, dropped;
};

/* The settings of the tracker. Requests read them without a lock, so replaced settings live until
 * the tracker is closed. */
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
    /* Torrents of the list that were added to the swarms; only the follower uses this. */
    VEC(struct hash_item)
    known;

    struct mutex clients_lock; /* class "tracker.clients"; guards `clients` */
    VEC(struct client_item) clients;

    struct mutex lock; /* class "tracker"; guards the members below */
    bool all_stale, clients_stale;
    VEC(struct hash_item) changed; /* torrents that must be looked up again */
};

/* When the follower's regular jobs are due, in clock_mono_ms(); UINT64_MAX: never. */
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
    struct share *share;   /* NULL: the swarms are not shared */
    struct lists lists;
    _Atomic(bool) listed;      /* the lists have been loaded */
    _Atomic(bool) store_fails; /* the store does not answer, and that was logged */
    struct loop clock, follower;
    uint64_t ticks;                  /* used by the clock alone */
    struct swarms_stats counts_seen; /* used by the clock alone: the numbers of its last count */
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
void lists_end(struct tracker *t);     /* ends the subscription to changes */
void lists_release(struct tracker *t); /* frees the memory of the lists */
bool lists_approve(struct tracker *t, const uint8_t *peer_id);
/* Loads torrents and clients that have changed. False: the store did not answer, so call it again.
 */
bool lists_follow(struct tracker *t);

/* --- tracker_threads.c --- */

int tracker_threads_start(struct tracker *t, struct err *err) MUST_CHECK;
void tracker_threads_stop(struct tracker *t);
void tracker_tick(struct tracker *t); /* sets now_s to the present time */
void tracker_save(struct tracker *t); /* writes the snapshot, if one is configured */

#endif
