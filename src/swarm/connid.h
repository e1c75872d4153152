/* Connection ids of the UDP tracker prove that a sender receives packets at its address (U2). The
 * tracker stores nothing for a sender: an id is the low byte of the time, counted in steps of 8 s,
 * and 56 bits of SipHash over address and time. A table counts addresses that send wrong ids (U6).
 * Any thread may call these functions. */
#ifndef SWARM_CONNID_H
#define SWARM_CONNID_H

#include "base/hash.h"

/* Makes the id of an address. `addr` is an IPv6 address, or an IPv4 address mapped to IPv6. The
 * time is the wall clock, so trackers that share the key agree on ids. */
uint64_t connid_make(const struct hash_key *key, const uint8_t addr[16], int64_t wall_ms);
/* Whether the id was made for this address and is still valid. An id is valid for 120 to 128 s. Its
 * time may be up to 16 s ahead of our clock. Takes constant time. */
bool connid_check(const struct hash_key *key, const uint8_t addr[16], int64_t wall_ms, uint64_t id);

/* A table of fixed size. An address, or a /64 network of IPv6, that sends CONNID_BAD_MAX wrong ids
 * within CONNID_WINDOW_S is banned for CONNID_BAN_S. A hash assigns each address to a place of the
 * table, and a place counts one address at a time. Wrong ids of a second address with the same
 * place first lower the count of the first address, down to 0; then the place counts the second
 * address. So a flood from many forged addresses bans nobody, and the flood cannot push a banned
 * address out of the table. */
enum { CONNID_BAD_MAX = 64, CONNID_WINDOW_S = 120, CONNID_BAN_S = 600 };

struct connid_bans;
struct connid_bans *connid_bans_new(void);
void connid_bans_free(struct connid_bans *b);
/* Counts a wrong id from `host`, which sock_addr_key() made: an address, or the /64 network of an
 * IPv6 address. */
void connid_bans_bad(struct connid_bans *b, const uint8_t host[16], uint64_t now_s);
bool connid_banned(const struct connid_bans *b, const uint8_t host[16], uint64_t now_s);

#endif
