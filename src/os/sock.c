/* Sockets: addresses, connecting and waiting with a deadline. */
#include "os/sock.h"
#include "base/clock.h"
#include "os/file.h"
#include "os/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LOOK_MS = 100 }; /* milliseconds between two checks of `canceled` */

static int sock_parse_unix(struct sock_addr *out, struct str path, struct err *err)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&out->sa;

    if (path.len == 0 || path.len >= sizeof(un->sun_path))
        return err_set(err, ERR_INVALID, "a socket's path has 1 to %zu bytes",
                       sizeof(un->sun_path) - 1);
    *out = (struct sock_addr){.len = sizeof(*un)};
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path.p, path.len);
    return 0;
}

/* Splits "host:port" or "[host]:port" into the host without its brackets, and the port. */
static bool split_port(struct str text, struct str *host, uint16_t *port)
{
    ptrdiff_t colon = -1;
    uint64_t number;

    for (size_t i = text.len; i-- > 0 && colon < 0;)
        if (text.p[i] == ':')
            colon = (ptrdiff_t)i;
    if (colon < 0 || str_u64(str_skip(text, (size_t)colon + 1), &number) < 0 || number > 65535)
        return false;
    *port = (uint16_t)number;
    *host = str_head(text, (size_t)colon);
    if (str_starts(*host, STR("[")) && str_ends(*host, STR("]")))
        *host = str_n(host->p + 1, host->len - 2);
    else if (str_chr(*host, ':') >= 0)
        return false;
    return true;
}

int sock_addr_parse(struct sock_addr *out, struct str text, struct err *err)
{
    char host[INET6_ADDRSTRLEN + 1] = "";
    struct sockaddr_in *in4 = (struct sockaddr_in *)&out->sa;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out->sa;
    struct str name;
    uint16_t port;

    if (str_starts(text, STR("unix:")))
        return sock_parse_unix(out, str_skip(text, 5), err);
    if (!split_port(text, &name, &port) || name.len >= sizeof(host))
        goto bad;
    if (name.len)
        memcpy(host, name.p, name.len);
    *out = (struct sock_addr){.len = sizeof(*in6)};
    if (inet_pton(AF_INET6, host[0] ? host : "::", &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        return 0;
    }
    *out = (struct sock_addr){.len = sizeof(*in4)};
    if (inet_pton(AF_INET, str_eq(name, STR("localhost")) ? "127.0.0.1" : host, &in4->sin_addr) ==
        1) {
        in4->sin_family = AF_INET;
        in4->sin_port = htons(port);
        return 0;
    }
bad:
    return err_set(err, ERR_INVALID,
                   "'" STR_FMT "' is not an address; write 127.0.0.1:9000, [::1]:9000, :9000 or "
                   "unix:/path",
                   STR_ARG(text));
}

void sock_addr_host(const struct sock_addr *addr, char out[SOCK_ADDR_TEXT])
{
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)&addr->sa;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&addr->sa;

    if (addr->sa.ss_family == AF_INET)
        inet_ntop(AF_INET, &in4->sin_addr, out, SOCK_ADDR_TEXT);
    else if (addr->sa.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &in6->sin6_addr, out, SOCK_ADDR_TEXT);
    else
        snprintf(out, SOCK_ADDR_TEXT, "unix");
}

void sock_addr_text(const struct sock_addr *addr, char out[SOCK_ADDR_TEXT])
{
    char host[SOCK_ADDR_TEXT];

    sock_addr_host(addr, host);
    if (addr->sa.ss_family == AF_INET)
        snprintf(out, SOCK_ADDR_TEXT, "%.100s:%u", host,
                 ntohs(((const struct sockaddr_in *)&addr->sa)->sin_port));
    else if (addr->sa.ss_family == AF_INET6)
        snprintf(out, SOCK_ADDR_TEXT, "[%.100s]:%u", host,
                 ntohs(((const struct sockaddr_in6 *)&addr->sa)->sin6_port));
    else
        snprintf(out, SOCK_ADDR_TEXT, "unix:%.108s",
                 ((const struct sockaddr_un *)&addr->sa)->sun_path);
}

void sock_addr_key(const struct sock_addr *addr, unsigned char out[16])
{
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)&addr->sa;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&addr->sa;

    memset(out, 0, 16);
    if (addr->sa.ss_family == AF_INET) {
        out[10] = out[11] = 0xff;
        memcpy(out + 12, &in4->sin_addr, 4);
    } else if (addr->sa.ss_family == AF_INET6) {
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
        memcpy(out, &in6->sin6_addr, mapped ? 16 : 8);
    }
}

/* Called after bind() has failed. If the reason is the file of a unix socket on which nobody
 * listens, removes the file and returns true. Such a file is left when its listener has ended. */
static bool remove_stale(const struct sock_addr *addr)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&addr->sa;
    struct stat st;
    int probe, code;

    if (addr->sa.ss_family != AF_UNIX || errno != EADDRINUSE)
        return false;
    probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return false;
    code = connect(probe, (const struct sockaddr *)un, addr->len) < 0 ? errno : 0;
    fd_close(&probe);
    if (code == ECONNREFUSED && lstat(un->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
        unlink(un->sun_path) == 0)
        return true;
    errno = EADDRINUSE;
    return false;
}

static int bind_to(int fd, const struct sock_addr *addr)
{
    const struct sockaddr *sa = (const struct sockaddr *)&addr->sa;

    if (bind(fd, sa, addr->len) == 0)
        return 0;
    return remove_stale(addr) ? bind(fd, sa, addr->len) : -1;
}

int sock_new(int family, int type, int protocol)
{
    return socket(family, type | SOCK_CLOEXEC, protocol);
}

int sock_listen(int *fd, const struct sock_addr *addr, int backlog, struct err *err)
{
    const struct sockaddr *sa = (const struct sockaddr *)&addr->sa;
    char text[SOCK_ADDR_TEXT];
    int s = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, off = 0;

    sock_addr_text(addr, text);
    if (s < 0)
        return err_errno(err, errno, "making a socket for %s", text);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (sa->sa_family == AF_INET6)
        setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind_to(s, addr) < 0 || listen(s, backlog) < 0) {
        int code = err_errno(err, errno, "listening on %s", text);
        fd_close(&s);
        return code;
    }
    *fd = s;
    return 0;
}

int sock_local(int fd, struct sock_addr *out, struct err *err)
{
    *out = (struct sock_addr){.len = sizeof(out->sa)};
    if (getsockname(fd, (struct sockaddr *)&out->sa, &out->len) < 0)
        return err_errno(err, errno, "asking for a socket's address");
    return 0;
}

void sock_nodelay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void sock_limit_unsent(int fd, int bytes)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes));
}

int sock_wait(int fd, short events, uint64_t deadline_ns, struct err *err)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        uint64_t now = clock_mono_ns();
        uint64_t ms = now < deadline_ns ? (deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
        int n = poll(&p, 1, (int)size_min(ms, 1 << 30));
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_errno(err, errno, "waiting for a socket");
        if (n == 0 && ms == 0)
            return err_code(err, ERR_TIMEOUT);
    }
}

uint64_t sock_limit_next(const struct sock_limit *limit)
{
    uint64_t look = clock_mono_ns() + LOOK_MS * NS_PER_MS;

    return limit->canceled && look < limit->deadline_ns ? look : limit->deadline_ns;
}

int sock_limit_check(const struct sock_limit *limit)
{
    if (limit->canceled && atomic_load(limit->canceled))
        return ERR_CANCELED;
    return clock_mono_ns() >= limit->deadline_ns ? ERR_TIMEOUT : 0;
}

int sock_wait_within(int fd, short events, const struct sock_limit *limit, struct err *err)
{
    for (;;) {
        int code = sock_wait(fd, events, sock_limit_next(limit), err);
        int over = sock_limit_check(limit);
        if (code != ERR_TIMEOUT)
            return code;
        if (over < 0)
            return err_code(err, over);
    }
}

/* Connects to one address; *fd is set on success. */
static int connect_one(int *fd, const struct sockaddr *sa, socklen_t len,
                       const struct sock_limit *limit, struct err *err)
{
    int s = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), code = 0;

    if (s < 0)
        return err_errno(err, errno, "making a socket");
    if (connect(s, sa, len) < 0) {
        int failure = errno;
        socklen_t size = sizeof(failure);
        if (failure == EINPROGRESS || failure == EINTR) {
            code = sock_wait_within(s, POLLOUT, limit, err);
            if (code == 0 && getsockopt(s, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
                failure = errno;
        }
        if (code == 0 && failure)
            code = err_errno(err, failure, "connecting");
    }
    if (code < 0)
        fd_close(&s);
    else
        *fd = s;
    return code;
}

int sock_connect(int *fd, const char *host, uint16_t port, uint64_t deadline_ns, struct err *err)
{
    return sock_connect_within(fd, host, port, &(struct sock_limit){deadline_ns, NULL}, err);
}

int sock_connect_within(int *fd, const char *host, uint16_t port, const struct sock_limit *limit,
                        struct err *err)
{
    struct addrinfo *list = NULL;
    int code = resolve_host(&list, host, port, limit, err);

    if (code < 0)
        return code;
    for (struct addrinfo *a = list; a; a = a->ai_next) {
        code = connect_one(fd, a->ai_addr, a->ai_addrlen, limit, err);
        if (code == 0 || code == ERR_TIMEOUT || code == ERR_CANCELED)
            break;
    }
    freeaddrinfo(list);
    if (code < 0)
        return err_wrap(err, code, "%s:%u", host, port);
    sock_nodelay(*fd);
    return 0;
}

int sock_connect_unix(int *fd, const char *path, uint64_t deadline_ns, struct err *err)
{
    struct sock_addr addr;
    int code = sock_parse_unix(&addr, str_z(path), err);

    if (code < 0)
        return code;
    code = connect_one(fd, (struct sockaddr *)&addr.sa, addr.len,
                       &(struct sock_limit){deadline_ns, NULL}, err);
    if (code == ERR_NOT_FOUND || code == ERR_AGAIN) /* no such socket, or a full backlog */
        code = ERR_UNAVAILABLE;
    return code < 0 ? err_wrap(err, code, "%s", path) : 0;
}

int sock_recv(int fd, void *p, size_t len, size_t *got, uint64_t deadline_ns, struct err *err)
{
    for (;;) {
        ssize_t n = recv(fd, p, len, 0);
        int code;
        if (n >= 0) {
            *got = (size_t)n;
            return 0;
        }
        if (errno != EAGAIN && errno != EINTR)
            return err_errno(err, errno, "receiving");
        code = sock_wait(fd, POLLIN, deadline_ns, err);
        if (code < 0)
            return code;
    }
}

int sock_send_all(int fd, const void *p, size_t len, uint64_t deadline_ns, struct err *err)
{
    const char *from = p;
    while (len) {
        ssize_t n = send(fd, from, len, MSG_NOSIGNAL);
        if (n >= 0) {
            from += n;
            len -= (size_t)n;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return err_errno(err, errno, "sending");
        int code = sock_wait(fd, POLLOUT, deadline_ns, err);
        if (code < 0)
            return code;
    }
    return 0;
}
