/* Sends and receives the bytes of a connection, plain or TLS. Waits for a peer, and gives up when
 * the peer is slower than the minimum rate. */
#include "http/server_int.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

static void io_received(struct conn *c, size_t n)
{
    c->received += n;
    count(&counters_mine(c->server)->bytes_in, n);
}

int conn_recv_now(struct conn *c, void *to, size_t len, size_t *got)
{
    ssize_t n;

    *got = 0;
    if (c->tls) {
        int code = tls_recv_now(c->tls, to, len, got, NULL);
        if (code == 0 && *got)
            io_received(c, *got);
        return code == 0 || code == ERR_AGAIN ? code : ERR_CLOSED;
    }
    do
        n = recv(c->fd, to, len, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? ERR_AGAIN : ERR_CLOSED;
    *got = (size_t)n;
    io_received(c, *got);
    return 0;
}

void conn_pushed(struct conn *c, size_t n)
{
    atomic_store_explicit(&c->pushed, atomic_load_explicit(&c->pushed, memory_order_relaxed) + n,
                          memory_order_relaxed);
    count(&counters_mine(c->server)->bytes_out, n);
}

/* Marks the connection as broken after a failed send, because the peer cannot know which bytes are
 * missing. */
static int broke(struct conn *c)
{
    c->broken = true;
    return ERR_CLOSED;
}

/* Sends as many bytes of the parts, in order, as TLS accepts without waiting. *sent is increased by
 * their number. */
static int tls_send_parts(struct conn *c, const struct iovec *parts, int n, size_t *sent)
{
    for (int i = 0; i < n; i++) {
        size_t at = 0;
        while (at < parts[i].iov_len) {
            size_t some = 0;
            int code = tls_send_now(c->tls, (const char *)parts[i].iov_base + at,
                                    parts[i].iov_len - at, &some, NULL);
            *sent += some;
            at += some;
            if (code == ERR_AGAIN)
                return *sent ? 0 : ERR_AGAIN;
            if (code < 0)
                return broke(c);
        }
    }
    return 0;
}

int conn_send_now(struct conn *c, const struct iovec *parts, int n, bool more, size_t *sent)
{
    struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)n};
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0);
    ssize_t went;

    *sent = 0;
    if (c->tls) {
        int code = tls_send_parts(c, parts, n, sent);
        conn_pushed(c, *sent);
        return code;
    }
    do
        went = n == 1 ? send(c->fd, parts->iov_base, parts->iov_len, flags)
                      : sendmsg(c->fd, &message, flags);
    while (went < 0 && errno == EINTR);
    if (went < 0)
        return errno == EAGAIN ? ERR_AGAIN : broke(c);
    *sent = (size_t)went;
    conn_pushed(c, *sent);
    return 0;
}

int conn_send_all(struct http_request *req, struct str bytes, bool more)
{
    while (bytes.len) {
        struct iovec part = {(void *)bytes.p, bytes.len};
        size_t sent;
        int code = conn_send_now(req->conn, &part, 1, more, &sent);
        bytes = str_skip(bytes, sent);
        if (code == ERR_AGAIN)
            code = conn_wait(req, POLLOUT);
        if (code < 0)
            return code;
    }
    return 0;
}

/* Returns the number of bytes that the peer has acknowledged. Progress is measured by these bytes
 * and not by room in the send buffer, because a peer may receive bytes for a long time before the
 * send buffer has room again (docs/http.md [6]). */
uint64_t conn_acknowledged(struct conn *c)
{
    uint64_t pushed = atomic_load_explicit(&c->pushed, memory_order_relaxed);
    int queued = 0;

    if (ioctl(c->fd, SIOCOUTQ, &queued) < 0 || queued < 0 || (uint64_t)queued > pushed)
        return queued > 0 ? 0 : pushed;
    return pushed - (uint64_t)queued;
}

static uint64_t moved_by(struct conn *c, short events)
{
    return events == POLLIN ? c->received : conn_acknowledged(c);
}

int conn_wait(struct http_request *req, short events)
{
    struct conn *c = req->conn;
    struct http_server *s = c->server;
    struct pace *pace = events == POLLIN ? &req->in_pace : &req->out_pace;
    struct pollfd p = {.fd = c->fd, .events = events};
    uint64_t window_ns = s->window_ms * NS_PER_MS;
    int n;

    BUG_ON(!req->may_block);
    if (seat_take(req) < 0) /* once a response has begun, it is too late for a 503 */
        return events == POLLOUT ? broke(c) : ERR_BUSY;
    if (!pace->running)
        *pace = (struct pace){.running = true, .mark = moved_by(c, events)};
    do {
        uint64_t before = clock_mono_ns();
        uint64_t left_ns = window_ns > pace->waited_ns ? window_ns - pace->waited_ns : 0;

        n = poll(&p, 1, (int)(left_ns / NS_PER_MS + 1));
        if (n < 0 && errno != EINTR)
            return broke(c);
        if (atomic_load_explicit(&s->dropping, memory_order_relaxed))
            return broke(c);
        pace->waited_ns += clock_mono_ns() - before;
        if (pace->waited_ns >= window_ns) {
            uint64_t moved = moved_by(c, events);
            if ((moved - pace->mark) * MS_PER_S < s->body_min_rate * s->window_ms) {
                count(&counters_mine(s)->timeouts, 1);
                c->broken |= events == POLLOUT; /* the peer got only a part of the response */
                return ERR_TIMEOUT;
            }
            *pace = (struct pace){.running = true, .mark = moved};
        }
    } while (n <= 0);
    return 0;
}
