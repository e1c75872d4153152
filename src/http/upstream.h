/* Upstream: pooled HTTP/1.1 connections to storages, bodies streaming both ways.
 *
 * One struct upstream per endpoint (scheme, host, port); shared by all threads. An exchange belongs
 * to one thread. Blocking: for the blocking pool and workers only. SIGPIPE must be ignored or
 * blocked in the calling thread: sendfile and splice cannot be told not to raise it.
 * docs/upstream.md has the rules of reuse, retry and health. */
#ifndef HTTP_UPSTREAM_H
#define HTTP_UPSTREAM_H

#include "base/arena.h"
#include "base/log.h"
#include "http/wire.h"
#include "os/stream.h"

struct upstream;
struct exchange; /* one request and its response */

struct upstream_options {
    struct str url;              /* http://host[:port] or https://...; path ignored */
    size_t max_connections;      /* 0: 256; past it a caller waits up to connect_timeout_ms, then
                                    ERR_BUSY */
    size_t max_idle;             /* 0: 64, most recently used first */
    uint64_t idle_timeout_ms;    /* 0: 30 s */
    uint64_t connect_timeout_ms; /* 0: 3 s, name look-up and TLS included */
    uint64_t timeout_ms;         /* 0: 30 s without progress */
    uint64_t head_timeout_ms;    /* 0: 60 s from request sent to response head */
    const char *ca_file;
    bool tls_insecure;
    const struct log *log;
};

int upstream_new(struct upstream **out, const struct upstream_options *o,
                 struct err *err) MUST_CHECK;
void upstream_free(struct upstream *u); /* every exchange must be closed */

struct upstream_request {
    struct str method, target;         /* target: encoded path and query */
    const struct http_header *headers; /* as they are to be sent, without Content-Length,
                                          Transfer-Encoding, Connection, and Host unless given */
    size_t header_count;
    struct reader *body;  /* NULL: none */
    uint64_t body_len;    /* UINT64_MAX: chunked */
    bool expect_continue; /* wait (1 s) for 100 before sending the body */
    bool idempotent;      /* may be sent twice: retried once on a stale connection even
                             after the head was sent, if the body was not yet read */
    /* Called when there is a connection, before anything is sent: an error that it returns is the
     * result of upstream_send(). May be NULL. upstream_send_now() does not call it. */
    int (*may)(void *ctx, struct err *err);
    void *may_ctx;
};

/* Sends and reads the response head. Any status is success here. ERR_UNAVAILABLE: never reached the
 * peer (or it is marked down); ERR_TIMEOUT; ERR_CLOSED: broke off, the peer may have acted;
 * ERR_PEER: answered nonsense. An error of the body's reader is returned as it is. */
int upstream_send(struct exchange **out, struct upstream *u, const struct upstream_request *r,
                  struct err *err) MUST_CHECK;

/* For callers that must not wait: sends a request without a body over an idle plain connection.
 * ERR_AGAIN: there is no such connection, or the request could not be sent whole; the peer cannot
 * have acted on it, and the caller may use upstream_send(). Until exchange_poll() has returned 0,
 * only the next four functions may be called with the exchange. */
int upstream_send_now(struct exchange **out, struct upstream *u, const struct upstream_request *r,
                      struct err *err) MUST_CHECK;
int exchange_fd(const struct exchange *e); /* readable when exchange_poll() should be called */
uint64_t
exchange_head_ms(const struct exchange *e); /* how long the head may take: head_timeout_ms */
/* Reads the bytes that have arrived. 0: the head is complete. ERR_AGAIN: not yet. ERR_CLOSED,
 * ERR_PEER. */
int exchange_poll(struct exchange *e, struct err *err) MUST_CHECK;
/* After exchange_poll() failed: whether the peer had just closed its idle connection, so that not a
 * byte came. */
bool exchange_is_stale(const struct exchange *e);

const struct http_head *exchange_head(struct exchange *e);
/* Whether the peer answered before all of the request was sent. */
bool exchange_is_early(const struct exchange *e);
/* The body; as_socket() works for plain connections with a known length. */
struct reader *exchange_body(struct exchange *e);
/* Gives the connection back to the pool when the body was read to its end, else closes it. A short
 * rest of the body is read and dropped first. NULL is fine. */
void exchange_close(struct exchange *e);

/* Ends all exchanges, from any thread: exchanges under way fail with ERR_CLOSED; callers that
 * connect or wait for a connection, and all later callers, get ERR_UNAVAILABLE at once. It is
 * called when the process stops: afterwards exchanges can only be closed, and the upstream freed.
 */
void upstream_abort(struct upstream *u);

/* Health: after `connect` failures in a row the upstream is down: upstream_send fails at once with
 * ERR_UNAVAILABLE, but one caller per second is let through as a probe. */
bool upstream_is_up(struct upstream *u);
/* Tries to connect when the upstream is down, and keeps the connection for the next exchange. A
 * thread calls this, so that no request has to wait to find out that the peer is back. */
void upstream_probe(struct upstream *u);

/* Closes connections that were idle for too long. Each request does this too; a thread that calls
 * it keeps an upstream without requests from holding descriptors. */
void upstream_sweep(struct upstream *u);

struct upstream_stats {
    uint64_t requests, failures, connects, reused, retries;
    size_t open, idle;
};
void upstream_stats(struct upstream *u, struct upstream_stats *out);

/* Move `len` bytes from a reader to a connected plain socket (non-blocking), by splice or sendfile
 * when the reader allows, else by copying. *sent counts what went out, also on failure.
 * ERR_TIMEOUT: one side made no progress for so long; ERR_CLOSED: the socket is gone, or the reader
 * ended early; other errors are the reader's. */
int stream_to_socket(struct reader *from, int fd, uint64_t len, uint64_t progress_timeout_ms,
                     uint64_t *sent, struct err *err) MUST_CHECK;

#endif
