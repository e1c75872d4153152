/* Finds the address of a client, also behind proxies. The proxies in trusted networks
 * (tracker.trusted) may say which address the client has. docs/swarm.md has the rules. Any thread
 * may call these functions. */
#ifndef SWARM_TRUST_H
#define SWARM_TRUST_H

#include "base/err.h"
#include "os/networks.h"
#include "swarm/announce.h"

enum { TRUST_MAX_HOPS = 32 };

struct trust {
    struct networks networks;
};

/* Reads a list of networks as networks_parse() (os/networks.h) does. */
int trust_parse(struct trust *out, struct str list, struct err *err) MUST_CHECK;
bool trust_has(const struct trust *t, const struct peer_addr *a);

/* These functions read the address from a text, or from a socket address. out->port is not changed.
 * False: the input is not an IP address. */
bool peer_addr_parse(struct peer_addr *out, struct str text);
bool peer_addr_of(struct peer_addr *out, const struct sock_addr *addr);
void peer_addr_text(const struct peer_addr *a, char out[INET6_ADDRSTRLEN]);

bool peer_addr_is_local(const struct peer_addr *a); /* loopback, private, link-local */
/* Whether a host can have this address: it is not unspecified, multicast or broadcast. */
bool peer_addr_is_host(const struct peer_addr *a);

/* Finds the address of the client of a request. `peer` is the other end of the socket. If `peer` is
 * a trusted proxy or a unix socket, the client is the right-most hop of `forwarded`
 * (X-Forwarded-For) that is not in the trusted networks; the client's port is not set. False: there
 * is no address. */
bool trust_client(const struct trust *t, const struct sock_addr *peer, struct str forwarded,
                  struct peer_addr *out);

#endif
