/* The tracker over HTTP: announce, scrape, /stats for people (?json for programs), /check.
 * docs/swarm.md has the rules. In public mode nothing waits, and all is answered on the fast
 * workers of http/server.h; in private mode on its pool. */
#ifndef SWARM_HTTP_H
#define SWARM_HTTP_H

#include "http/server.h"
#include "swarm/tracker.h"

struct swarm_http;

struct swarm_http_options {
    /* Listen address, pool, limits and log are used; name, handler and body limit are set here. */
    struct http_server_options server;
    struct tracker *tracker; /* borrowed */
    struct str trusted;      /* networks; trust_parse() */
};
/* ERR_IN_USE names the address. */
int swarm_http_start(struct swarm_http **out, const struct swarm_http_options *o,
                     struct err *err) MUST_CHECK;
/* Other networks from now on; one thread at a time. ERR_INVALID: nothing changes. */
int swarm_http_trust(struct swarm_http *h, struct str trusted, struct err *err) MUST_CHECK;
struct http_server *swarm_http_server(struct swarm_http *h); /* for its address and its numbers */
bool swarm_http_stop(struct swarm_http *h, uint64_t deadline_ns); /* as http_server_stop() */
void swarm_http_free(struct swarm_http *h);                       /* NULL is fine */

#endif
