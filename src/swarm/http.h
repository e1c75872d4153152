/* The tracker over HTTP: announce, scrape, /stats (with ?json for programs) and /check.
 * docs/swarm.md has the rules. In public mode no request waits for the store, so the fast workers
 * of http/server.h answer all requests. In private mode the server's pool of threads answers
 * them. */
#ifndef SWARM_HTTP_H
#define SWARM_HTTP_H

#include "http/server.h"
#include "swarm/tracker.h"

struct swarm_http;

struct swarm_http_options {
    /* The caller sets listen address, pool, limits and log; swarm_http_start() sets the other
     * members. */
    struct http_server_options server;
    struct tracker *tracker; /* borrowed */
    struct str trusted;      /* trusted networks as text, for trust_parse() */
};
/* Starts the server. ERR_IN_USE: the listen address is in use; err names it. */
int swarm_http_start(struct swarm_http **out, const struct swarm_http_options *o,
                     struct err *err) MUST_CHECK;
/* Replaces the trusted networks. Only one thread at a time may call this. ERR_INVALID: the list is
 * malformed, and nothing changes. */
int swarm_http_trust(struct swarm_http *h, struct str trusted, struct err *err) MUST_CHECK;
struct http_server *swarm_http_server(struct swarm_http *h);      /* for its address and metrics */
bool swarm_http_stop(struct swarm_http *h, uint64_t deadline_ns); /* see http_server_stop() */
void swarm_http_free(struct swarm_http *h);                       /* NULL is fine */

#endif
