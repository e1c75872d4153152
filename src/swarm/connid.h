/* Connection ids of the UDP tracker prove that a sender receives packets at its address (U2). No
 * state is kept for a sender: an id is the low byte of the time, counted in steps of 8 s, and 56
 * bits of SipHash over address and time. A table counts addresses that send wrong ids (U6). Any
 * thread may call these functions. */
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
 * within CONNID_WINDOW_S is banned for CONNID_BAN_S. Each place of the table counts one address at
 * a time. When wrong ids come from another address that belongs to the same place, they first count
 * the old address down to 0. So a flood from many forged addresses bans nobody, and the flood
 * cannot push a banned address out of the table. */
enum { CONNID_BAD_MAX = 64, CONNID_WINDOW_S = 120, CONNID_BAN_S = 600 };

struct connid_bans;
struct connid_bans *connid_bans_new(void);
void connid_bans_free(struct connid_bans *b);
/* Counts a wrong id from `host`, which sock_addr_key() made: an address, or the /64 network of an
 * IPv6 address. */
void connid_bans_bad(struct connid_bans *b, const uint8_t host[16], uint64_t now_s);
bool connid_banned(const struct connid_bans *b, const uint8_t host[16], uint64_t now_s);

#endif
