/* One connection to an upstream: plain or TLS. */
#include "http/upstream_int.h"
#include "base/clock.h"
#include "os/file.h"
#include "os/sock.h"

#include <errno.h>
#include <stdlib.h>

uint64_t upstream_deadline(uint64_t ms)
{
    return clock_mono_ns() + ms * NS_PER_MS;
}

/* Sets the error of a connect that failed: ERR_BUSY if weir itself had no descriptor or thread,
 * which says nothing about the peer, and otherwise ERR_UNAVAILABLE. */
static int not_open(const struct upstream *u, int rc, const struct err *why, struct err *err)
{
    return err_set(err, rc == ERR_BUSY ? ERR_BUSY : ERR_UNAVAILABLE, "upstream " STR_FMT ": %s",
                   STR_ARG(buf_str(&u->host_header)), why->text);
}

int upstream_conn_open(struct upstream_conn **out, struct upstream *u, uint64_t deadline_ns,
                       struct err *err)
{
    struct sock_limit limit = {deadline_ns, &u->aborted};
    struct err why = {0};
    int fd = -1;
    int rc = sock_connect_within(&fd, u->host, u->port, &limit, &why);

    if (rc < 0)
        return not_open(u, rc, &why, err);
    struct upstream_conn *c = xzalloc(sizeof(*c));
    *c = (struct upstream_conn){.fd = fd};
    list_init(&c->node);
    *out = c;
    return 0;
}

int upstream_conn_secure(struct upstream_conn *c, struct upstream *u, uint64_t deadline_ns,
                         struct err *err)
{
    struct err why = {0};
    int rc = u->tls ? tls_connect(&c->tls, u->tls, c->fd, u->host, deadline_ns, &why) : 0;

    return rc < 0 ? not_open(u, rc, &why, err) : 0;
}

void upstream_conn_close(struct upstream_conn *c)
{
    tls_close(c->tls);
    fd_close(&c->fd);
    free(c->spare);
    free(c);
}

bool upstream_conn_is_quiet(struct upstream_conn *c)
{
    char byte;
    size_t got;

    /* With TLS the function tries to read a byte instead of checking the socket, because the bytes
     * in the socket may be session tickets of TLS 1.3, which are not data. */
    if (c->tls)
        return tls_recv_now(c->tls, &byte, 1, &got, NULL) == ERR_AGAIN;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static int closed(int rc, struct err *err)
{
    if (rc == 0 || rc == ERR_TIMEOUT || rc == ERR_PEER || rc == ERR_AGAIN)
        return rc;
    return err_wrap(err, ERR_CLOSED, "upstream");
}

int upstream_conn_recv(struct upstream_conn *c, void *p, size_t len, size_t *got,
                       uint64_t deadline_ns, struct err *err)
{
    return closed(c->tls ? tls_recv(c->tls, p, len, got, deadline_ns, err)
                         : sock_recv(c->fd, p, len, got, deadline_ns, err),
                  err);
}

int upstream_conn_recv_now(struct upstream_conn *c, void *p, size_t len, size_t *got,
                           struct err *err)
{
    if (c->tls)
        return closed(tls_recv_now(c->tls, p, len, got, err), err);
    ssize_t n = recv(c->fd, p, len, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? ERR_AGAIN
                                                 : closed(err_errno(err, errno, "receiving"), err);
    *got = (size_t)n;
    return 0;
}
