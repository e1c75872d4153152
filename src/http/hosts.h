/* Lists of hosts in the configuration to which requests may be sent, such as
 * "public,checker.example,*.hooks.example,10.1.0.0/16".
 *
 * Users of weir can set URLs that weir then calls. Such a URL must not lead into weir's own network
 * unless an administrator allows that. A name does not tell to which address a connection will
 * lead. So unless the list has the name itself, weir checks the address to which the name was
 * resolved, when it makes the connection (http/client.h, may_connect).
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
    /* The list has the word "public", which stands for every address that ip_is_public()
     * accepts. */
    bool has_public;
};

/* Reads a list with commas or blanks between its items: "public", addresses, networks, names, and
 * "*.NAME" for all names that end with ".NAME". An empty text is an empty list. The text of
 * ERR_INVALID names the item that is wrong. */
int hosts_parse(struct hosts *out, struct str list, struct err *err) MUST_CHECK;
/* Whether the list has this name. A name in the list is allowed, whatever its address is. */
bool hosts_have_name(const struct hosts *h, struct str name);
bool hosts_have_address(const struct hosts *h, const struct sock_addr *addr);

/* Whether the address can belong to a host of the Internet. It is not public if it is loopback,
 * link-local, private, shared, reserved or multicast, or an IPv6 address that contains such an IPv4
 * address. */
bool ip_is_public(const uint8_t ip[IP_LEN]);
/* Like ip_is_public(), for an address that was resolved (http/client.h, may_connect). A unix socket
 * is not public. */
bool sock_addr_is_public(const struct sock_addr *addr);

#endif
