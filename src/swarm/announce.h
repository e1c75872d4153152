/* The requests of clients to the tracker and its answers, the same for HTTP and UDP. With an
 * announce a client reports itself as a peer of a torrent and gets other peers. A peer that has the
 * whole torrent is a *seeder*, any other peer a *leecher*. With a scrape a client asks only how
 * many peers some torrents have. docs/swarm.md has the rules. The caller owns these structs. */
#ifndef SWARM_ANNOUNCE_H
#define SWARM_ANNOUNCE_H

#include "base/str.h"

enum {
    INFO_HASH_LEN = 20, /* trackers use the first 20 bytes of a version 2 hash (BEP 52) */
    PEER_ID_LEN = 20,
    PASSKEY_LEN = 32,
    COMPACT4_LEN = 6,  /* bytes of an IPv4 address and a port, in network order */
    COMPACT6_LEN = 18, /* bytes of an IPv6 address and a port */
    NUMWANT_DEFAULT = -1
};

/* Where a peer can be reached. An IPv4 address is in the first four bytes of `ip`, and the other
 * bytes are 0. An IPv6 address that maps an IPv4 address is stored as IPv4. The bytes of `ip` and
 * `port` are in network byte order. */
struct peer_addr {
    uint8_t ip[16];
    uint8_t port[2];
    bool v6;
};

/* The values of the first four events are the numbers of BEP 15. */
enum announce_event { EVENT_NONE, EVENT_COMPLETED, EVENT_STARTED, EVENT_STOPPED, EVENT_PAUSED };

struct announce {
    const uint8_t *info_hash; /* INFO_HASH_LEN bytes; all pointers here are borrowed */
    const uint8_t *peer_id;   /* PEER_ID_LEN bytes */
    struct peer_addr addr;
    uint64_t uploaded, downloaded, left;
    enum announce_event event;
    int32_t numwant; /* peers that the client asks for; negative: the default */
    /* A secret of the client; it identifies the client after its address has changed; may be empty.
     */
    struct str key;
    struct str passkey; /* names the user in private mode; empty: not given */
};

/* Returns whether the client may have only a magnet link. In this case aria2 reports that 0 bytes
 * are left, because it does not know the size. So the client counts as a seeder, but the answer
 * gives it seeders, from which it can download the torrent. */
static inline bool announce_maybe_link(const struct announce *a)
{
    return a->event == EVENT_STARTED && (a->left | a->uploaded | a->downloaded) == 0;
}

/* Why an announce is refused. X(name, text for the client, minutes until the client may ask again).
 * 0 minutes: the answer does not say when; -1: the client must not ask again. */
#define SWARM_FAILURES(X)                                                                          \
    X(NONE, "", 0)                                                                                 \
    X(MALFORMED, "malformed request", -1)                                                          \
    X(PASSKEY, "passkey is invalid", -1)                                                           \
    X(USER, "user does not exist", -1)                                                             \
    X(CLIENT, "client is not approved", -1)                                                        \
    X(TORRENT, "torrent does not exist", 60)                                                       \
    X(PRUNED, "torrent is not active", 60)                                                         \
    X(SLOTS, "you have run out of download slots", 30)                                             \
    X(PEERS, "you have too many peers here", 30)                                                   \
    X(PORT, "port is not allowed", -1)                                                             \
    X(FULL, "tracker is full", 30)                                                                 \
    X(UNAVAILABLE, "tracker is temporarily unavailable", 5)

enum swarm_failure {
#define X(name, text, retry) SWARM_##name,
    SWARM_FAILURES(X)
#undef X
        SWARM_FAILURE_COUNT
};
const char *swarm_failure_text(enum swarm_failure f);
const char *swarm_failure_name(enum swarm_failure f); /* the name in metrics, for example "SLOTS" */
/* Minutes until the client may ask again; 0: the answer does not say when; -1: the client must not
 * ask again. */
int swarm_failure_retry(enum swarm_failure f);

/* Peers of one address family (IPv4 or IPv6). The caller owns the memory. `at` has room for `max`
 * addresses of COMPACT4_LEN or COMPACT6_LEN bytes without gaps; max 0: the caller wants no peers of
 * this family. `ids` has room for `max` peer ids; NULL: the caller wants no ids. The tracker sets
 * `count`, and sets has_ids if it has filled in `ids`. */
struct compact {
    uint8_t *at;
    size_t max, count;
    uint8_t *ids;
    bool has_ids;
};

struct announce_answer {
    enum swarm_failure failure; /* the other members are valid only with SWARM_NONE */
    uint32_t interval_s, min_interval_s;
    uint32_t complete, incomplete, downloaded;
    struct compact peers4, peers6; /* the caller sets `at`, `max` and `ids` */
};

struct scrape_entry {
    bool known;
    uint32_t complete, incomplete, downloaded;
    /* `incomplete` without the partial seeds, which are leechers that want no more data (BEP
     * 21). */
    uint32_t downloaders;
};

/* Clears the answer, but keeps the memory for peers that the caller has set. */
void announce_answer_reset(struct announce_answer *a);

#endif
