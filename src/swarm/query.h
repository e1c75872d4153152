/* Requests to the HTTP tracker: the path, and the query of an announce or a scrape.
 *
 * Values are bytes: "%xx" is a byte, in upper or lower case, and every other character stands for
 * itself, also a "+" (RFC 3986; info hashes are not form fields). Pairs end at "&" or ";". The case
 * of parameter names does not matter, and unknown names are skipped. Nothing is allocated. */
#ifndef SWARM_QUERY_H
#define SWARM_QUERY_H

#include "swarm/announce.h"

enum { QUERY_KEY_MAX = 32, QUERY_IP_MAX = 45 };
#define QUERY_LEFT_UNKNOWN ((uint64_t)INT64_MAX)

/* --- the path --- */

enum query_action { QUERY_OTHER, QUERY_ANNOUNCE, QUERY_SCRAPE };

/* Recognizes the paths "/announce", "/<passkey>/announce", "/announce/<passkey>",
 * "/users/<passkey>/announce", and the same with "scrape". *passkey is borrowed from the path and
 * may have any length; empty: the path has no passkey. */
enum query_action query_path(struct str path, struct str *passkey);

/* Finds the passkey in a request target, or in the URL data of a UDP packet (BEP 41). The passkey
 * is in the path, or else in the parameter "passkey" of the query. That parameter is used only when
 * it has no "%". Empty: there is no passkey. */
struct str query_passkey(struct str target);

/* --- an announce --- */

struct announce_query {
    uint8_t info_hash[INFO_HASH_LEN], peer_id[PEER_ID_LEN];
    uint16_t port;
    uint64_t uploaded, downloaded;
    /* QUERY_LEFT_UNKNOWN: not given; clients with only a magnet link do not know how many bytes are
     * left. */
    uint64_t left;
    enum announce_event event;
    int32_t numwant;          /* NUMWANT_DEFAULT: not given, or negative */
    bool compact, no_peer_id; /* compact: the client does not refuse compact peers */
    char key[QUERY_KEY_MAX];  /* the client's key; only the first QUERY_KEY_MAX bytes are kept */
    /* The parameter "passkey". It has room for one more byte than a valid passkey, so that a
     * passkey that is too long is noticed. */
    char passkey[PASSKEY_LEN + 1];
    size_t key_len, passkey_len;
    /* The parameters ip, ipv4 and ipv6, each with a final NUL; "": not given. */
    char ip[3][QUERY_IP_MAX + 1];
    bool has_ip; /* at least one of these three parameters was given */
};

/* Reads an announce's query. Returns NULL, or a constant text for the client that says what is
 * wrong. */
const char *query_announce(struct announce_query *out, struct str query);

/* --- a scrape --- */

struct scrape_query {
    uint8_t *hashes; /* the caller's memory, with room for `max` hashes */
    size_t max, count;
    char passkey[PASSKEY_LEN + 1];
    size_t passkey_len;
};

/* Reads a scrape's query. The hashes are sorted and without duplicates. Returns NULL, or a constant
 * text for the client that says what is wrong. */
const char *query_scrape(struct scrape_query *out, struct str query);

#endif
