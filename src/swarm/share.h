/* Public swarms that several trackers share through the store. A *swarm* is all peers of one
 * torrent. Changes of peers are gathered in memory; then they are written to the store and
 * published in batches. Changes that other trackers publish are applied to the swarms in memory. An
 * announce never waits for the store. docs/swarm.md has the rules, H1 to H5. */
#ifndef SWARM_SHARE_H
#define SWARM_SHARE_H

#include "swarm/cache.h"
#include "swarm/swarms.h"

struct share;

struct share_options {
    struct cache *cache;        /* borrowed */
    struct store *store;        /* the store of the cache; borrowed */
    struct swarms *swarms;      /* borrowed */
    uint32_t (*now)(void *ctx); /* returns the time in seconds that swarms_*() take as now_s */
    void *ctx;
    uint32_t peer_timeout_s;
    /* Most changes that wait to be written. When there are more, the oldest is dropped, and counted
     * as dropped. */
    size_t max_waiting;
    /* When the store has this many torrents or peers, it accepts no new ones. max_torrents 0: the
     * store accepts only torrents that were added. */
    uint64_t max_torrents, max_peers;
    const struct log *log;
};
/* Subscribes to the changes of other trackers and starts a thread. The thread first loads the
 * swarms that are in the store (the take-over), beginning with the torrents that clients announce.
 */
int share_open(struct share **out, const struct share_options *o, struct err *err) MUST_CHECK;
void share_close(struct share *s); /* writes the waiting changes, for at most 2 s */

/* Adds a change to the list of waiting changes. Call it after swarms_announce(), with its result.
 * Any thread may call this; it never waits. */
void share_change(struct share *s, const struct announce *a, enum swarm_change change);

struct share_stats {
    /* Numbers of changes: waiting to be written; written to the store; published; applied from
     * other trackers; dropped. */
    uint64_t waiting, written, told, applied, dropped;
    uint64_t refused; /* changes that the store refused for good (H5) */
    bool behind;      /* the last attempt to reach the store failed */
};
void share_stats(struct share *s, struct share_stats *out);

#endif
