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
    struct tls_context *tls;  /* NULL: plain; a reference is taken; replaced by http_server_tls() */
    struct pool *pool;        /* the blocking pool; borrowed; several servers may share it */
    size_t fast_workers;      /* 0: two per core */
    size_t max_connections;   /* 0: 20000 */
    size_t max_per_address;   /* 0: max_connections */
    struct networks proxies;  /* whose addresses stand for many clients: the caps for one address do
                                 not hold for them, nor for unix sockets */
    uint64_t head_timeout_ms; /* 0: 10 s from the first byte of a head */
    uint64_t idle_timeout_ms; /* 0: 75 s between requests */
    uint64_t body_min_rate;   /* bytes/s both ways, over windows of rate_window_ms; 0: 1024 */
    uint64_t rate_window_ms;  /* 0: 10 s */
    uint64_t max_body;        /* 0: no limit of the server's; the handler has its own */
    const char *server_header; /* NULL: "weir" */
    /* What the log shows as a request's path, where paths may hold secrets. NULL: the path. */
    struct str (*log_path)(const struct http_head *head);
    /* Called once by http_server_stop() when its deadline has passed and handlers still run: ends
     * what they wait for besides their peers. NULL: nothing. */
    void (*on_drop)(void *ctx);
    void *drop_ctx;
};

/* Listening when it returns. ERR_IN_USE names the address. */
int http_server_start(struct http_server **out, const struct http_server_options *o,
                      struct err *err) MUST_CHECK;
void http_server_address(struct http_server *s,
                         struct sock_addr *out); /* the real port when 0 was asked */
void http_server_tls(struct http_server *s, struct tls_context *tls); /* for new connections */

/* Stop accepting, close idle connections, let running requests finish (answering with Connection:
 * close), until the deadline; then drop what is left. False when a second later handlers still run:
 * they wait for something that on_drop() does not end, and http_server_free() waits for them. */
bool http_server_stop(struct http_server *s, uint64_t deadline_ns);
void http_server_free(struct http_server *s);

struct http_server_stats {
    uint64_t connections;       /* open now */
    uint64_t accepted, refused; /* refused: over a cap, or without a seat */
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
struct http_server *http_request_server(struct http_request *req); /* that it came to */
bool http_request_is_tls(struct http_request *req);
/* OpenSSL's name, and "TLSv1.3"; empty without TLS. */
const char *http_request_cipher(struct http_request *req);
const char *http_request_tls_version(struct http_request *req);
bool http_may_block(struct http_request *req);
/* The handler has found out who asks. Those who are not known get a smaller share of the threads
 * that may wait for their peers (docs/http.md, "Seats"). */
void http_request_know(struct http_request *req);

/* The body, to be pulled; ends at once when there is none. The first read that needs bytes not yet
 * here sends 100-continue if the peer waits for it: a handler that refuses before reading refuses
 * before the bytes. Answers ERR_CLOSED (truncated), ERR_TIMEOUT (too slow), ERR_TOO_LARGE,
 * ERR_PARSE (bad chunk), ERR_BUSY (no seat to wait in), ERR_AGAIN (fast worker). */
struct reader *http_request_body(struct http_request *req);
/* Before anything of the body is read: waits without a thread until its first `want` bytes are
 * here, or all of it, or as much as the buffer holds (at least 16 KiB). 0: they are. ERR_AGAIN: the
 * handler returns it at once, on whichever thread, and is called again from its start when they
 * are. A body that is chunked is not waited for. */
int http_await_body(struct http_request *req, size_t want) MUST_CHECK;
/* Declared length, or UINT64_MAX when chunked. */
uint64_t http_request_length(struct http_request *req);
/* Trailer lines ("Name: value\r\n"), complete once the body has ended. */
struct str http_request_trailers(struct http_request *req);
/* Whole body, for small bodies; lives as long as the request. Over `max`: ERR_TOO_LARGE, and a
 * handler that returns it has answered 413. */
int http_request_read_all(struct http_request *req, size_t max, struct str *out,
                          struct err *err) MUST_CHECK;

/* --- waiting for another socket without a thread --- */

/* In place of a response, by a handler on a fast worker, which then returns 0: `fn` is called when
 * `fd` can be read or has ended, or (in_time false) after `timeout_ms`. `fd` is a plain socket that
 * nobody else waits for, and stays open until then. fn is called as a handler is, on a fast worker;
 * it may wait for another socket again. When it answers ERR_AGAIN it is called again on the pool,
 * but what it kept, and the request's arena, stay as they were; when there is no thread for that
 * either, again at once with in_time false: then it must give up. */
typedef int http_resume_fn(struct http_request *req, void *ctx, bool in_time);
void http_await(struct http_request *req, int fd, uint64_t timeout_ms, http_resume_fn *fn,
                void *ctx);

/* For a handler on a fast worker that has to wait: returns ERR_AGAIN, which the handler returns at
 * once. `fn` goes on in its place on the pool, with the request's arena as it is, so that nothing
 * is done twice. With in_time false there is no thread for it: then `fn` must give up. Neither the
 * body nor the response has been begun. */
int http_go_on(struct http_request *req, http_resume_fn *fn, void *ctx) MUST_CHECK;

/* --- the response: status, headers, then one of the body calls --- */

void http_respond(struct http_request *req, int status);
/* Name and value are copied. What http_field_is_valid() refuses is a bug. */
void http_respond_header(struct http_request *req, struct str name, struct str value);
void http_respond_header_u64(struct http_request *req, struct str name, uint64_t value);

/* Exactly one of these ends the response. HEAD, 204 and 304 send no body but the same headers. */
int http_send(struct http_request *req, struct str body) MUST_CHECK; /* copied when it must wait */
/* A range of a regular file. Never waits for the peer: the server pumps it with sendfile while the
 * handler has long returned, and a slow reader holds no thread. Takes `fd` (closed when sent). */
int http_send_file(struct http_request *req, struct file_range range) MUST_CHECK;
/* From a reader (borrowed; until this returns). `len` UINT64_MAX: chunked. Waits. ERR_BUSY: nothing
 * was sent, there is no seat to wait in. */
int http_send_reader(struct http_request *req, struct reader *r, uint64_t len) MUST_CHECK;
/* Piecewise, chunked: begin, write any number of times, end. Waits. */
int http_send_begin(struct http_request *req) MUST_CHECK;
int http_send_write(struct http_request *req, struct str piece) MUST_CHECK;
int http_send_end(struct http_request *req) MUST_CHECK;

/* Of the response's body, once one of the above was called: what was sent or will be. */
uint64_t http_response_bytes(struct http_request *req);

/* Short answer with a text/plain or JSON body. */
int http_send_text(struct http_request *req, int status, struct str type,
                   struct str body) MUST_CHECK;

#endif
