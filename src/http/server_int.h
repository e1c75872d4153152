/* The server's own parts. Who may touch what, and when, is in docs/http.md; [n] cites an invariant
 * there. */
#ifndef HTTP_SERVER_INT_H
#define HTTP_SERVER_INT_H

#include "base/list.h"
#include "base/map.h"
#include "http/server.h"
#include "os/loop.h"
#include "os/networks.h"
#include "os/tls.h"

#include <sys/uio.h>

enum {
    READ_BUFFER = HTTP_MAX_HEAD + 16 * 1024, /* a head, and always room for some body behind it */
    STRIPES = 16,
    EVENTS = 8,             /* taken by a worker in one epoll_wait */
    TURN_REQUESTS = 32,     /* of one connection before others get their turn */
    KEEP_OUT = 64 * 1024,   /* a larger output buffer is not kept for the next request */
    SPARE_REQUESTS = 64,    /* kept beside the one that each fast worker keeps */
    SKIP_MAX = 64 * 1024,   /* an unread body up to this is read away to save the connection */
    INLINE_MAX = 1 << 20,   /* a reply from memory that may be copied to wait for the socket */
    COPY_PIECE = 64 * 1024, /* of a body that must pass through memory */
    UNSENT_MAX = 512 * 1024 /* of a response, in the kernel, for a peer that does not read */
};

/* What a connection that no thread holds is waiting for. */
enum phase {
    PHASE_RUNNING, /* nothing: a thread or the pool's queue owns it [1] */
    PHASE_HELLO,   /* the first bytes of a TLS handshake */
    PHASE_IDLE,    /* a request */
    PHASE_HEAD,    /* the rest of a head */
    PHASE_READY,   /* its turn; more of its requests are already here */
    PHASE_BODY,    /* the first bytes of a body, before the handler is called again */
    PHASE_SKIP,    /* the rest of a body that the handler did not want */
    PHASE_SENDING, /* room in the socket for the rest of a response */
    PHASE_LINGER,  /* the peer's end, before we close */
    PHASE_AWAIT,   /* a socket of the handler's own; ours is not armed */
    PHASE_COUNT
};

/* What the blocking pool shall do with it. */
enum work { WORK_HANDSHAKE, WORK_HANDLER, WORK_RESUME, WORK_PUMP };

/* Who a request is from, as far as the server was told: strangers get less (docs/http.md, "Seats").
 */
enum standing { STRANGER, KNOWN, STANDINGS };

/* One peer address under the cap per address. */
struct address {
    unsigned char key[16];
    size_t count; /* connections; the entry goes with the last */
    _Atomic(size_t) seats[STANDINGS];
};

/* A connection. Its owner is the one thread that may use it [1]; `due` alone is shared, and `fd`,
 * `pushed` and `window_mark` are read by the sweeper under the stripe's lock [2]. */
struct conn {
    struct http_server *server;
    _Atomic(uint64_t) due; /* deadline (server ms) << 8 | DUE_EXPIRED | phase [3] */
    int fd;
    bool registered; /* with epoll */
    bool broken;     /* a send failed: nothing more can be said to the peer */
    enum work work;
    struct list node;         /* in its stripe */
    struct http_request *req; /* NULL while idle: it holds the buffers */
    struct tls *tls;          /* NULL: plain, or no handshake yet */
    char *saved;              /* a part of a head, kept while no request is attached */
    size_t saved_len, seen;
    uint64_t phase_end;            /* server ms; of HEAD, SKIP, LINGER, SENDING (its window) */
    uint64_t received;             /* bytes */
    uint64_t linger_left;          /* bytes still read away before closing */
    _Atomic(uint64_t) pushed;      /* bytes given to the socket */
    _Atomic(uint64_t) window_mark; /* bytes acknowledged when the send window began */
    struct address *address;       /* NULL: not counted, such as a proxy's */
    struct pool_job job;
    union {
        struct sockaddr any;
        struct sockaddr_in in4;
        struct sockaddr_in6 in6;
    } peer;
};

enum { DUE_PHASE = 0x0f, DUE_EXPIRED = 0x80, DUE_SHIFT = 8 };

/* A body as it comes in: the bytes of the buffer from `at`, then the socket. */
struct body {
    struct reader reader;
    size_t at;     /* in the buffer */
    uint64_t left; /* of Content-Length */
    uint64_t taken;
    struct http_chunked chunked;
    struct buf trailers;
    bool done;
    bool wants_continue; /* the peer waits for 100 */
    int failed;          /* sticky */
};

enum stage {
    STAGE_NONE,
    STAGE_HEAD,   /* status and headers are being gathered */
    STAGE_STREAM, /* head sent, pieces follow */
    STAGE_DONE    /* nothing more from the handler; `out` and `file` may still have to go */
};

/* Time that the peer let us wait, and what it moved in that time. */
struct pace {
    bool running;
    uint64_t waited_ns;
    uint64_t mark; /* bytes moved when the window began */
};

/* What a handler waits for (PHASE_AWAIT). */
struct await {
    http_resume_fn *fn; /* NULL: it does not */
    void *ctx;
    int fd;
    uint64_t timeout_ms;
    bool in_time;
};

struct http_request {
    struct conn *conn;
    struct list node; /* in the list of spares */
    struct arena arena;
    struct body body;
    struct pace in_pace, out_pace;
    struct await await;
    size_t await_body;            /* bytes of the body that the handler waits for; 0: it does not */
    enum standing standing, seat; /* `seat`: as what it has one */
    bool seated;
    bool may_block;
    bool close;    /* after this response */
    bool linger;   /* then not before the peer has ended: it may still be sending */
    bool no_body;  /* HEAD, 204, 304 */
    bool framed;   /* the response is chunked */
    bool own_date; /* the handler gave the header itself */
    bool own_length;
    bool streamed; /* begun before its end was known */
    enum stage stage;
    int status;
    uint64_t started_ns; /* 0 unless requests are logged */
    uint64_t sent;       /* body bytes */
    struct buf out;      /* head, and body bytes that must wait, from out_at */
    size_t out_at;
    struct file_range file; /* follows `out`; fd -1: none */
    bool copy_file;         /* through `out`: small, or TLS */
    struct sock_addr peer;  /* len 0 until asked for */
    struct log log;         /* when log_ready */
    bool log_ready;
    char id[32]; /* empty until asked for */
    size_t in_len;
    struct http_head head;
    char in[READ_BUFFER];
};

struct counters {
    _Alignas(64) _Atomic(uint64_t) accepted;
    _Atomic(uint64_t) refused, requests, bad_requests, timeouts, bytes_in, bytes_out;
    _Atomic(uint64_t) status[6];
};

struct conn_stripe {
    struct mutex lock; /* "http.stripe": the list */
    struct list conns;
};

struct worker {
    struct http_server *server;
    struct thread thread;
    struct http_request *spare;
};

struct http_server {
    http_handler_fn *handler;
    void *ctx;
    const struct log *log; /* borrowed; may be NULL */
    const char *name;
    struct pool *pool;
    struct str (*log_path)(const struct http_head *head); /* NULL: the path */
    void (*on_drop)(void *ctx);
    void *drop_ctx;
    size_t max_connections, max_per_address;
    struct networks proxies;                /* addresses that the caps per address do not count */
    size_t seats_of_address[STANDINGS];     /* most that one may have */
    size_t seats_of_all[STANDINGS];         /* most in all */
    _Atomic(size_t) seats_taken[STANDINGS]; /* by requests of this server */
    uint64_t max_body, body_min_rate;
    uint64_t timeout_ms[PHASE_COUNT];
    uint64_t window_ms, tick_ms;
    struct str server_line; /* "Server: weir\r\n" */

    int epoll, listener, wake;
    struct sock_addr address;
    size_t worker_count;
    struct worker *workers;
    struct loop sweeper;
    struct conn_stripe stripes[STRIPES];
    struct counters *counters; /* one a worker, one for all other threads */

    _Atomic(uint64_t) now_ms; /* monotonic, as of the last tick */
    _Atomic(int64_t) wall_ms; /* for the Date header */
    _Atomic(size_t) connections;
    _Atomic(bool) stopping;       /* no new requests, answer with close */
    _Atomic(bool) dropping;       /* the deadline of stop has passed */
    _Atomic(bool) accept_stalled; /* out of descriptors: the sweeper tries again */

    struct mutex lock;   /* "http.server": what follows */
    struct cond changed; /* the last connection is gone */
    struct tls_context *tls;
    bool is_tls;
    struct list spares;
    size_t spare_count;
    struct map addresses;
};

/* server.c */
struct counters *counters_mine(struct http_server *s);
static inline void count(_Atomic(uint64_t) *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}
struct http_request *request_take(struct http_server *s); /* clean; NULL: out of memory */
void request_give(struct http_server *s, struct http_request *req);
void request_free(struct http_request *req);
bool server_stopping(struct http_server *s);

/* accept.c */
void accept_some(struct http_server *s);
void conn_await_sweep(struct conn *c); /* until the sweeper has done with it */
void conn_forget(struct conn *c);      /* leaves its stripe and its address's count */
void addresses_release(struct http_server *s);

/* conn.c */
void conn_on_event(struct conn *c);
void conn_park(struct conn *c, enum phase phase, uint32_t events);
void conn_sweep(struct conn *c, uint64_t now_ms);  /* under the stripe's lock */
void conn_hang_up(struct conn *c, bool only_idle); /* under the stripe's lock */

/* io.c: bytes in and out, plain or TLS. "Now" never waits: ERR_AGAIN; else ERR_CLOSED, ERR_TIMEOUT.
 */
int conn_recv_now(struct conn *c, void *to, size_t len, size_t *got);
int conn_send_now(struct conn *c, const struct iovec *parts, int n, bool more, size_t *sent);
int conn_send_all(struct http_request *req, struct str bytes, bool more);
int conn_wait(struct http_request *req, short events); /* charged to the peer's pace */
uint64_t conn_acknowledged(struct conn *c);
void conn_pushed(struct conn *c, size_t n);

/* seat.c */
void seats_init(struct http_server *s);
/* For a handler that is about to wait for its peer, until seat_leave(). ERR_BUSY: it must not. */
int seat_take(struct http_request *req) MUST_CHECK;
void seat_leave(struct http_request *req); /* without one: nothing */

/* request.c */
void request_begin(struct http_request *req);  /* `head` is parsed */
void request_rewind(struct http_request *req); /* to be handled again from its start */
void request_reset(struct http_request *req);  /* for the next one */
int body_skip(struct http_request *req); /* what is here: 0 at its end, ERR_AGAIN, or an error */
/* Bytes of the body that the handler waits for and that are not here yet. */
size_t body_missing(const struct http_request *req);
int body_ask(struct http_request *req); /* 100-continue, if the peer waits for it; does not wait */

/* response.c */
void response_reset(struct http_request *req);
/* A whole short answer of the server itself; the connection closes after it. */
void response_refuse(struct http_request *req, int status, const char *text);

/* pump.c */
enum pump { PUMP_DONE, PUMP_FULL, PUMP_TURN, PUMP_COLD, PUMP_BROKEN };
enum pump pump_response(struct http_request *req, bool may_read_disk);

#endif
