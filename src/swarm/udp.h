/* The tracker over UDP (BEP 15, 41): loops on one port, each with a socket of its own
 * (SO_REUSEPORT) and batches of packets. docs/swarm.md, U1 to U6. */
#ifndef SWARM_UDP_H
#define SWARM_UDP_H

#include "os/sock.h"
#include "swarm/tracker.h"

struct cache;
struct udp_server;

struct udp_options {
    struct sock_addr listen; /* of IPv6 :: takes IPv4 too */
    size_t workers;          /* 0: one a processor */
    struct tracker *tracker; /* borrowed */
    uint8_t key[16];         /* of connection ids: what it begins with */
    struct cache *cache;     /* where trackers share the key; NULL: it stays. Borrowed */
    size_t waiting; /* private mode: requests that may wait for the store; past it: dropped */
    const struct log *log;
};
int udp_start(struct udp_server **out, const struct udp_options *o, struct err *err) MUST_CHECK;
/* Requests that wait for the store are ended first. */
void udp_stop(struct udp_server *u);
uint16_t udp_port(const struct udp_server *u);

#endif
