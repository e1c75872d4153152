/* Sockets: addresses, listening, connecting with a deadline, and whole sends and receives. Every
 * call that waits takes a deadline in clock_mono_ns() time and returns ERR_TIMEOUT past it. */
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

/* Reads "127.0.0.1:9000", "[::1]:9000", ":9000" (all addresses) or "unix:/path". Names are not
 * resolved. */
int sock_addr_parse(struct sock_addr *out, struct str text, struct err *err) MUST_CHECK;
void sock_addr_text(const struct sock_addr *addr, char out[SOCK_ADDR_TEXT]);
/* Writes the host alone ("127.0.0.1"), for logs and for limits per address. */
void sock_addr_host(const struct sock_addr *addr, char out[SOCK_ADDR_TEXT]);
/* Writes 16 bytes that stand for the host: IPv4 as ::ffff:a.b.c.d, IPv6 cut to its /64. */
void sock_addr_key(const struct sock_addr *addr, unsigned char out[16]);

/* Opens a listening socket: non-blocking, close-on-exec, SO_REUSEADDR. The text of ERR_IN_USE names
 * the address. The file of a unix socket is replaced if nobody listens on it any more. fd_close()
 * does not remove the file. */
int sock_listen(int *fd, const struct sock_addr *addr, int backlog, struct err *err) MUST_CHECK;
int sock_local(int fd, struct sock_addr *out, struct err *err) MUST_CHECK;

/* Opens a socket of that kind, close-on-exec and not connected, for libraries that connect by
 * themselves. Returns -1 when the socket cannot be opened. */
int sock_new(int family, int type, int protocol);

/* How long a call may wait. `canceled` is for calls that have no descriptor yet which another
 * thread could shut down to end them. */
struct sock_limit {
    uint64_t deadline_ns;
    const _Atomic(bool) *canceled; /* true: stop waiting; checked ten times a second; may be NULL */
};
/* Returns when to check the limit again, in clock_mono_ns() time: at the deadline, or earlier to
 * check `canceled`. */
uint64_t sock_limit_next(const struct sock_limit *limit);
/* Returns ERR_CANCELED or ERR_TIMEOUT when the limit is reached, 0 when the caller may wait longer.
 */
int sock_limit_check(const struct sock_limit *limit);

/* Resolves `host` and connects, trying each address until the deadline. The socket is non-blocking
 * and has TCP_NODELAY. */
int sock_connect(int *fd, const char *host, uint16_t port, uint64_t deadline_ns,
                 struct err *err) MUST_CHECK;
/* Like sock_connect(), but with a limit instead of a deadline, so it may also return ERR_CANCELED.
 */
int sock_connect_within(int *fd, const char *host, uint16_t port, const struct sock_limit *limit,
                        struct err *err) MUST_CHECK;
int sock_connect_unix(int *fd, const char *path, uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* Waits for POLLIN or POLLOUT until the deadline. */
int sock_wait(int fd, short events, uint64_t deadline_ns, struct err *err) MUST_CHECK;
/* Like sock_wait(), but with a limit instead of a deadline, so it may also return ERR_CANCELED. */
int sock_wait_within(int fd, short events, const struct sock_limit *limit,
                     struct err *err) MUST_CHECK;

/* Receives up to `len` bytes, at least one. *got = 0: the peer has closed its side. */
int sock_recv(int fd, void *p, size_t len, size_t *got, uint64_t deadline_ns,
              struct err *err) MUST_CHECK;
int sock_send_all(int fd, const void *p, size_t len, uint64_t deadline_ns,
                  struct err *err) MUST_CHECK;

void sock_nodelay(int fd);
/* Limits the unsent bytes that the kernel holds for a socket: beyond about `bytes` of them, the
 * socket is not writable. Accepted sockets inherit the limit. */
void sock_limit_unsent(int fd, int bytes);

#endif
