/* Upstream: pooled HTTP/1.1 connections to remote storages. An *exchange* is one request and its
 * response; their bodies are streamed. There is one struct upstream per endpoint (scheme, host,
 * port), which all threads share. An exchange belongs to one thread. Calls block, so only the
 * blocking pool and background workers may make them. SIGPIPE must be ignored or blocked in the
 * calling thread, because sendfile and splice would raise it. docs/upstream.md has the rules of
 * reuse, retry and health. */
#ifndef HTTP_UPSTREAM_H
#define HTTP_UPSTREAM_H

#include "base/arena.h"
#include "base/log.h"
#include "http/wire.h"
#include "os/stream.h"

struct upstream;
struct exchange; /* one request and its response */

struct upstream_options {
    struct str url; /* http://host[:port] or https://host[:port]; a path is ignored */
    /* 0: 256. When all connections are in use, a caller waits up to connect_timeout_ms, then gets
     * ERR_BUSY. */
    size_t max_connections;
    size_t max_idle;             /* limit of idle connections; 0: 64 */
    uint64_t idle_timeout_ms;    /* after this time an idle connection is closed; 0: 30 s */
    uint64_t connect_timeout_ms; /* for name look-up, connect and TLS together; 0: 3 s */
    uint64_t timeout_ms;         /* the longest time without progress; 0: 30 s */
    uint64_t head_timeout_ms;    /* from the end of the request to the response's head; 0: 60 s */
    const char *ca_file;
    bool tls_insecure;
    const struct log *log;
};

int upstream_new(struct upstream **out, const struct upstream_options *o,
                 struct err *err) MUST_CHECK;
void upstream_free(struct upstream *u); /* close every exchange first */

struct upstream_request {
    struct str method, target; /* target: encoded path and query */
    /* These headers are sent as they are. Content-Length, Transfer-Encoding, Connection and Expect
     * are refused (ERR_INVALID). Host is added if it is not given. */
    const struct http_header *headers;
    size_t header_count;
    struct reader *body;  /* NULL: no body */
    uint64_t body_len;    /* bytes; UINT64_MAX: chunked */
    bool expect_continue; /* wait up to 1 s for 100-continue before sending the body */
    /* The request does no harm if it reaches the peer twice. So if the peer has closed a reused
     * connection, the request is sent again on a new connection, even if the head was sent already.
     * It is not sent again if bytes of the body were read that were not kept. */
    bool idempotent;
    /* upstream_send() calls this function after it got a connection and before it sends anything.
     * If the function returns an error, upstream_send() returns it. The function pointer may be
     * NULL. upstream_send_now() does not call the function. */
    int (*may)(void *ctx, struct err *err);
    void *may_ctx;
};

/* Sends a request and reads the response's head. The call succeeds whatever the HTTP status is.
 * ERR_UNAVAILABLE: the request never reached the peer, or the peer is marked down. ERR_BUSY: all
 * connections are in use, or weir has no descriptor. ERR_TIMEOUT: the exchange took too long.
 * ERR_CLOSED: the connection broke, and the peer may have acted on the request. ERR_PEER: the
 * response is malformed. An error of the body's reader is returned as it is. */
int upstream_send(struct exchange **out, struct upstream *u, const struct upstream_request *r,
                  struct err *err) MUST_CHECK;

/* Sends a request without a body over an idle plain connection, and never waits. ERR_AGAIN: there
 * is no such connection, or the request could not be sent whole. Then the peer cannot have acted on
 * the request, and the caller may use upstream_send(). Until exchange_poll() has returned 0, only
 * exchange_close() and the next four functions may be called with the exchange. */
int upstream_send_now(struct exchange **out, struct upstream *u, const struct upstream_request *r,
                      struct err *err) MUST_CHECK;
/* Returns the socket of the exchange. Call exchange_poll() when the socket is readable. */
int exchange_fd(const struct exchange *e);
/* Returns the longest time to wait for the response's head, in ms. */
uint64_t exchange_head_ms(const struct exchange *e);
/* Reads the bytes that have arrived, without waiting. 0: the response's head is complete.
 * ERR_AGAIN: the head is not complete yet. ERR_CLOSED: the peer closed. ERR_PEER: the response is
 * malformed. */
int exchange_poll(struct exchange *e, struct err *err) MUST_CHECK;
/* Call this after exchange_poll() has failed. Returns whether the connection was a reused one on
 * which no byte of a response arrived. Then the peer had probably closed it while it was idle. */
bool exchange_is_stale(const struct exchange *e);

const struct http_head *exchange_head(struct exchange *e);
/* Whether the peer answered before the whole request was sent. */
bool exchange_is_early(const struct exchange *e);
/* Returns the reader of the response's body. Its as_socket() works on plain connections when the
 * length of the body is known. */
struct reader *exchange_body(struct exchange *e);
/* Closes an exchange. A short rest of the body is first read and dropped. The connection goes back
 * to the pool when the body was read to its end, else it is closed. `e` may be NULL. */
void exchange_close(struct exchange *e);

/* Ends all exchanges when the process stops. Any thread may call it. Exchanges that run fail with
 * ERR_CLOSED. Callers that connect or wait for a connection, and all later callers, get
 * ERR_UNAVAILABLE at once. Afterwards exchanges can only be closed, and the upstream freed. */
void upstream_abort(struct upstream *u);

/* Whether the upstream is up. After three failed connects in a row it is down. Then upstream_send()
 * fails at once with ERR_UNAVAILABLE, except that one caller per second may try to connect. */
bool upstream_is_up(struct upstream *u);
/* When the upstream is down, tries to connect, and keeps the connection for the next exchange. A
 * background thread calls this. So the background thread, and not a request, waits while the peer
 * may still be down. */
void upstream_probe(struct upstream *u);

/* Closes connections that were idle for too long. Each request does this too. A background thread
 * calls this function, so that an upstream without requests does not hold descriptors. */
void upstream_sweep(struct upstream *u);

struct upstream_stats {
    uint64_t requests, failures, connects, reused, retries;
    size_t open, idle;
};
void upstream_stats(struct upstream *u, struct upstream_stats *out);

/* Moves `len` bytes from a reader to a connected, non-blocking plain socket: by splice or sendfile
 * when the reader allows it, else by copying. *sent counts the bytes sent, also on failure.
 * ERR_TIMEOUT: one side made no progress for progress_timeout_ms. ERR_CLOSED: the peer closed the
 * socket, or the reader ended early. Other errors are the reader's. */
int stream_to_socket(struct reader *from, int fd, uint64_t len, uint64_t progress_timeout_ms,
                     uint64_t *sent, struct err *err) MUST_CHECK;

#endif
