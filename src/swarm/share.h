/* Public swarms shared by several trackers through the store: changes are gathered in memory,
 * written and told in batches, and what others tell goes into our memory. docs/swarm.md, H1 to H4.
 * An announce never waits for the store. */
#ifndef SWARM_SHARE_H
#define SWARM_SHARE_H

#include "swarm/cache.h"
#include "swarm/swarms.h"

struct share;

struct share_options {
    struct cache *cache;        /* borrowed */
    struct store *store;        /* the cache's */
    struct swarms *swarms;      /* borrowed */
    uint32_t (*now)(void *ctx); /* for swarms_*() */
    void *ctx;
    uint32_t peer_timeout_s;
    size_t max_waiting; /* changes; past it the oldest are dropped, and counted */
    /* In the store: past these no torrent is made and no peer added, and nobody waits for it. 0
     * torrents: none but those that were added. */
    uint64_t max_torrents, max_peers;
    const struct log *log;
};
/* Begins to listen, then to take over the swarms that are in the store, torrent by torrent as they
 * are asked for. */
int share_open(struct share **out, const struct share_options *o, struct err *err) MUST_CHECK;
void share_close(struct share *s); /* writes what waits, for 2 s at most */

/* After swarms_announce(): any thread, does not wait. */
void share_change(struct share *s, const struct announce *a, enum swarm_change change);

struct share_stats {
    uint64_t waiting, written, told, applied, dropped;
    uint64_t refused; /* by the store, for good (H5) */
    bool behind;      /* the store could not be asked lately */
};
void share_stats(struct share *s, struct share_stats *out);

#endif
