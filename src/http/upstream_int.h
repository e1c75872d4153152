/* The parts of the upstream: connections, the pool, the mover of bytes, the exchange. For its own
 * files only. */
#ifndef HTTP_UPSTREAM_INT_H
#define HTTP_UPSTREAM_INT_H

#include "base/list.h"
#include "http/upstream.h"
#include "os/thread.h"
#include "os/tls.h"

enum {
    UPSTREAM_DOWN_AFTER = 3,     /* connect failures in a row */
    UPSTREAM_PROBE_MS = 1000,    /* between probes while down */
    UPSTREAM_CONTINUE_MS = 1000, /* the longest wait for 100-continue */
    UPSTREAM_DRAIN_MS = 100,     /* the longest read of the short rest of a body */
    UPSTREAM_DRAIN_MAX = 64 * 1024,
    UPSTREAM_SMALL_BODY = 64 * 1024, /* a body up to this size is sent together with the head */
    UPSTREAM_MAX_INTERIM = 16,       /* 1xx responses before the final one */
};

/* A connection: idle, or owned by one exchange, which alone reads and writes. */
struct upstream_conn {
    struct list node; /* in `idle` or `busy`; lock of the upstream */
    int fd;
    struct tls *tls; /* NULL: plain */
    uint64_t idle_since_ns;
    bool reused;            /* it has carried an exchange before, so the peer may have closed it */
    struct exchange *spare; /* memory of its last exchange, for the next one; NULL: none */
};

struct upstream {
    /* never change */
    char *host;
    struct buf host_header; /* host[:port] as it goes into Host */
    uint16_t port;
    struct tls_context *tls; /* NULL: plain */
    size_t max_connections, max_idle;
    uint64_t idle_timeout_ms, connect_timeout_ms, timeout_ms, head_timeout_ms;
    const struct log *log; /* borrowed */

    _Atomic(bool) aborted; /* set once, under `lock` */

    /* under `lock` */
    struct mutex lock;
    struct cond room;    /* a connection came back or went away */
    struct list idle;    /* of struct upstream_conn, most recently used first */
    struct list busy;    /* the others, so that an abort can shut them down */
    uint64_t next_probe; /* clock_mono_ns(); while down, the first caller after it tries */
    uint64_t connects;
    size_t open, idle_count;

    /* read without it: */
    _Atomic(unsigned) failures; /* connects in a row that failed; UPSTREAM_DOWN_AFTER: down */
    _Atomic(uint64_t) requests, failed, reused, retries;
};

/* A deadline so many milliseconds from now. */
uint64_t upstream_deadline(uint64_t ms);

/* --- connections: ERR_TIMEOUT, ERR_PEER (TLS), every other failure is ERR_CLOSED --- */

/* Connects, without TLS yet. ERR_UNAVAILABLE: the peer; ERR_BUSY: we have no descriptor or memory.
 */
int upstream_conn_open(struct upstream_conn **out, struct upstream *u, uint64_t deadline_ns,
                       struct err *err) MUST_CHECK;
int upstream_conn_secure(struct upstream_conn *c, struct upstream *u, uint64_t deadline_ns,
                         struct err *err) MUST_CHECK;
void upstream_conn_close(struct upstream_conn *c);
/* Whether the connection is open with nothing to read, as far as we know without asking the peer.
 */
bool upstream_conn_is_quiet(struct upstream_conn *c);
int upstream_conn_recv(struct upstream_conn *c, void *p, size_t len, size_t *got,
                       uint64_t deadline_ns, struct err *err) MUST_CHECK;
int upstream_conn_recv_now(struct upstream_conn *c, void *p, size_t len, size_t *got,
                           struct err *err) MUST_CHECK;

/* --- the pool --- */

/* An idle connection that is quiet, or (always when `fresh`) a new one. ERR_UNAVAILABLE, ERR_BUSY.
 */
int upstream_take(struct upstream_conn **out, struct upstream *u, bool fresh,
                  struct err *err) MUST_CHECK;
/* An idle connection that is quiet, without waiting. ERR_AGAIN. */
int upstream_take_now(struct upstream_conn **out, struct upstream *u, struct err *err) MUST_CHECK;
/* Puts the connection back among the idle ones, or closes it when it cannot be reused. */
void upstream_give(struct upstream *u, struct upstream_conn *c, bool reusable);
static inline void upstream_count(_Atomic(uint64_t) *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* --- the mover: bytes from a reader, or pending ones, to a plain socket; can be stopped and go on
 * at any byte --- */

struct mover {
    struct reader *from; /* may be NULL when only pending bytes are sent */
    int to;
    uint64_t timeout_ms; /* without progress */
    bool watch;          /* answer ERR_AGAIN when `to` has something to be read */
    bool reader_failed;  /* the error came from the reader's side */
    bool no_sendfile;
    struct str pending; /* to be sent first; the caller may set it when it is empty */
    int pipe[2];        /* -1 until needed */
    size_t in_pipe;     /* taken from the reader, not yet sent */
    char *copy;         /* NULL until needed */
};

void mover_init(struct mover *m, struct reader *from, int to, uint64_t timeout_ms);
void mover_release(struct mover *m);
/* Sends some bytes: pending ones or those in the pipe, else at most `max` from the reader. *moved =
 * 0: the reader has ended. After ERR_AGAIN, which comes only with `watch`, nothing was sent. */
int mover_step(struct mover *m, uint64_t max, uint64_t *moved, struct err *err) MUST_CHECK;

/* --- the exchange --- */

enum framing { BODY_NONE, BODY_LENGTH, BODY_CHUNKED, BODY_CLOSE };

struct exchange {
    struct reader body;
    struct upstream *upstream;
    struct upstream_conn *conn; /* owned until closed */
    uint64_t timeout_ms;        /* without progress, of the body */
    bool to_head;               /* the request is HEAD */
    bool answered;              /* the final head is in `head` */
    bool continued;             /* 100 was received */
    bool reusable;              /* the connection can be reused if the body ends well */
    bool early;                 /* the peer answered before the whole request was sent */
    unsigned interim;           /* 1xx so far */
    uint64_t received;          /* bytes of the peer, in all */
    size_t seen;                /* bytes that the head parser has looked through */
    enum framing framing;
    uint64_t left; /* BODY_LENGTH */
    struct http_chunked chunked;
    bool ended;        /* the caller has the body's last byte */
    int failed;        /* sticky error of the body */
    size_t start, end; /* bytes in `in` that nobody has taken yet */
    struct http_head head;
    char in[HTTP_MAX_HEAD + 8 * KIB]; /* the head stays in front; behind it the body is buffered */
};

/* The connection lends the memory of the exchange and gets it back. */
struct exchange *exchange_new(struct upstream *u, struct upstream_conn *c, bool to_head);
/* Reads on until the final head. */
int exchange_read_head(struct exchange *e, uint64_t deadline_ns, struct err *err) MUST_CHECK;
/* Reads the bytes that have arrived, without waiting. */
int exchange_look(struct exchange *e, struct err *err) MUST_CHECK;
/* Waits for 100, for the final head, or until UPSTREAM_CONTINUE_MS are over (which is no error). */
int exchange_await_continue(struct exchange *e, struct err *err) MUST_CHECK;

#endif
