/* Lists of hosts in the configuration that requests may be sent to, such as
 * "public,checker.example,*.hooks.example,10.1.0.0/16".
 *
 * Users of weir can write URLs that weir calls. Such a URL must not lead into the network that weir
 * itself stands in unless an administrator wants that. A name says little about where a connection
 * ends, so everything but the names of the list is judged by the address that was resolved, when
 * the connection is made (http/client.h, may_connect).
 *
 * The list is a plain value that any thread may use. */
#ifndef HTTP_HOSTS_H
#define HTTP_HOSTS_H

#include "os/networks.h"

enum { HOSTS_NAMES_MAX = 64 };

struct hosts {
    struct networks networks;
    struct str names[HOSTS_NAMES_MAX]; /* borrowed from the text of hosts_parse() */
    size_t name_count;
    bool has_public; /* the word "public": every address that ip_is_public() */
};

/* Reads a list with commas or blanks between its items: "public", addresses, networks, names, and
 * "*.NAME" for all names that end with ".NAME". An empty text is an empty list. The text of
 * ERR_INVALID names the item that is wrong. */
int hosts_parse(struct hosts *out, struct str list, struct err *err) MUST_CHECK;
/* Whether the list has this name. A name in the list is allowed whatever address it resolves to. */
bool hosts_have_name(const struct hosts *h, struct str name);
bool hosts_have_address(const struct hosts *h, const struct sock_addr *addr);

/* Whether the address can belong to a host of the Internet. Loopback, link-local, private, shared,
 * reserved and multicast addresses cannot, nor addresses of IPv6 that stand for one of those. */
bool ip_is_public(const uint8_t ip[IP_LEN]);
/* The same, for an address that was resolved (http/client.h, may_connect). A unix socket is not
 * public. */
bool sock_addr_is_public(const struct sock_addr *addr);

#endif
