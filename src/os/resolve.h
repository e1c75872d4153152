/* Looks up host names, with a deadline. getaddrinfo() has no deadline: when a resolver does not
 * answer, it blocks for half a minute. Numeric hosts are answered at once. A name is looked up on a
 * thread of its own. When the deadline passes, the caller returns without waiting for that thread,
 * which later ends by itself. */
#ifndef OS_RESOLVE_H
#define OS_RESOLVE_H

#include "os/sock.h"

#include <netdb.h>

/* Looks up a host. The caller frees *out with freeaddrinfo(). ERR_UNAVAILABLE: there is no such
 * name, or the resolver failed (the text says which). ERR_TIMEOUT and ERR_CANCELED: the limit was
 * reached. ERR_BUSY: too many look-ups run already. */
int resolve_host(struct addrinfo **out, const char *host, uint16_t port,
                 const struct sock_limit *limit, struct err *err) MUST_CHECK;

#endif
