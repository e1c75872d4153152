/* An announce and a scrape, whatever protocol they came by, and what is answered.
 * docs/swarm.md has the rules. Plain values: no thread, nothing owned but by the caller. */
#ifndef SWARM_ANNOUNCE_H
#define SWARM_ANNOUNCE_H

#include "base/str.h"

enum {
    INFO_HASH_LEN = 20, /* of version 2: cut to it (BEP 52) */
    PEER_ID_LEN = 20,
    PASSKEY_LEN = 32,
    COMPACT4_LEN = 6, /* address and port, in network order */
    COMPACT6_LEN = 18,
    NUMWANT_DEFAULT = -1
};

/* Where a peer is reached. IPv4 in the first four bytes of ip, the others 0; an IPv6 address that
 * maps an IPv4 one is given as IPv4. Network order throughout. */
struct peer_addr {
    uint8_t ip[16];
    uint8_t port[2];
    bool v6;
};

/* The first four have the numbers of BEP 15. */
enum announce_event { EVENT_NONE, EVENT_COMPLETED, EVENT_STARTED, EVENT_STOPPED, EVENT_PAUSED };

struct announce {
    const uint8_t *info_hash; /* INFO_HASH_LEN bytes; borrowed as everything here */
    const uint8_t *peer_id;   /* PEER_ID_LEN bytes */
    struct peer_addr addr;
    uint64_t uploaded, downloaded, left;
    enum announce_event event;
    int32_t numwant;    /* as asked; negative: the default */
    struct str key;     /* what the client keeps its identity by; may be empty */
    struct str passkey; /* empty: none was given */
};

/* Whether the client may have a magnet link alone: aria2 says then that nothing is left, as it does
 * not know. It is counted as a seeder, but needs seeders to get the torrent from. */
static inline bool announce_maybe_link(const struct announce *a)
{
    return a->event == EVENT_STARTED && (a->left | a->uploaded | a->downloaded) == 0;
}

/* Why an announce is refused. X(name, text for the client, minutes until it may ask again; 0: not
 * said, -1: never) */
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
const char *swarm_failure_name(enum swarm_failure f); /* "SLOTS": for metrics */
int swarm_failure_retry(enum swarm_failure f);        /* minutes */

/* Room for peers, the caller's: entries of COMPACT4_LEN or COMPACT6_LEN bytes one behind the other.
 * max 0: none of this family are wanted. ids NULL: peer ids are not wanted; else room for max times
 * PEER_ID_LEN bytes, and has_ids tells whether they were known. */
struct compact {
    uint8_t *at;
    size_t max, count;
    uint8_t *ids;
    bool has_ids;
};

struct announce_answer {
    enum swarm_failure failure; /* all else counts only with SWARM_NONE */
    uint32_t interval_s, min_interval_s;
    uint32_t complete, incomplete, downloaded;
    struct compact peers4, peers6; /* at and max are set by the caller */
};

struct scrape_entry {
    bool known;
    uint32_t complete, incomplete, downloaded;
    uint32_t downloaders; /* incomplete without the partial seeds (BEP 21) */
};

/* The room of `a` is emptied, the rest cleared. */
void announce_answer_reset(struct announce_answer *a);

#endif
