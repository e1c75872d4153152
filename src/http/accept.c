/* New connections: accepts them, limits their number, and lists and counts them. */
#include "http/server_int.h"
#include "os/file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

enum { BATCH = 64 };

/* Counts one more connection of the peer's address. Returns false when the address already has as
 * many as one address may have. Connections of a proxy are not counted, because a proxy acts for
 * many clients. */
static bool address_enter(struct http_server *s, const struct sock_addr *peer, struct address **out)
{
    unsigned char key[16];
    struct address *a;
    bool room;

    *out = NULL;
    if (s->max_per_address >= s->max_connections || peer->sa.ss_family == AF_UNIX ||
        networks_have(&s->proxies, peer))
        return true;
    sock_addr_key(peer, key);
    mutex_lock(&s->lock);
    a = map_get(&s->addresses, str_n(key, sizeof(key)));
    if (!a) {
        a = xzalloc(sizeof(*a));
        memcpy(a->key, key, sizeof(key));
        map_put(&s->addresses, str_n(a->key, sizeof(a->key)), a);
    }
    room = a->count < s->max_per_address;
    a->count += room;
    mutex_unlock(&s->lock);
    if (room)
        *out = a;
    return room;
}

static void address_leave(struct http_server *s, struct address *a)
{
    bool last;

    if (!a)
        return;
    mutex_lock(&s->lock);
    last = --a->count == 0;
    if (last)
        map_remove(&s->addresses, str_n(a->key, sizeof(a->key)));
    mutex_unlock(&s->lock);
    if (last)
        free(a);
}

void addresses_release(struct http_server *s)
{
    map_release(&s->addresses);
}

static struct conn_stripe *conn_stripe_of(struct conn *c)
{
    return &c->server->stripes[(unsigned)c->fd % STRIPES];
}

void conn_await_sweep(struct conn *c)
{
    mutex_lock(&conn_stripe_of(c)->lock);
    mutex_unlock(&conn_stripe_of(c)->lock);
}

void conn_forget(struct conn *c)
{
    struct conn_stripe *stripe = conn_stripe_of(c);

    mutex_lock(&stripe->lock);
    list_remove(&c->node);
    mutex_unlock(&stripe->lock);
    address_leave(c->server, c->address);
}

/* Refuses a connection: sends a short answer and closes. The function first reads the bytes that
 * the peer has sent, because closing with unread bytes would reset the connection, and the reset
 * may overtake the answer. */
static void turn_away(struct http_server *s, int fd)
{
    static const char word[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
                               "Retry-After: 1\r\nConnection: close\r\n\r\n";
    char scratch[4096];

    count(&counters_mine(s)->refused, 1);
    if (!s->is_tls) {
        (void)!recv(fd, scratch, sizeof(scratch), MSG_DONTWAIT);
        (void)!send(fd, word, sizeof(word) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    fd_close(&fd);
}

static void conn_start(struct http_server *s, int fd, const struct sock_addr *peer)
{
    struct address *address = NULL;
    struct conn *c;

    if (atomic_fetch_add(&s->connections, 1) >= s->max_connections ||
        !address_enter(s, peer, &address)) {
        atomic_fetch_sub(&s->connections, 1);
        turn_away(s, fd);
        return;
    }
    count(&counters_mine(s)->accepted, 1);
    c = xzalloc(sizeof(*c));
    c->server = s;
    c->fd = fd;
    c->address = address;
    memcpy(&c->peer, &peer->sa, size_min(peer->len, sizeof(c->peer)));
    atomic_init(&c->due, PHASE_RUNNING);
    mutex_lock(&conn_stripe_of(c)->lock);
    list_push(&conn_stripe_of(c)->conns, &c->node);
    mutex_unlock(&conn_stripe_of(c)->lock);
    if (s->is_tls)
        c->phase_end = atomic_load(&s->now_ms) + s->tick_ms + s->timeout_ms[PHASE_HELLO];
    conn_park(c, s->is_tls ? PHASE_HELLO : PHASE_IDLE, EPOLLIN);
}

/* Accepts one connection. Returns false when there is no further connection to accept now. */
static bool accept_one(struct http_server *s)
{
    struct sock_addr peer = {.len = sizeof(peer.sa)};
    int fd =
        accept4(s->listener, (struct sockaddr *)&peer.sa, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0 && server_stopping(s)) {
        fd_close(&fd);
        return true;
    }
    if (fd >= 0) {
        conn_start(s, fd, &peer);
        return true;
    }
    switch (errno) {
    case EINTR:
    case ECONNABORTED: /* this and the next four errors concern only the new connection */
    case EPROTO:
    case ENETDOWN:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return true;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        /* Descriptors or memory are used up. The peer waits in the listener's queue, and the
         * sweeper tries again. */
        log_warn(s->log, "http.accept_failed", log_z("server", s->name),
                 log_z("error", strerrorname_np(errno)));
        atomic_store(&s->accept_stalled, true);
        return false;
    default:
        return false;
    }
}

/* Accepts a batch of connections. The listener is edge-triggered, so only one worker is woken for
 * new connections. After a full batch that worker arms the listener again, so that another worker
 * accepts the remaining connections at the same time. */
void accept_some(struct http_server *s)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = &s->listener};
    int n = 0;

    while (n < BATCH && accept_one(s))
        n++;
    if (n == BATCH && !server_stopping(s))
        epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->listener, &event);
}
