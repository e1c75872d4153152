/* The tracker over UDP (BEP 15, 41). Several loops serve one port, each with its own socket
 * (SO_REUSEPORT), and handle packets in batches. docs/swarm.md has the rules, U1 to U6. */
#ifndef SWARM_UDP_H
#define SWARM_UDP_H

#include "os/sock.h"
#include "swarm/tracker.h"

struct cache;
struct udp_server;

struct udp_options {
    struct sock_addr listen; /* [::] receives IPv4 too */
    size_t workers;          /* number of loops; 0: one for each processor */
    struct tracker *tracker; /* borrowed */
    uint8_t key[16];         /* the key for connection ids, until the store gives another key */
    /* The cache through which trackers share the key; borrowed; NULL: the key is not shared. */
    struct cache *cache;
    /* Private mode: most requests that wait for the store; further requests are dropped. */
    size_t waiting;
    const struct log *log;
};
int udp_start(struct udp_server **out, const struct udp_options *o, struct err *err) MUST_CHECK;
/* Stops the server. Requests that wait for the store finish first. */
void udp_stop(struct udp_server *u);
uint16_t udp_port(const struct udp_server *u);

#endif
