/* Sockets: addresses, listening, connecting with a deadline, and whole sends and receives.
 * Every call that waits takes a deadline in clock_mono_ns() time and answers ERR_TIMEOUT past it.
 */
#ifndef OS_SOCK_H
#define OS_SOCK_H

#include "base/buf.h"
#include "base/err.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

struct sock_addr {
    struct sockaddr_storage sa;
    socklen_t len;
};

enum { SOCK_ADDR_TEXT = 128 };

/* "127.0.0.1:9000", "[::1]:9000", ":9000" (all addresses), "unix:/path". Names are not resolved. */
int sock_addr_parse(struct sock_addr *out, struct str text, struct err *err) MUST_CHECK;
void sock_addr_text(const struct sock_addr *addr, char out[SOCK_ADDR_TEXT]);
/* The host part alone ("127.0.0.1"), for logs and per-address limits. */
void sock_addr_host(const struct sock_addr *addr, char out[SOCK_ADDR_TEXT]);
/* 16 bytes that stand for the host: IPv4 mapped, IPv6 cut to its /64. */
void sock_addr_key(const struct sock_addr *addr, unsigned char out[16]);

/* Bound and listening, non-blocking, close-on-exec; SO_REUSEADDR. ERR_IN_USE names the address. The
 * file of a unix socket on which nobody listens any more is replaced; it stays after fd_close(). */
int sock_listen(int *fd, const struct sock_addr *addr, int backlog, struct err *err) MUST_CHECK;
int sock_local(int fd, struct sock_addr *out, struct err *err) MUST_CHECK;

/* How long to wait for what has no descriptor yet that could be shut down. */
struct sock_limit {
    uint64_t deadline_ns;
    const _Atomic(bool) *canceled; /* looked at ten times a second; NULL: never */
};
/* The next time to look. */
uint64_t sock_limit_next(const struct sock_limit *limit);
/* ERR_CANCELED, ERR_TIMEOUT, or 0: go on waiting. */
int sock_limit_check(const struct sock_limit *limit);

/* Resolve `host` and connect, trying each address, all before the deadline; TCP_NODELAY set;
 * non-blocking. */
int sock_connect(int *fd, const char *host, uint16_t port, uint64_t deadline_ns,
                 struct err *err) MUST_CHECK;
/* The same, and ERR_CANCELED. */
int sock_connect_within(int *fd, const char *host, uint16_t port, const struct sock_limit *limit,
                        struct err *err) MUST_CHECK;
int sock_connect_unix(int *fd, const char *path, uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* POLLIN / POLLOUT until the deadline. */
int sock_wait(int fd, short events, uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* Some bytes; *got = 0 is the peer's end. */
int sock_recv(int fd, void *p, size_t len, size_t *got, uint64_t deadline_ns,
              struct err *err) MUST_CHECK;
int sock_send_all(int fd, const void *p, size_t len, uint64_t deadline_ns,
                  struct err *err) MUST_CHECK;

void sock_nodelay(int fd);
/* At most about this many bytes that the peer has no room for yet wait in the kernel; past it the
 * socket is not writable. Accepted sockets inherit it. */
void sock_limit_unsent(int fd, int bytes);

#endif
