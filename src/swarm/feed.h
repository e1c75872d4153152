/* The feed of deltas: one record for each accepted private announce, for a site's own database.
 *
 * Records are numbered from 1 without gaps. A consumer has a name; it reads from behind what it has
 * acknowledged, as often as it likes, and acknowledges up to a number. A record goes away when all
 * consumers have acknowledged it, so that nothing is lost while one stalls; a consumer that keeps
 * the last number beside what it wrote takes none twice. Without a consumer none are kept. */
#ifndef SWARM_FEED_H
#define SWARM_FEED_H

#include "swarm/cache.h"

struct delta {
    uint64_t number;
    uint64_t user_id, torrent_id;
    uint8_t peer_id[PEER_ID_LEN];
    int64_t at;                              /* seconds, by the store's clock */
    bool created, snatched, stopped, seeder; /* what the announce did */
    uint64_t left;
    uint64_t raw_uploaded, raw_downloaded; /* since the peer's last announce; never below 0 */
    double uploaded, downloaded;           /* times the multipliers of user and torrent */
};

/* ERR_EXISTS; begins behind the newest record. */
int feed_add_consumer(struct cache *c, struct str name, struct err *err) MUST_CHECK;
int feed_remove_consumer(struct cache *c, struct str name, struct err *err) MUST_CHECK;
/* At most `max`, in order; ERR_NOT_FOUND: no such consumer. */
int feed_read(struct cache *c, struct arena *a, struct str name, size_t max, struct delta **out,
              size_t *count, struct err *err) MUST_CHECK;
/* Up to and with `number`; one that is acknowledged already is fine, one not read yet ERR_RANGE. */
int feed_acknowledge(struct cache *c, struct str name, uint64_t number, struct err *err) MUST_CHECK;

struct feed_consumer {
    struct str name;
    uint64_t acknowledged, waiting;
};
int feed_consumers(struct cache *c, struct arena *a, struct feed_consumer **out, size_t *count,
                   struct err *err) MUST_CHECK;

#endif
