/* The tracker of a process. Every process opens the tracker's models in the store (torrents, peers,
 * users and clients; cache.h), because its API manages them. Only a process with the role "tracker"
 * tracks: it has the endpoints for clients. One thread starts and stops the service; in between any
 * thread may use the members. */
#ifndef SWARM_SERVICE_H
#define SWARM_SERVICE_H

#include "swarm/http.h"
#include "swarm/udp.h"

struct service {
    struct cache *cache;
    struct tracker *tracker; /* NULL: this process does not track */
    struct swarm_http *http; /* NULL: this process does not track, or tracker.http is off */
    struct udp_server *udp;  /* NULL: this process does not track, or tracker.udp is off */
};

struct service_options {
    struct store *store; /* the tracker's database (store.redis.swarmDB); borrowed */
    struct str prefix;
    uint64_t feed_max;
    const struct log *log;
    /* The following members are used only in a process that tracks. service_start() sets those that
     * hold the cache, the store, the tracker, the log and the key for connection ids. */
    bool tracks, http_on, udp_on;
    struct tracker_options tracker;
    struct swarm_http_options http;
    struct udp_options udp;
};

/* Starts the service. If a configuration key caused an error, the text of the error begins with
 * that key. */
int service_start(struct service *s, const struct service_options *o, struct err *err) MUST_CHECK;
/* Stops the service. False: some requests have not ended at the deadline, so nothing may be freed.
 */
bool service_stop(struct service *s, uint64_t deadline_ns);

#endif
