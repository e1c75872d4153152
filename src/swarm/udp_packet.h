/* Packets of the UDP tracker protocol (BEP 15, 41): read and written in place, without I/O.
 *
 * A request borrows from the packet that it was read from. Everything in it is as the sender wrote
 * it; nothing is proven but that the packet is long enough. */
#ifndef SWARM_UDP_PACKET_H
#define SWARM_UDP_PACKET_H

#include "swarm/announce.h"

enum {
    UDP_CONNECT_LEN = 16,
    UDP_ANNOUNCE_LEN = 98,
    UDP_ANNOUNCE_HEAD = 20, /* of the reply: peers stand behind it */
    UDP_SCRAPE_HEAD = 8,
    UDP_SCRAPE_ENTRY = 12,
    UDP_ERROR_HEAD = 8,
    UDP_PAYLOAD4 = 1472, /* what one packet holds: Ethernet; the smallest that IPv6 promises */
    UDP_PAYLOAD6 = 1232,
    UDP_URL_MAX = 512 /* bytes of URL data that are kept */
};

enum udp_action { UDP_CONNECT, UDP_ANNOUNCE, UDP_SCRAPE, UDP_ERROR };

struct udp_request {
    enum udp_action action;
    uint32_t transaction;
    uint64_t connection_id;
    enum swarm_failure failure; /* what the packet says cannot be; else SWARM_NONE */
    struct announce announce;   /* of an announce; its address has the port alone */
    const uint8_t *hashes;      /* of a scrape */
    size_t hash_count;
    size_t url_len; /* URL data of BEP 41, all of its pieces; more than UDP_URL_MAX: none */
    char url[UDP_URL_MAX];
};

/* ERR_PARSE: it is to be dropped without a word (too short, an action that we do not have, a
 * connect without the protocol's number). Options that are cut end the list. */
int udp_read(struct udp_request *out, const uint8_t *p, size_t len) MUST_CHECK;

/* Replies. `out` has room for what they return: how long the reply is. */
size_t udp_write_connect(uint8_t *out, uint32_t transaction, uint64_t connection_id);
/* Peers of one family are at out + UDP_ANNOUNCE_HEAD already. */
size_t udp_write_announce(uint8_t *out, uint32_t transaction, const struct announce_answer *a,
                          bool v6);
size_t udp_write_scrape(uint8_t *out, uint32_t transaction, const struct scrape_entry *entries,
                        size_t count);
/* Cut to `max` bytes: those of the request (U4). 0: there is no room for any error. */
size_t udp_write_error(uint8_t *out, size_t max, uint32_t transaction, struct str text);

#endif
