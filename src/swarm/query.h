/* What an HTTP tracker is asked: the path, and the query of an announce or a scrape.
 *
 * Values are bytes: "%xx" in either case is a byte, everything else stands for itself, a "+" too
 * (RFC 3986; info hashes are not form fields). Pairs end at "&" or ";". Names are taken in any case
 * and those that are not known are skipped. Nothing is allocated. */
#ifndef SWARM_QUERY_H
#define SWARM_QUERY_H

#include "swarm/announce.h"

enum { QUERY_KEY_MAX = 32, QUERY_IP_MAX = 45 };
#define QUERY_LEFT_UNKNOWN ((uint64_t)INT64_MAX)

/* --- the path --- */

enum query_action { QUERY_OTHER, QUERY_ANNOUNCE, QUERY_SCRAPE };

/* "/announce", "/<passkey>/announce", "/announce/<passkey>", "/users/<passkey>/announce", and the
 * same of scrape. The passkey is borrowed from the path, of any length, empty when there is none.
 */
enum query_action query_path(struct str path, struct str *passkey);

/* The passkey of a whole request: in the path, else "passkey" of the query (which counts only when
 * it needs no decoding). For URL data of BEP 41 as well. Empty: none. */
struct str query_passkey(struct str target);

/* --- an announce --- */

struct announce_query {
    uint8_t info_hash[INFO_HASH_LEN], peer_id[PEER_ID_LEN];
    uint16_t port;
    uint64_t uploaded, downloaded;
    uint64_t left; /* QUERY_LEFT_UNKNOWN: not said, as by clients that have a magnet link alone */
    enum announce_event event;
    int32_t numwant;               /* NUMWANT_DEFAULT: not said, or negative */
    bool compact, no_peer_id;      /* compact unless it is refused */
    char key[QUERY_KEY_MAX];       /* what is longer is cut */
    char passkey[PASSKEY_LEN + 1]; /* of "passkey"; one byte more, so that a longer one is none */
    size_t key_len, passkey_len;
    char ip[3][QUERY_IP_MAX + 1]; /* of ip, ipv4, ipv6, terminated; "": not given */
};

/* NULL, or what is wrong in words for the client; a constant. */
const char *query_announce(struct announce_query *out, struct str query);

/* --- a scrape --- */

struct scrape_query {
    uint8_t *hashes; /* room of the caller for `max` times INFO_HASH_LEN bytes */
    size_t max, count;
    char passkey[PASSKEY_LEN + 1];
    size_t passkey_len;
};

/* Sorted, each once. As query_announce(). */
const char *query_scrape(struct scrape_query *out, struct str query);

#endif
