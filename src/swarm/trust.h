/* Whose word counts on where a client is: networks of the configuration, and the client's address
 * behind proxies. docs/swarm.md has the rules. Plain values, any thread. */
#ifndef SWARM_TRUST_H
#define SWARM_TRUST_H

#include "base/err.h"
#include "os/networks.h"
#include "swarm/announce.h"

enum { TRUST_MAX_HOPS = 32 };

struct trust {
    struct networks networks;
};

/* As networks_parse(). */
int trust_parse(struct trust *out, struct str list, struct err *err) MUST_CHECK;
bool trust_has(const struct trust *t, const struct peer_addr *a);

/* The address of a text, or of a socket; the port stays. False: it is none. */
bool peer_addr_parse(struct peer_addr *out, struct str text);
bool peer_addr_of(struct peer_addr *out, const struct sock_addr *addr);
void peer_addr_text(const struct peer_addr *a, char out[INET6_ADDRSTRLEN]);

bool peer_addr_is_local(const struct peer_addr *a); /* loopback, private, link-local */
/* Whether a peer may be there at all: not unspecified, multicast, broadcast. */
bool peer_addr_is_host(const struct peer_addr *a);

/* The client of a request whose socket is at `peer`: behind a proxy of the networks, or on a unix
 * socket, the right-most hop of `forwarded` (X-Forwarded-For) that is not of the networks; its port
 * is not set. False: there is no address at all. */
bool trust_client(const struct trust *t, const struct sock_addr *peer, struct str forwarded,
                  struct peer_addr *out);

#endif
