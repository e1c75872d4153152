/* The tracker as a part of a weir: the models in the store, which every weir has (the API manages
 * them), and on one that tracks what answers clients. Started and stopped by one thread; the
 * members may be used by any between. */
#ifndef SWARM_SERVICE_H
#define SWARM_SERVICE_H

#include "swarm/http.h"
#include "swarm/udp.h"

struct service {
    struct cache *cache;
    struct tracker *tracker; /* NULL: this weir does not track, as for the following */
    struct swarm_http *http; /* NULL also: off */
    struct udp_server *udp;  /* likewise */
};

struct service_options {
    struct store *store; /* swarmDB; borrowed */
    struct str prefix;
    uint64_t feed_max;
    const struct log *log;
    /* What follows counts only on a weir that tracks. The cache, the store, the tracker, the log
     * and the key of connection ids are filled in here. */
    bool tracks, http_on, udp_on;
    struct tracker_options tracker;
    struct swarm_http_options http;
    struct udp_options udp;
};

/* An error's text begins with the key of the configuration that led to it, if one did. */
int service_start(struct service *s, const struct service_options *o, struct err *err) MUST_CHECK;
/* False when handlers still run at the deadline: nothing may be taken apart then. */
bool service_stop(struct service *s, uint64_t deadline_ns);

#endif
