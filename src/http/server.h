/* The HTTP/1.1 server. docs/http.md has the two tiers, the states of a connection, every limit and
 * deadline, and what happens to a peer that misbehaves.
 *
 * A handler is plain C that reads from top to bottom. It is first called on a fast worker, where
 * nothing may wait. Any call that would have to wait there answers ERR_AGAIN, having done nothing;
 * the handler then returns ERR_AGAIN at once, and is called again from its start on a thread of the
 * blocking pool, where the same calls wait. A handler that knows it will wait says so first:
 *
 *     if (!http_may_block(req)) return ERR_AGAIN;
 *
 * So a handler must not have effects before its first ERR_AGAIN.
 *
 * A request and its response belong to the thread that runs the handler. Everything reached from it
 * lives until the handler has returned and the response is sent; its arena is reset after that. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "base/arena.h"
#include "base/log.h"
#include "http/wire.h"
#include "os/networks.h"
#include "os/sock.h"
#include "os/stream.h"
#include "os/thread.h"

struct http_server;
struct http_request;

/* 0 when a response was begun (or nothing was: then 204 is sent); ERR_AGAIN as above; another code:
 * the server answers 500, or, when the response has begun, drops the connection. */
typedef int http_handler_fn(struct http_request *req, void *ctx);

struct http_server_options {
    struct sock_addr listen;
    const char *name; /* "s3", "api": in logs and metrics */
    http_handler_fn *handler;
    void *ctx;
    const struct log *log;
    struct tls_context *tls; /* NULL: plain; a reference is taken; replaced by http_server_tls() */
    struct pool *pool;       /* the blocking pool; borrowed; several servers may share it */
    size_t fast_workers;     /* 0: two per core */
    size_t max_connections;  /* 0: 20000 */
    size_t max_per_address;  /* 0: max_connections */
    struct networks proxies; /* proxies, each of which speaks for many clients: the caps per address
                                do not apply to them, nor to unix sockets */
    uint64_t head_timeout_ms;  /* 0: 10 s from the first byte of a head */
    uint64_t idle_timeout_ms;  /* 0: 75 s between requests */
    uint64_t body_min_rate;    /* bytes per second that a peer must send or take, over windows of
                                  rate_window_ms; 0: 1024 */
    uint64_t rate_window_ms;   /* 0: 10 s */
    uint64_t max_body;         /* bytes; 0: the server has no limit; the handler has its own */
    const char *server_header; /* NULL: "weir" */
    /* The path that the log shows for a request, where paths may hold secrets. NULL: the path. */
    struct str (*log_path)(const struct http_head *head);
    /* http_server_stop() calls this once when its deadline has passed and handlers still run. It
     * ends whatever handlers wait for besides their peers, such as upstream storages. May be NULL.
     */
    void (*on_drop)(void *ctx);
    void *drop_ctx;
};

/* Listening when it returns. ERR_IN_USE names the address. */
int http_server_start(struct http_server **out, const struct http_server_options *o,
                      struct err *err) MUST_CHECK;
void http_server_address(struct http_server *s,
                         struct sock_addr *out); /* the real port when 0 was asked */
void http_server_tls(struct http_server *s, struct tls_context *tls); /* for new connections */

/* Stops accepting, closes idle connections, and lets running requests finish (they answer with
 * Connection: close) until the deadline; then it drops the connections that are left. False when
 * handlers still run a second later: they wait for something that on_drop() does not end, and
 * http_server_free() will wait for them. */
bool http_server_stop(struct http_server *s, uint64_t deadline_ns);
void http_server_free(struct http_server *s);

struct http_server_stats {
    uint64_t connections;       /* open now */
    uint64_t accepted, refused; /* refused: over a cap, or no seat was free */
    uint64_t requests;          /* answered */
    uint64_t bad_requests;      /* refused by the parser or a limit */
    uint64_t timeouts;
    uint64_t status[6]; /* [2] = 2xx answered, ... */
    uint64_t bytes_in, bytes_out;
};
void http_server_stats(struct http_server *s, struct http_server_stats *out);

/* --- the request --- */

const struct http_head *http_request_head(struct http_request *req);
struct arena *http_request_arena(struct http_request *req);   /* limit 8 MiB */
const struct log *http_request_log(struct http_request *req); /* carries the request id */
const char *http_request_id(struct http_request *req);
const struct sock_addr *http_request_peer(struct http_request *req);
struct http_server *http_request_server(struct http_request *req); /* that received the request */
bool http_request_is_tls(struct http_request *req);
/* OpenSSL's name, and "TLSv1.3"; empty without TLS. */
const char *http_request_cipher(struct http_request *req);
const char *http_request_tls_version(struct http_request *req);
bool http_may_block(struct http_request *req);
/* The handler says that it has found out who sent the request. Requests of unknown senders get a
 * smaller share of the threads that may wait for peers (docs/http.md, "Seats"). */
void http_request_know(struct http_request *req);

/* The reader of the body; it ends at once when there is no body. The first read that needs bytes
 * which have not arrived sends 100-continue if the peer waits for it. So a handler that refuses
 * before it reads refuses before the peer sends the body. Reads return ERR_CLOSED (truncated),
 * ERR_TIMEOUT (too slow), ERR_TOO_LARGE, ERR_PARSE (bad chunk), ERR_BUSY (no seat to wait in),
 * ERR_AGAIN (fast worker). */
struct reader *http_request_body(struct http_request *req);
/* Called before anything of the body is read. 0: the first `want` bytes of the body have arrived,
 * or all of it, or as much as the buffer holds (at least 16 KiB). ERR_AGAIN: they have not; the
 * handler returns ERR_AGAIN at once, on whichever thread it is, and is called again from its start
 * when they have. No thread waits meanwhile. For a chunked body the answer is always 0. */
int http_await_body(struct http_request *req, size_t want) MUST_CHECK;
/* Declared length, or UINT64_MAX when chunked. */
uint64_t http_request_length(struct http_request *req);
/* Trailer lines ("Name: value\r\n"), complete once the body has ended. */
struct str http_request_trailers(struct http_request *req);
/* Reads the whole of a small body; it lives as long as the request. ERR_TOO_LARGE when it has more
 * than `max` bytes; a handler that returns that code has answered 413. */
int http_request_read_all(struct http_request *req, size_t max, struct str *out,
                          struct err *err) MUST_CHECK;

/* --- waiting for another socket without a thread --- */

/* A handler on a fast worker calls this in place of a response, and then returns 0. The server
 * calls `fn` when `fd` can be read or has ended, or, with in_time false, after `timeout_ms`. `fd`
 * is a plain socket that nobody else waits for; it stays open until then. `fn` runs on a fast
 * worker as a handler does, and may wait for another socket again. When it returns ERR_AGAIN it is
 * called again on the pool; the request's arena and all that `fn` kept stay as they were. When the
 * pool has no thread for it, it is called again at once with in_time false: then it must give up.
 */
typedef int http_resume_fn(struct http_request *req, void *ctx, bool in_time);
void http_await(struct http_request *req, int fd, uint64_t timeout_ms, http_resume_fn *fn,
                void *ctx);

/* For a handler on a fast worker that has to wait: returns ERR_AGAIN, which the handler returns at
 * once. `fn` then continues the request on the pool, with the request's arena as it is, so that no
 * work is done twice. With in_time false the pool has no thread for it, and `fn` must give up. When
 * this is called, neither reading the body nor the response may have begun. */
int http_go_on(struct http_request *req, http_resume_fn *fn, void *ctx) MUST_CHECK;

/* --- the response: status, headers, then one of the body calls --- */

void http_respond(struct http_request *req, int status);
/* Name and value are copied. A field that http_field_is_valid() refuses is a bug (BUG_ON). */
void http_respond_header(struct http_request *req, struct str name, struct str value);
void http_respond_header_u64(struct http_request *req, struct str name, uint64_t value);

/* Exactly one of these ends the response. HEAD, 204 and 304 send no body but the same headers. */
int http_send(struct http_request *req,
              struct str body) MUST_CHECK; /* the body is copied when sending has to wait */
/* Sends a range of a regular file. It never waits for the peer: the server sends the file with
 * sendfile after the handler has returned, so that a slow peer holds no thread. The server owns
 * `fd` from then on and closes it. */
int http_send_file(struct http_request *req, struct file_range range) MUST_CHECK;
/* Sends the bytes of a reader, which is borrowed until this returns. `len` UINT64_MAX: chunked.
 * Waits. ERR_BUSY: no seat was free to wait in, and nothing was sent. */
int http_send_reader(struct http_request *req, struct reader *r, uint64_t len) MUST_CHECK;
/* Sends a chunked body in pieces: begin, write any number of times, end. Waits. */
int http_send_begin(struct http_request *req) MUST_CHECK;
int http_send_write(struct http_request *req, struct str piece) MUST_CHECK;
int http_send_end(struct http_request *req) MUST_CHECK;

/* Bytes of the response's body that were sent or will be, once one of the calls above was made. */
uint64_t http_response_bytes(struct http_request *req);

/* Sends a short text/plain or JSON body. */
int http_send_text(struct http_request *req, int status, struct str type,
                   struct str body) MUST_CHECK;

#endif
