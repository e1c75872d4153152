/* The feed: one record for each accepted private announce. A private site reads the feed to update
 * its own database, for example to credit uploads.
 *
 * Records are numbered from 1 without gaps. A consumer has a name. It reads the records behind the
 * last record that it has acknowledged, as often as it likes, and acknowledges all records up to a
 * number. A record is removed when all consumers have acknowledged it, so nothing is lost while a
 * consumer stalls. A consumer that stores the last number together with its own data uses no record
 * twice. Without a consumer no records are stored. */
#ifndef SWARM_FEED_H
#define SWARM_FEED_H

#include "swarm/cache.h"

struct delta {
    uint64_t number;
    uint64_t user_id, torrent_id;
    uint8_t peer_id[PEER_ID_LEN];
    int64_t at; /* time of the announce: seconds since 1970, by the store's clock */
    /* `created`: the announce made the peer. `snatched`: the announce completed a download.
     * `stopped`: the announce removed the peer. `seeder`: nothing was left to download. */
    bool created, snatched, stopped, seeder;
    uint64_t left;
    uint64_t raw_uploaded, raw_downloaded; /* bytes since the peer's last announce; never below 0 */
    double uploaded, downloaded; /* the raw numbers times the multipliers of user and torrent */
};

/* Adds a consumer, which will read the records that come after the newest record. ERR_EXISTS: the
 * name is in use. */
int feed_add_consumer(struct cache *c, struct str name, struct err *err) MUST_CHECK;
int feed_remove_consumer(struct cache *c, struct str name, struct err *err) MUST_CHECK;
/* Which records to read. Of the records that the consumer has not acknowledged, the first `skip`
 * are left out, and at most `max` of the rest are read. */
struct feed_page {
    size_t skip, max;
};
/* Reads records in order. ERR_NOT_FOUND: there is no such consumer. */
int feed_read(struct cache *c, struct arena *a, struct str name, struct feed_page page,
              struct delta **out, size_t *count, struct err *err) MUST_CHECK;
/* Acknowledges the records up to and including `number`. Acknowledging them again is not an error.
 * ERR_RANGE: there is no such record yet. */
int feed_acknowledge(struct cache *c, struct str name, uint64_t number, struct err *err) MUST_CHECK;

struct feed_consumer {
    struct str name;
    uint64_t acknowledged, waiting;
};
int feed_consumers(struct cache *c, struct arena *a, struct feed_consumer **out, size_t *count,
                   struct err *err) MUST_CHECK;

#endif
