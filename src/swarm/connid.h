/* Connection ids of the UDP tracker, which show that a sender gets what is sent to its address
 * (U2), and the table of addresses that send wrong ones (U6). No state for each sender: an id is
 * the low byte of the time in steps of 8 s and 56 bits of SipHash over address and time. Any
 * thread. */
#ifndef SWARM_CONNID_H
#define SWARM_CONNID_H

#include "base/hash.h"

/* Address: 16 bytes, IPv4 mapped. `wall_ms` is the wall clock: trackers that share the key agree.
 */
uint64_t connid_make(const struct hash_key *key, const uint8_t addr[16], int64_t wall_ms);
/* At least two minutes old: no longer; and not from more than 16 s in the future. Constant time. */
bool connid_check(const struct hash_key *key, const uint8_t addr[16], int64_t wall_ms, uint64_t id);

/* A table of fixed size. An address, or an IPv6 network of 64 bits, that sent CONNID_BAD_MAX wrong
 * ids within two minutes is banned for ten. Each place has one address at a time, and another that
 * falls on it must first wear it down: so a flood from many forged addresses bans none of them, nor
 * anybody else, and one that is banned cannot be washed out. */
enum { CONNID_BAD_MAX = 64, CONNID_WINDOW_S = 120, CONNID_BAN_S = 600 };

struct connid_bans;
struct connid_bans *connid_bans_new(void);
void connid_bans_free(struct connid_bans *b);
/* `host` as of sock_addr_key(). */
void connid_bans_bad(struct connid_bans *b, const uint8_t host[16], uint64_t now_s);
bool connid_banned(const struct connid_bans *b, const uint8_t host[16], uint64_t now_s);

#endif
