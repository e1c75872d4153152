/* Declarations that the files of the server share. docs/http.md says which thread may use which
 * part of a connection; a number such as [1] is an invariant of that page. */
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
    READ_BUFFER = HTTP_MAX_HEAD + 16 * 1024, /* bytes for a head and the beginning of the body */
    STRIPES = 16,
    EVENTS = 8,           /* events that a worker takes in one epoll_wait */
    TURN_REQUESTS = 32,   /* requests served on one connection before others get their turn */
    KEEP_OUT = 64 * 1024, /* an output buffer above this size is not kept for the next request */
    /* Most unused requests that the server keeps, in addition to one per fast worker. */
    SPARE_REQUESTS = 64,
    /* If a handler has not read a body, up to this many bytes of it are read and dropped, so that
     * the connection can stay open. */
    SKIP_MAX = 64 * 1024,
    INLINE_MAX = 1 << 20,   /* a body up to this size is copied when the socket is full */
    COPY_PIECE = 64 * 1024, /* a body that must pass through memory is copied in such pieces */
    UNSENT_MAX = 512 * 1024 /* limit of the unsent bytes that the kernel holds for a peer */
};

/* What a connection waits for while no thread owns it. */
enum phase {
    PHASE_RUNNING, /* nothing: a thread or the pool's queue owns the connection [1] */
    PHASE_HELLO,   /* the first bytes of a TLS handshake */
    PHASE_IDLE,    /* the next request */
    PHASE_HEAD,    /* the rest of a head */
    PHASE_READY,   /* its turn: the next request has arrived already */
    PHASE_BODY,    /* the first bytes of a body, before the handler is called again */
    PHASE_SKIP,    /* the rest of a body that the handler did not want */
    PHASE_SENDING, /* room in the socket for the rest of a response */
    PHASE_LINGER,  /* the peer's close, before the server closes */
    PHASE_AWAIT,   /* a socket that the handler waits for; epoll does not watch the connection */
    PHASE_COUNT
};

/* The jobs that the blocking pool does for a connection. */
enum work { WORK_HANDSHAKE, WORK_HANDLER, WORK_RESUME, WORK_PUMP };

/* Whether the sender of a request is known. Strangers get fewer seats (docs/http.md, "Seats"). */
enum standing { STRANGER, KNOWN, STANDINGS };

/* One peer address, for the limits on connections and seats of one address. */
struct address {
    unsigned char key[16];
    size_t count; /* connections of the address; when the last one is closed, the struct is freed */
    _Atomic(size_t) seats[STANDINGS];
};

/* A connection. Only one thread at a time, its owner, may use it [1]. Other threads may use `due`,
 * and the sweeper also reads `fd`, `pushed` and `window_mark`, under the stripe's lock [2]. */
struct conn {
    struct http_server *server;
    /* The deadline in ms of the server's now_ms, shifted left by 8, with DUE_EXPIRED and the phase
     * in the low bits [3]. */
    _Atomic(uint64_t) due;
    int fd;
    bool registered; /* `fd` is in the epoll set */
    bool broken;     /* a send failed: nothing more can be sent to the peer */
    enum work work;
    struct list node;         /* in the list of its stripe (struct conn_stripe) */
    struct http_request *req; /* the request and its buffers; NULL while the connection is idle */
    struct tls *tls;          /* NULL: no TLS, or no handshake yet */
    char *saved; /* the bytes of an incomplete head, while the connection has no request */
    size_t saved_len, seen;
    /* When the phase ends, in ms of the server's now_ms: the deadline of HELLO, HEAD, BODY, SKIP
     * and LINGER, or the end of the window of SENDING. 0: not set. */
    uint64_t phase_end;
    uint64_t received;             /* bytes received */
    uint64_t linger_left;          /* bytes that may still be read and dropped before closing */
    _Atomic(uint64_t) pushed;      /* bytes given to the socket */
    _Atomic(uint64_t) window_mark; /* bytes acknowledged when the send window began */
    struct address *address;       /* NULL: no limits per address apply, as for a proxy */
    struct pool_job job;
    union {
        struct sockaddr any;
        struct sockaddr_in in4;
        struct sockaddr_in6 in6;
    } peer;
};

enum { DUE_PHASE = 0x0f, DUE_EXPIRED = 0x80, DUE_SHIFT = 8 };

/* The body of a request while it is received: first the bytes in the buffer from `at` on, then
 * bytes from the socket. */
struct body {
    struct reader reader;
    size_t at;     /* offset of the next byte in the buffer */
    uint64_t left; /* bytes of a body with Content-Length that were not read yet */
    uint64_t taken;
    struct http_chunked chunked;
    struct buf trailers;
    bool done;
    bool wants_continue; /* the peer waits for 100 before it sends the body */
    int failed;          /* the first error; later reads return it again */
};

enum stage {
    STAGE_NONE,
    STAGE_HEAD,   /* the handler is setting status and headers */
    STAGE_STREAM, /* the head was sent, pieces of the body follow */
    STAGE_DONE    /* the handler has ended the response; `out` and `file` may still be unsent */
};

/* Measures the pace of a peer: how long the server waited for it in this window, and how many bytes
 * moved. */
struct pace {
    bool running;
    uint64_t waited_ns;
    uint64_t mark; /* bytes that had moved when the window began */
};

/* The socket that a handler waits for (PHASE_AWAIT), and the function that then continues the
 * request. */
struct await {
    http_resume_fn *fn; /* NULL: the handler does not wait */
    void *ctx;
    int fd;
    uint64_t timeout_ms;
    bool in_time;
};

struct http_request {
    struct conn *conn;
    struct list node; /* in the list of unused requests */
    struct arena arena;
    struct body body;
    struct pace in_pace, out_pace;
    struct await await;
    size_t await_body; /* bytes of the body that the handler waits for; 0: it does not wait */
    /* Whether the sender is known; `seat`: that value when the request took its seat. */
    enum standing standing, seat;
    bool seated;
    bool may_block;
    bool close; /* close the connection after this response */
    /* With `close`: shut down only our direction, then wait until the peer has closed its own,
     * because the peer may still be sending. */
    bool linger;
    bool no_body;  /* the response has no body, as for HEAD, 204 and 304 */
    bool framed;   /* the response is chunked */
    bool own_date; /* the handler has set the Date header */
    bool own_length;
    bool streamed; /* the head was sent before the body was complete */
    enum stage stage;
    int status;
    uint64_t started_ns; /* when the request began; 0 unless requests are logged */
    uint64_t sent;       /* body bytes sent */
    struct buf out;      /* from out_at on: bytes of head and body that are not sent yet */
    size_t out_at;
    struct file_range file; /* sent after `out`; fd -1: no file */
    /* The file is copied through `out` instead of sendfile, because it is small or TLS is used. */
    bool copy_file;
    struct sock_addr peer; /* peer's address; its len is 0 until a handler asks for it */
    struct log log;        /* valid when log_ready */
    bool log_ready;
    char id[32]; /* empty until the id is first needed */
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
    struct mutex lock; /* class "http.stripe"; guards the list */
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
    /* Returns the path for the log; NULL: the path is logged as it is. */
    struct str (*log_path)(const struct http_head *head);
    void (*on_drop)(void *ctx);
    void *drop_ctx;
    size_t max_connections, max_per_address;
    struct networks proxies;                /* the limits per address do not apply to these */
    size_t seats_of_address[STANDINGS];     /* the most seats for one address */
    size_t seats_of_all[STANDINGS];         /* the most seats for all addresses together */
    _Atomic(size_t) seats_taken[STANDINGS]; /* seats taken by requests of this server */
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
    struct counters *counters; /* one for each worker, and one for all other threads */

    _Atomic(uint64_t) now_ms; /* clock_mono_ms() at the sweeper's last tick */
    _Atomic(int64_t) wall_ms; /* wall clock for the Date header */
    _Atomic(size_t) connections;
    _Atomic(bool) stopping; /* no new requests are served, and responses close the connection */
    _Atomic(bool) dropping; /* the deadline of http_server_stop() has passed */
    /* There were no free descriptors, so the sweeper tries to accept again. */
    _Atomic(bool) accept_stalled;

    struct mutex lock;   /* class "http.server"; guards all members below */
    struct cond changed; /* signalled when the last connection was closed */
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
/* Returns an empty request, or NULL when there is no memory. */
struct http_request *request_take(struct http_server *s);
void request_give(struct http_server *s, struct http_request *req);
void request_free(struct http_request *req);
bool server_stopping(struct http_server *s);

/* accept.c */
void accept_some(struct http_server *s);
void conn_await_sweep(struct conn *c); /* waits until the sweeper no longer uses the connection */
/* Removes `c` from its stripe and from the count of its address. */
void conn_forget(struct conn *c);
void addresses_release(struct http_server *s);

/* conn.c */
void conn_on_event(struct conn *c);
void conn_park(struct conn *c, enum phase phase, uint32_t events);
void conn_sweep(struct conn *c, uint64_t now_ms);  /* call it under the stripe's lock */
void conn_hang_up(struct conn *c, bool only_idle); /* call it under the stripe's lock */

/* io.c: receives and sends bytes, plain or over TLS. Functions `..._now` never wait and return
 * ERR_AGAIN instead. The other functions return ERR_CLOSED or ERR_TIMEOUT. */
int conn_recv_now(struct conn *c, void *to, size_t len, size_t *got);
int conn_send_now(struct conn *c, const struct iovec *parts, int n, bool more, size_t *sent);
int conn_send_all(struct http_request *req, struct str bytes, bool more);
/* Waits for the peer until the socket is ready for `events`. The time counts against the peer's
 * minimum rate. */
int conn_wait(struct http_request *req, short events);
uint64_t conn_acknowledged(struct conn *c);
void conn_pushed(struct conn *c, size_t n);

/* seat.c */
void seats_init(struct http_server *s);
/* Takes a seat, which a request needs before its handler waits for the peer. ERR_BUSY: no seat is
 * free, and the handler must not wait. */
int seat_take(struct http_request *req) MUST_CHECK;
void seat_leave(struct http_request *req); /* does nothing for a request without a seat */

/* request.c */
void request_begin(struct http_request *req); /* call it when `head` is parsed */
/* Sets the request back to its start, so that its handler can be called again. */
void request_rewind(struct http_request *req);
void request_reset(struct http_request *req); /* makes `req` ready for the next request */
/* Drops the bytes of the body that have arrived. 0: the body has ended. ERR_AGAIN: further bytes of
 * the body have not arrived yet. */
int body_skip(struct http_request *req);
/* Returns how many of the first `await_body` bytes of the body, for which the handler waits, have
 * not arrived yet. */
size_t body_missing(const struct http_request *req);
/* Sends 100-continue if the peer waits for it. Never waits itself. */
int body_ask(struct http_request *req);

/* response.c */
void response_reset(struct http_request *req);
/* Makes a short response with an error status, in place of the handler's response. The connection
 * is closed after this response. */
void response_refuse(struct http_request *req, int status, const char *text);

/* pump.c: sends as much of the rest of a response as it can without waiting for the peer.
 * PUMP_FULL: the socket is full. PUMP_TURN: bytes are left, but it is the turn of other
 * connections. PUMP_COLD: the next bytes of the file are not in memory, and may_read_disk is false.
 * PUMP_BROKEN: the response cannot be completed. */
enum pump { PUMP_DONE, PUMP_FULL, PUMP_TURN, PUMP_COLD, PUMP_BROKEN };
enum pump pump_response(struct http_request *req, bool may_read_disk);

#endif
