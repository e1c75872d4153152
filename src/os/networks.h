/* Lists of networks in the configuration, such as "10.1.0.0/16,fd00::/8". They are plain values
 * that any thread may use. */
#ifndef OS_NETWORKS_H
#define OS_NETWORKS_H

#include "os/sock.h"

enum { NETWORKS_MAX = 64, IP_LEN = 16, IP_V4_BITS = 96 };

struct network {
    uint8_t ip[IP_LEN]; /* IPv4 is stored as ::ffff:a.b.c.d; bits behind the prefix are ignored */
    uint8_t bits;       /* length of the prefix, 0 to 128 */
};

struct networks {
    struct network list[NETWORKS_MAX];
    size_t count;
};

/* Reads "10.1.0.0/16,fd00::/8, 192.0.2.1"; an empty text is an empty list. The text of ERR_INVALID
 * names the item that is wrong. */
int networks_parse(struct networks *out, struct str list, struct err *err) MUST_CHECK;
bool network_has(const struct network *n, const uint8_t ip[IP_LEN]);
bool networks_have_ip(const struct networks *n, const uint8_t ip[IP_LEN]);
bool networks_have(const struct networks *n,
                   const struct sock_addr *addr); /* false for a unix socket */

/* These functions write the 16 bytes of an IP address, given as a text or as a socket address. They
 * return false when the text or the socket address is not an IP address. */
bool ip_parse(uint8_t out[IP_LEN], struct str text);
bool ip_of(uint8_t out[IP_LEN], const struct sock_addr *addr);
bool ip_is_v4(const uint8_t ip[IP_LEN]);

#endif
