/* Names to addresses, with a deadline. getaddrinfo() has none of its own: a resolver that does not
 * answer holds it for half a minute. Numeric hosts are answered in place; a name is looked up on a
 * thread of its own. When the deadline passes, the caller leaves that thread behind; it ends by
 * itself. */
#ifndef OS_RESOLVE_H
#define OS_RESOLVE_H

#include "os/sock.h"

#include <netdb.h>

/* *out is freed with freeaddrinfo(). ERR_UNAVAILABLE: no such name, or the resolver failed (the
 * text says which); ERR_TIMEOUT; ERR_CANCELED; ERR_BUSY: too many look-ups hang already. */
int resolve_host(struct addrinfo **out, const char *host, uint16_t port,
                 const struct sock_limit *limit, struct err *err) MUST_CHECK;

#endif
