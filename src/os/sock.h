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

/* Opens a listening socket: non-blocking, close-on-exec, SO_REUSEADDR. The text of ERR_IN_USE names
 * the address. The file of a unix socket on which nobody listens any more is replaced; the file
 * stays after fd_close(). */
int sock_listen(int *fd, const struct sock_addr *addr, int backlog, struct err *err) MUST_CHECK;
int sock_local(int fd, struct sock_addr *out, struct err *err) MUST_CHECK;

/* How long a call waits when there is no descriptor yet that another thread could shut down. */
struct sock_limit {
    uint64_t deadline_ns;
    const _Atomic(bool) *canceled; /* checked ten times a second; true: give up; may be NULL */
};
/* When to check `canceled` again, or the deadline; clock_mono_ns(). */
uint64_t sock_limit_next(const struct sock_limit *limit);
/* ERR_CANCELED, ERR_TIMEOUT, or 0: the caller may wait on. */
int sock_limit_check(const struct sock_limit *limit);

/* Resolves `host` and connects, trying each address, all before the deadline. The socket is
 * non-blocking and has TCP_NODELAY. */
int sock_connect(int *fd, const char *host, uint16_t port, uint64_t deadline_ns,
                 struct err *err) MUST_CHECK;
/* As sock_connect(), within a limit; fails with ERR_CANCELED too. */
int sock_connect_within(int *fd, const char *host, uint16_t port, const struct sock_limit *limit,
                        struct err *err) MUST_CHECK;
int sock_connect_unix(int *fd, const char *path, uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* Waits for POLLIN or POLLOUT until the deadline. */
int sock_wait(int fd, short events, uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* Receives some bytes; *got = 0: the peer has ended. */
int sock_recv(int fd, void *p, size_t len, size_t *got, uint64_t deadline_ns,
              struct err *err) MUST_CHECK;
int sock_send_all(int fd, const void *p, size_t len, uint64_t deadline_ns,
                  struct err *err) MUST_CHECK;

void sock_nodelay(int fd);
/* Limits the bytes that wait in the kernel because the peer has no room for them yet: past about so
 * many the socket is not writable. Accepted sockets inherit the limit. */
void sock_limit_unsent(int fd, int bytes);

#endif
