/* Public swarms that several trackers share through the store. Changes of peers are gathered in
 * memory, written to the store and published in batches; changes that other trackers publish are
 * applied to the swarms in memory. An announce never waits for the store. docs/swarm.md, H1 to H4.
 */
#ifndef SWARM_SHARE_H
#define SWARM_SHARE_H

#include "swarm/cache.h"
#include "swarm/swarms.h"

struct share;

struct share_options {
    struct cache *cache;        /* borrowed */
    struct store *store;        /* the store of the cache; borrowed */
    struct swarms *swarms;      /* borrowed */
    uint32_t (*now)(void *ctx); /* the time in seconds for swarms_*() */
    void *ctx;
    uint32_t peer_timeout_s;
    size_t
        max_waiting; /* number of waiting changes beyond which the oldest are dropped and counted */
    /* Beyond these numbers the store refuses new torrents and peers. 0 torrents: it keeps only
     * torrents that were added. */
    uint64_t max_torrents, max_peers;
    const struct log *log;
};
/* Subscribes to the changes of other trackers, then loads the swarms that are in the store (the
 * take-over), first the torrents that clients ask for. */
int share_open(struct share **out, const struct share_options *o, struct err *err) MUST_CHECK;
void share_close(struct share *s); /* writes waiting changes for up to 2 s */

/* Adds a change to the waiting ones. To be called after swarms_announce(), with its result. Any
 * thread; never waits. */
void share_change(struct share *s, const struct announce *a, enum swarm_change change);

struct share_stats {
    /* Changes: in memory, written to the store, published, applied from others, dropped. */
    uint64_t waiting, written, told, applied, dropped;
    uint64_t refused; /* changes that the store refused for good (H5) */
    bool behind;      /* the last attempt to reach the store failed */
};
void share_stats(struct share *s, struct share_stats *out);

#endif
