/* The parts of the upstream: connections, the pool, the mover of bytes, the exchange. Only for
 * upstream*.c. */
#ifndef HTTP_UPSTREAM_INT_H
#define HTTP_UPSTREAM_INT_H

#include "base/list.h"
#include "http/upstream.h"
#include "os/thread.h"
#include "os/tls.h"

enum {
    UPSTREAM_DOWN_AFTER = 3,     /* failed connects in a row after which the upstream is down */
    UPSTREAM_PROBE_MS = 1000,    /* between two probes while the upstream is down */
    UPSTREAM_CONTINUE_MS = 1000, /* the longest wait for 100-continue */
    UPSTREAM_DRAIN_MS = 100,     /* the longest time to read the short rest of a body */
    UPSTREAM_DRAIN_MAX = 64 * 1024,
    UPSTREAM_SMALL_BODY = 64 * 1024, /* a body up to this size is sent together with the head */
    UPSTREAM_MAX_INTERIM = 16,       /* the most 1xx responses before the final one */
};

/* A connection is idle, or one exchange owns it, which alone reads and writes. */
struct upstream_conn {
    struct list node; /* in `idle` or `busy`; guarded by the upstream's lock */
    int fd;
    struct tls *tls; /* NULL: plain */
    uint64_t idle_since_ns;
    bool reused;            /* it has carried an exchange before, so the peer may have closed it */
    struct exchange *spare; /* memory of its last exchange, for the next one; NULL: none */
};

struct upstream {
    /* these never change */
    char *host;
    struct buf host_header; /* host[:port], the value of the Host header */
    uint16_t port;
    struct tls_context *tls; /* NULL: plain */
    size_t max_connections, max_idle;
    uint64_t idle_timeout_ms, connect_timeout_ms, timeout_ms, head_timeout_ms;
    const struct log *log; /* borrowed */

    _Atomic(bool) aborted; /* upstream_abort() was called; set once, under `lock` */

    /* guarded by `lock` */
    struct mutex lock;
    struct cond room; /* a connection was given back or closed */
    struct list idle; /* struct upstream_conn, most recently used first */
    struct list busy; /* the connections in use, so that an abort can shut them down */
    /* While the upstream is down, the first caller after this clock_mono_ns() time may try. */
    uint64_t next_probe;
    uint64_t connects;
    size_t open, idle_count;

    /* read without `lock` */
    /* Failed connects in a row; from UPSTREAM_DOWN_AFTER on the upstream is down. */
    _Atomic(unsigned) failures;
    _Atomic(uint64_t) requests, failed, reused, retries;
};

/* The deadline `ms` milliseconds from now, in clock_mono_ns() time. */
uint64_t upstream_deadline(uint64_t ms);

/* --- connections: these fail with ERR_TIMEOUT, ERR_PEER (TLS), else ERR_CLOSED --- */

/* Connects, without TLS yet. ERR_UNAVAILABLE: the peer cannot be reached. ERR_BUSY: weir has no
 * descriptor or memory. */
int upstream_conn_open(struct upstream_conn **out, struct upstream *u, uint64_t deadline_ns,
                       struct err *err) MUST_CHECK;
int upstream_conn_secure(struct upstream_conn *c, struct upstream *u, uint64_t deadline_ns,
                         struct err *err) MUST_CHECK;
void upstream_conn_close(struct upstream_conn *c);
/* Whether the connection is open and has nothing to read, as far as can be seen without asking the
 * peer. */
bool upstream_conn_is_quiet(struct upstream_conn *c);
int upstream_conn_recv(struct upstream_conn *c, void *p, size_t len, size_t *got,
                       uint64_t deadline_ns, struct err *err) MUST_CHECK;
int upstream_conn_recv_now(struct upstream_conn *c, void *p, size_t len, size_t *got,
                           struct err *err) MUST_CHECK;

/* --- the pool --- */

/* Takes an idle connection that is quiet, or opens a new one; with `fresh` always a new one.
 * ERR_UNAVAILABLE: the peer cannot be reached or is marked down. ERR_BUSY: all connections are in
 * use, or weir has no descriptor. */
int upstream_take(struct upstream_conn **out, struct upstream *u, bool fresh,
                  struct err *err) MUST_CHECK;
/* Takes an idle connection that is quiet, without waiting. ERR_AGAIN: there is none. */
int upstream_take_now(struct upstream_conn **out, struct upstream *u, struct err *err) MUST_CHECK;
/* Gives the connection back to the idle ones, or closes it when it cannot be reused. */
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
    bool watch;          /* return ERR_AGAIN when there is something to read from `to` */
    bool reader_failed;  /* the error came from the reader */
    bool no_sendfile;
    struct str pending; /* sent first; the caller may set it when it is empty */
    int pipe[2];        /* -1 until it is needed */
    size_t in_pipe;     /* bytes read into the pipe and not sent yet */
    char *copy;         /* buffer; NULL until it is needed */
};

void mover_init(struct mover *m, struct reader *from, int to, uint64_t timeout_ms);
void mover_release(struct mover *m);
/* Sends some bytes: pending bytes or bytes in the pipe, else at most `max` from the reader. *moved
 * = 0: the reader has ended. ERR_AGAIN comes only with `watch`, and then nothing was sent. */
int mover_step(struct mover *m, uint64_t max, uint64_t *moved, struct err *err) MUST_CHECK;

/* --- the exchange --- */

enum framing { BODY_NONE, BODY_LENGTH, BODY_CHUNKED, BODY_CLOSE };

struct exchange {
    struct reader body;
    struct upstream *upstream;
    struct upstream_conn *conn; /* owned until the exchange is closed */
    uint64_t timeout_ms;        /* the longest time without progress of the body */
    bool to_head;               /* the request is HEAD */
    bool answered;              /* the final head is in `head` */
    bool continued;             /* 100 was received */
    bool reusable;              /* the connection can be reused if the body ends well */
    bool early;                 /* the peer answered before the whole request was sent */
    unsigned interim;           /* 1xx responses so far */
    uint64_t received;          /* bytes received from the peer */
    size_t seen;                /* bytes that the head parser has looked through */
    enum framing framing;
    uint64_t left; /* bytes left, for BODY_LENGTH */
    struct http_chunked chunked;
    bool ended;        /* the caller has read the body's last byte */
    int failed;        /* the first error of the body; later reads return it again */
    size_t start, end; /* the bytes in `in` that were not used yet */
    struct http_head head;
    char in[HTTP_MAX_HEAD + 8 * KIB]; /* the head stays in front; behind it the body is buffered */
};

/* Makes an exchange. The connection lends it memory, and gets that back when it is closed. */
struct exchange *exchange_new(struct upstream *u, struct upstream_conn *c, bool to_head);
/* Reads until the final head is complete. */
int exchange_read_head(struct exchange *e, uint64_t deadline_ns, struct err *err) MUST_CHECK;
/* Reads the bytes that have arrived, without waiting. */
int exchange_look(struct exchange *e, struct err *err) MUST_CHECK;
/* Waits for 100, for the final head, or for UPSTREAM_CONTINUE_MS (which is no error). */
int exchange_await_continue(struct exchange *e, struct err *err) MUST_CHECK;

#endif
