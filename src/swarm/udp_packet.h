/* Packets of the UDP tracker protocol (BEP 15, 41), read and written in memory.
 *
 * A request borrows from its packet. Its values are as the sender wrote them; only the length of
 * the packet has been checked. */
#ifndef SWARM_UDP_PACKET_H
#define SWARM_UDP_PACKET_H

#include "swarm/announce.h"

enum {
    UDP_CONNECT_LEN = 16,
    UDP_ANNOUNCE_LEN = 98,
    UDP_ANNOUNCE_HEAD = 20, /* bytes of the reply to an announce before the peers */
    UDP_SCRAPE_HEAD = 8,
    UDP_SCRAPE_ENTRY = 12,
    UDP_ERROR_HEAD = 8,
    UDP_PAYLOAD4 = 1472, /* most bytes of a packet over IPv4 on Ethernet */
    UDP_PAYLOAD6 = 1232, /* most bytes of a packet that every IPv6 network passes */
    UDP_URL_MAX = 512    /* most bytes of URL data (BEP 41) that are kept */
};

enum udp_action { UDP_CONNECT, UDP_ANNOUNCE, UDP_SCRAPE, UDP_ERROR };

struct udp_request {
    enum udp_action action;
    uint32_t transaction;
    uint64_t connection_id;
    enum swarm_failure failure; /* SWARM_NONE, or why the values of the request are refused */
    struct announce announce; /* UDP_ANNOUNCE: the announce; of its address only the port is set */
    const uint8_t *hashes;    /* UDP_SCRAPE: the info hashes */
    size_t hash_count;
    size_t url_len; /* bytes of URL data (BEP 41); if more than UDP_URL_MAX, `url` is not set */
    char url[UDP_URL_MAX];
};

/* Reads a packet. ERR_PARSE: the packet must be dropped without an answer, because it is too short,
 * has an unknown action, or is a connect without the protocol's number. If an option of BEP 41 is
 * cut off, it and the options behind it are ignored. */
int udp_read(struct udp_request *out, const uint8_t *p, size_t len) MUST_CHECK;

/* These write a reply to `out`, which has room for it, and return the length of the reply. */
size_t udp_write_connect(uint8_t *out, uint32_t transaction, uint64_t connection_id);
/* The caller has already put the peers at out + UDP_ANNOUNCE_HEAD. */
size_t udp_write_announce(uint8_t *out, uint32_t transaction, const struct announce_answer *a,
                          bool v6);
size_t udp_write_scrape(uint8_t *out, uint32_t transaction, const struct scrape_entry *entries,
                        size_t count);
/* Writes an error. The error is cut to `max` bytes, the length of the request (U4). 0: not even the
 * head of the error fits. */
size_t udp_write_error(uint8_t *out, size_t max, uint32_t transaction, struct str text);

#endif
