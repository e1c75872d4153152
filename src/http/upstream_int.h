/* Declarations that upstream*.c share: connections, their pool, the mover of bytes, the exchange.
 * No other file may include this header. */
#ifndef HTTP_UPSTREAM_INT_H
#define HTTP_UPSTREAM_INT_H

#include "base/list.h"
#include "http/upstream.h"
#include "os/thread.h"
#include "os/tls.h"

enum {
    UPSTREAM_DOWN_AFTER = 3,     /* failed connects in a row after which the upstream is down */
    UPSTREAM_PROBE_MS = 1000,    /* time between two probes while the upstream is down */
    UPSTREAM_CONTINUE_MS = 1000, /* the longest wait for 100-continue */
    UPSTREAM_DRAIN_MS = 100,     /* the longest time to read the short rest of a body */
    UPSTREAM_DRAIN_MAX = 64 * 1024,
    UPSTREAM_SMALL_BODY = 64 * 1024, /* a body up to this size is sent together with the head */
    UPSTREAM_MAX_INTERIM = 16,       /* the most 1xx responses before the final one */
};

/* A connection to a storage. It is idle, or it belongs to one exchange, which alone reads and
 * writes. */
struct upstream_conn {
    struct list node; /* in `idle` or `busy`; guarded by the upstream's lock */
    int fd;
    struct tls *tls; /* NULL: no TLS */
    uint64_t idle_since_ns;
    /* The connection served an exchange before, so the peer may have closed it. */
    bool reused;
    /* Memory of the last exchange, which the next exchange uses; NULL: none. */
    struct exchange *spare;
};

struct upstream {
    /* These members never change. */
    char *host;
    struct buf host_header; /* host[:port], the value of the Host header */
    uint16_t port;
    struct tls_context *tls; /* NULL: no TLS */
    size_t max_connections, max_idle;
    uint64_t idle_timeout_ms, connect_timeout_ms, timeout_ms, head_timeout_ms;
    const struct log *log; /* borrowed */

    _Atomic(bool) aborted; /* upstream_abort() was called; set once, under `lock` */

    /* The members from here to `idle_count` are guarded by `lock`. */
    struct mutex lock;
    struct cond room; /* signalled when a connection was given back or closed */
    struct list idle; /* struct upstream_conn, most recently used first */
    struct list busy; /* the connections in use, so that an abort can shut them down */
    /* While the upstream is down, the first caller after this clock_mono_ns() time may try to
     * connect. */
    uint64_t next_probe;
    uint64_t connects;
    size_t open, idle_count;

    /* The members from here on may be read without `lock`. */
    /* Failed connects in a row; from UPSTREAM_DOWN_AFTER on the upstream is down. */
    _Atomic(unsigned) failures;
    _Atomic(uint64_t) requests, failed, reused, retries;
};

/* Returns the clock_mono_ns() time `ms` milliseconds from now. */
uint64_t upstream_deadline(uint64_t ms);

/* --- connections: these functions fail with ERR_TIMEOUT, ERR_PEER (TLS), or else ERR_CLOSED --- */

/* Connects; TLS follows in upstream_conn_secure(). ERR_UNAVAILABLE: the peer cannot be reached.
 * ERR_BUSY: weir has no descriptor or thread. */
int upstream_conn_open(struct upstream_conn **out, struct upstream *u, uint64_t deadline_ns,
                       struct err *err) MUST_CHECK;
int upstream_conn_secure(struct upstream_conn *c, struct upstream *u, uint64_t deadline_ns,
                         struct err *err) MUST_CHECK;
void upstream_conn_close(struct upstream_conn *c);
/* Whether the connection is open and has nothing to read. Nothing is sent to test this. So if the
 * peer has vanished without closing, the connection still counts as open. */
bool upstream_conn_is_quiet(struct upstream_conn *c);
int upstream_conn_recv(struct upstream_conn *c, void *p, size_t len, size_t *got,
                       uint64_t deadline_ns, struct err *err) MUST_CHECK;
int upstream_conn_recv_now(struct upstream_conn *c, void *p, size_t len, size_t *got,
                           struct err *err) MUST_CHECK;

/* --- the pool --- */

/* Takes an idle connection for which upstream_conn_is_quiet() is true, or opens a new connection.
 * With `fresh` it always opens a new connection. ERR_UNAVAILABLE: the peer cannot be reached or is
 * marked down. ERR_BUSY: all connections are in use, or weir has no descriptor. */
int upstream_take(struct upstream_conn **out, struct upstream *u, bool fresh,
                  struct err *err) MUST_CHECK;
/* Takes an idle connection for which upstream_conn_is_quiet() is true, without waiting. ERR_AGAIN:
 * there is no such connection. */
int upstream_take_now(struct upstream_conn **out, struct upstream *u, struct err *err) MUST_CHECK;
/* Puts the connection back among the idle connections, or closes it when it cannot be reused. */
void upstream_give(struct upstream *u, struct upstream_conn *c, bool reusable);
static inline void upstream_count(_Atomic(uint64_t) *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* --- the mover: sends pending bytes, or bytes of a reader, to a plain socket --- */

struct mover {
    struct reader *from; /* NULL when only pending bytes are sent */
    int to;
    uint64_t timeout_ms; /* the longest time without progress */
    bool watch;          /* return ERR_AGAIN when `to` has bytes to read, such as an early answer */
    bool reader_failed;  /* the error came from the reader */
    bool no_sendfile;
    struct str pending; /* sent first; the caller may set it only when it is empty */
    int pipe[2];        /* -1 until a pipe is needed */
    size_t in_pipe;     /* bytes read into the pipe and not sent yet */
    char *copy;         /* buffer for copying; NULL until it is needed */
};

void mover_init(struct mover *m, struct reader *from, int to, uint64_t timeout_ms);
void mover_release(struct mover *m);
/* Sends some bytes: pending bytes if there are any, otherwise bytes in the pipe, otherwise at most
 * `max` bytes from the reader. *moved = 0: the reader has ended. ERR_AGAIN (only with `watch`):
 * `to` has bytes to read, and nothing was sent. */
int mover_step(struct mover *m, uint64_t max, uint64_t *moved, struct err *err) MUST_CHECK;

/* --- the exchange --- */

enum framing { BODY_NONE, BODY_LENGTH, BODY_CHUNKED, BODY_CLOSE };

struct exchange {
    struct reader body;
    struct upstream *upstream;
    struct upstream_conn *conn; /* owned until the exchange is closed */
    uint64_t timeout_ms;        /* the longest time in which the body makes no progress */
    bool to_head;               /* the request is HEAD */
    bool answered;              /* `head` has the final response head */
    bool continued;             /* 100-continue was received */
    bool reusable;              /* the connection can be reused if the body ends well */
    bool early;                 /* the peer answered before the whole request was sent */
    unsigned interim;           /* 1xx responses so far */
    uint64_t received;          /* bytes received from the peer */
    size_t seen;                /* bytes that the parser of heads has searched */
    enum framing framing;
    uint64_t left; /* bytes of the body left to read, for BODY_LENGTH */
    struct http_chunked chunked;
    bool ended;        /* the caller has read the body's last byte */
    int failed;        /* the first error of the body; later reads return it again */
    size_t start, end; /* the bytes in `in` that were not used yet */
    struct http_head head;
    /* The head stays at the beginning of the buffer, and bytes of the body follow it. */
    char in[HTTP_MAX_HEAD + 8 * KIB];
};

/* Makes an exchange on this connection. It uses the memory of the connection's last exchange, if
 * there was one. When the exchange is closed, the connection keeps the memory for the next one. */
struct exchange *exchange_new(struct upstream *u, struct upstream_conn *c, bool to_head);
/* Reads until the final head is complete. */
int exchange_read_head(struct exchange *e, uint64_t deadline_ns, struct err *err) MUST_CHECK;
/* Reads the bytes that have arrived, without waiting. */
int exchange_look(struct exchange *e, struct err *err) MUST_CHECK;
/* Waits until 100-continue or the final head has arrived, or until UPSTREAM_CONTINUE_MS have
 * passed, which is not an error. */
int exchange_await_continue(struct exchange *e, struct err *err) MUST_CHECK;

#endif
