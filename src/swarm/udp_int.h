/* Shared by the files of the UDP tracker: udp*.c. */
#ifndef SWARM_UDP_INT_H
#define SWARM_UDP_INT_H

#include "os/loop.h"
#include "swarm/connid.h"
#include "swarm/udp.h"
#include "swarm/udp_packet.h"

enum {
    BATCH = 64,
    /* Bytes of a reply that is sent again because it was too long. Packets of this size pass every
     * network. The reply has a whole number of IPv4 peers. */
    REPLY_SHORT = 548,
    PACKET_MAX = 1536, /* bytes of a packet that are received; no valid request is longer */
    WAIT_THREADS = 16  /* private mode: most requests that ask the store at the same time */
};

/* The sender of a packet. */
struct udp_from {
    uint8_t addr[16]; /* an IPv4 address is mapped to IPv6 */
    /* The address that bans count: an IPv4 address, or the /64 of an IPv6 address. */
    uint8_t host[16];
    bool v6;
};

struct udp_loop {
    struct udp_server *server;
    struct thread thread;
    int fd;
};

struct udp_keys; /* defined in udp_key.c */

struct udp_server {
    struct tracker *tracker;
    const struct log *log;
    struct connid_bans *bans;
    struct pool *pool; /* private mode: threads that may wait for the store */
    uint16_t port;
    size_t loop_count;
    _Atomic(bool) stopping;

    _Atomic(struct udp_keys *) keys; /* the keys for connection ids */
    /* The cache through which trackers share the key; NULL: the key is not shared. */
    struct cache *cache;
    struct loop key_loop;

    struct udp_loop loops[];
};

void udp_loop_run(void *loop);

/* --- udp_key.c --- */

/* Sets the key of the options. With a cache it starts a thread that follows the store's key. */
int udp_key_start(struct udp_server *u, const struct udp_options *o, struct err *err) MUST_CHECK;
void udp_key_stop(struct udp_server *u);
void udp_key_release(struct udp_server *u); /* call it after all loops have ended */
/* These call connid_make() and connid_check() with the keys in force. Any thread may call them. */
uint64_t udp_make_id(const struct udp_server *u, const uint8_t addr[16], int64_t wall_ms);
bool udp_check_id(const struct udp_server *u, const uint8_t addr[16], int64_t wall_ms, uint64_t id);

/* --- udp_serve.c --- */

/* Answers a request whose connection id is right. Returns the length of the answer; 0: no answer.
 * *failed says whether the answer is an error. `out` has room for UDP_PAYLOAD4 bytes; `len` is the
 * request's length. */
size_t udp_serve(struct udp_server *u, struct udp_request *r, const struct udp_from *from,
                 size_t len, uint8_t *out, bool *failed);

/* Private mode: lets another thread answer the request and send the answer. False: too many
 * requests wait. */
bool udp_hand_over(struct udp_loop *l, const void *packet, size_t len, const struct msghdr *to);

void udp_from(struct udp_from *out, const struct sockaddr_storage *sa);

#endif
