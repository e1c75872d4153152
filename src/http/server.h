/* The HTTP/1.1 server. docs/http.md describes its two kinds of threads, the states of a connection,
 * every limit and deadline, and what happens to a peer that misbehaves.
 *
 * A handler is a plain C function without callbacks or states. It is first called on a fast worker,
 * where nothing may wait. A call that would have to wait there does nothing and returns ERR_AGAIN.
 * The handler then returns ERR_AGAIN at once, and is called again from its start on a thread of the
 * blocking pool, where the same calls wait. A handler that knows that it will have to wait begins
 * with:
 *
 *     if (!http_may_block(req)) return ERR_AGAIN;
 *
 * So a handler must not change anything before its first ERR_AGAIN.
 *
 * A request and its response belong to the thread that runs the handler. All that can be reached
 * from a request lives until the handler has returned and the response is sent; then the request's
 * arena is reset. */
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

/* A handler that has succeeded returns 0; if it has made no response, 204 is sent. ERR_AGAIN is
 * described above. After any other code the server answers with an error status, usually 500. If a
 * part of a response was sent already, the server drops the connection instead. */
typedef int http_handler_fn(struct http_request *req, void *ctx);

struct http_server_options {
    struct sock_addr listen;
    const char *name; /* in logs and metrics: "s3", "api" */
    http_handler_fn *handler;
    void *ctx;
    const struct log *log;
    /* NULL: no TLS. The server takes a reference of its own. http_server_tls() replaces the
     * context. */
    struct tls_context *tls;
    struct pool *pool;      /* the blocking pool; borrowed; several servers may share it */
    size_t fast_workers;    /* 0: two per core */
    size_t max_connections; /* 0: 20000 */
    size_t max_per_address; /* 0: max_connections */
    /* Addresses of proxies, each of which sends requests of many clients. The limits per address do
     * not apply to them, nor to unix sockets. */
    struct networks proxies;
    uint64_t head_timeout_ms;  /* from the first byte of a head to its end; 0: 10 s */
    uint64_t idle_timeout_ms;  /* between two requests; 0: 75 s */
    uint64_t body_min_rate;    /* bytes per second that a peer must send or receive, over windows of
                                  rate_window_ms; 0: 1024 */
    uint64_t rate_window_ms;   /* the window of body_min_rate; 0: 10 s */
    uint64_t max_body;         /* bytes; 0: the server has no limit, but the handler may */
    const char *server_header; /* value of the Server header; NULL: "weir" */
    /* Returns the path that the log shows for a request, for servers whose paths may contain
     * secrets. NULL: the path is logged as it is. */
    struct str (*log_path)(const struct http_head *head);
    /* http_server_stop() calls this once when its deadline has passed and handlers still run. The
     * function makes handlers stop waiting for anything other than their peers, such as remote
     * storages. The function pointer may be NULL. */
    void (*on_drop)(void *ctx);
    void *drop_ctx;
};

/* Starts a server, which is listening when this returns. The text of ERR_IN_USE names the address.
 */
int http_server_start(struct http_server **out, const struct http_server_options *o,
                      struct err *err) MUST_CHECK;
void http_server_address(struct http_server *s,
                         /* The real port if the server was started with port 0. */
                         struct sock_addr *out);
/* Sets the TLS context for new connections. */
void http_server_tls(struct http_server *s, struct tls_context *tls);

/* Stops accepting, closes idle connections, and lets running requests finish until the deadline;
 * they answer with Connection: close. At the deadline it drops the connections that are left.
 * Returns false when handlers still run a second later: they wait for something that on_drop() does
 * not end, and http_server_free() will wait for them. */
bool http_server_stop(struct http_server *s, uint64_t deadline_ns);
void http_server_free(struct http_server *s);

struct http_server_stats {
    uint64_t connections;       /* open now */
    uint64_t accepted, refused; /* refused: over a limit, or no seat (docs/http.md) was free */
    uint64_t requests;          /* requests answered */
    uint64_t bad_requests;      /* refused by the parser or a limit */
    uint64_t timeouts;
    uint64_t status[6]; /* responses by class: [2] counts 2xx, ... */
    uint64_t bytes_in, bytes_out;
};
void http_server_stats(struct http_server *s, struct http_server_stats *out);

/* --- the request --- */

const struct http_head *http_request_head(struct http_request *req);
struct arena *http_request_arena(struct http_request *req);   /* its limit is 8 MiB */
const struct log *http_request_log(struct http_request *req); /* its lines have the request id */
const char *http_request_id(struct http_request *req);
const struct sock_addr *http_request_peer(struct http_request *req);
/* The server that received the request. */
struct http_server *http_request_server(struct http_request *req);
bool http_request_is_tls(struct http_request *req);
/* These functions return OpenSSL's name of the cipher and the TLS version, such as "TLSv1.3"; ""
 * without TLS. */
const char *http_request_cipher(struct http_request *req);
const char *http_request_tls_version(struct http_request *req);
bool http_may_block(struct http_request *req);
/* A handler calls this when it knows for certain who has sent the request. Requests of unknown
 * senders get a smaller share of the threads that may wait for peers (docs/http.md, "Seats"). */
void http_request_know(struct http_request *req);

/* Returns the reader of the body, which ends at once when there is no body. Reads return ERR_CLOSED
 * (the body was cut short), ERR_TIMEOUT (the peer is too slow), ERR_TOO_LARGE, ERR_PARSE (a
 * malformed chunk), ERR_BUSY (no seat is free to wait in) or ERR_AGAIN (the read would have to wait
 * on a fast worker).
 *
 * If the peer waits for 100-continue, the first read that needs bytes which have not arrived sends
 * it. So when a handler refuses a request before it reads, the peer does not send the body. */
struct reader *http_request_body(struct http_request *req);
/* Lets a handler wait for the beginning of the body without holding a thread. Call this before
 * anything of the body is read.
 *
 * 0: the first `want` bytes of the body have arrived, or the whole body, or as much of it as fits
 * into the buffer (at least 16 KiB). For a chunked body the result is always 0.
 *
 * ERR_AGAIN: these bytes have not arrived. The handler must return ERR_AGAIN at once, whatever
 * thread it runs on. It is called again from its start when the bytes have arrived. */
int http_await_body(struct http_request *req, size_t want) MUST_CHECK;
/* Returns the length of the body in bytes as the request declares it, or UINT64_MAX for a chunked
 * body. */
uint64_t http_request_length(struct http_request *req);
/* Returns the trailer lines ("Name: value\r\n"), which are complete once the body was read to its
 * end. */
struct str http_request_trailers(struct http_request *req);
/* Reads the whole of a small body into memory that lives as long as the request. ERR_TOO_LARGE: the
 * body has more than `max` bytes. When the handler returns that code, the server answers 413. */
int http_request_read_all(struct http_request *req, size_t max, struct str *out,
                          struct err *err) MUST_CHECK;

/* --- waiting for another socket without a thread --- */

/* Makes a handler wait for the socket `fd` without holding a thread. A handler on a fast worker
 * calls http_await() instead of making a response, and then returns 0. The server calls `fn` when
 * `fd` can be read or has ended, or, with in_time false, after `timeout_ms`.
 * - `fd` is a plain socket for which no other request waits. It must stay open until `fn` is
 *   called.
 * - `fn` runs on a fast worker as a handler does, and may call http_await() again.
 * - If `fn` returns ERR_AGAIN, it is called again on the pool; the request's arena and all that
 *   `fn` stored stay unchanged.
 * - If the pool has no thread for it, `fn` is called again at once with in_time false, and must
 *   give up. */
typedef int http_resume_fn(struct http_request *req, void *ctx, bool in_time);
void http_await(struct http_request *req, int fd, uint64_t timeout_ms, http_resume_fn *fn,
                void *ctx);

/* Lets a handler on a fast worker continue on the pool, where it may wait. Returns ERR_AGAIN, which
 * the handler must return at once. The pool then calls `fn`, with the request's arena unchanged, so
 * that no work is done twice. If in_time is false, the pool has no thread, and `fn` must give up.
 * The caller must not have begun to read the body or to respond. */
int http_go_on(struct http_request *req, http_resume_fn *fn, void *ctx) MUST_CHECK;

/* --- the response: status, headers, then one of the body calls --- */

void http_respond(struct http_request *req, int status);
/* Adds a header; name and value are copied. A header that http_field_is_valid() refuses ends the
 * process (BUG_ON). */
void http_respond_header(struct http_request *req, struct str name, struct str value);
void http_respond_header_u64(struct http_request *req, struct str name, uint64_t value);

/* A handler ends its response with exactly one of the functions below. For HEAD, 204 and 304 they
 * send the same headers, but no body. */
/* Sends a response whose body is in memory. A body of up to 1 MiB is copied when the socket does
 * not accept all of it at once. With a larger body the call may wait for the peer. */
int http_send(struct http_request *req, struct str body) MUST_CHECK;
/* Sends a range of a regular file. The call never waits for the peer: the server sends the file
 * with sendfile after the handler has returned, so that a slow peer holds no thread. The server
 * owns range.fd from this call on and closes it. */
int http_send_file(struct http_request *req, struct file_range range) MUST_CHECK;
/* Sends `len` bytes of a reader, which is borrowed until this returns. With `len` UINT64_MAX it
 * sends all bytes in a chunked body. The call may wait for the peer. ERR_BUSY: no seat was free to
 * wait in, and nothing was sent. */
int http_send_reader(struct http_request *req, struct reader *r, uint64_t len) MUST_CHECK;
/* These three functions send a chunked body in pieces: begin, write any number of times, end. They
 * may wait for the peer. */
int http_send_begin(struct http_request *req) MUST_CHECK;
int http_send_write(struct http_request *req, struct str piece) MUST_CHECK;
int http_send_end(struct http_request *req) MUST_CHECK;

/* Returns how many bytes of the response's body were or will be sent. Call it after one of the
 * calls above. */
uint64_t http_response_bytes(struct http_request *req);

/* Sends a response with this status, this Content-Type (such as text/plain) and a short body. */
int http_send_text(struct http_request *req, int status, struct str type,
                   struct str body) MUST_CHECK;

#endif
