/* The HTTP client for peers that are not storages, such as forges and webhooks. It uses libcurl,
 * which supports proxies and HTTP/2. Calls block, and any thread may make them. client_call()
 * returns a whole answer; client_open() returns the head of an answer and a reader of its body.
 * docs/upstream.md has the rules of retries and redirects. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "http/wire.h"
#include "os/sock.h"
#include "os/stream.h"

struct client; /* shared by all threads; keeps libcurl handles for reuse */

struct client_options {
    const char *ca_file;
    /* Path of the unix socket to connect to, whatever host the URL names. NULL: connect to the
     * host. */
    const char *unix_path;
    bool tls_insecure;
    bool direct;                 /* ignore the proxy that the environment names */
    const char *user_agent;      /* NULL: "weir" */
    uint64_t connect_timeout_ms; /* 0: 10 s */
    /* The time limit of one transfer. Each retry and each redirect is a new transfer with its own
     * limit. 0: 60 s. */
    uint64_t timeout_ms;
    unsigned max_attempts; /* 0: 4 */
};

struct client *client_new(const struct client_options *o);
void client_free(struct client *c);

/* A function that client_call() calls with each piece of the body as it arrives. A return value
 * other than 0 ends the call with that code. */
typedef int client_body_fn(void *ctx, struct str piece, struct err *err);

struct client_request {
    const char *method, *url;
    const struct http_header *headers;
    size_t header_count;
    struct str body;
    /* NULL: the body is collected in client_response.body (limit 64 MiB). */
    client_body_fn *on_body;
    /* on_body() is called only for bodies of responses with a status of 2xx; other bodies are
     * collected in client_response.body. */
    bool on_success_only;
    /* Called several times a second with the number of bytes that were sent and received so far.
     * NULL: not called. */
    void (*on_progress)(void *ctx, uint64_t sent, uint64_t received);
    /* Decides whether weir may connect to an address to which the host's name was resolved. If no
     * address is allowed, the call fails with ERR_DENIED. Open connections that are used again are
     * checked too. Behind a proxy the address is that of the proxy (client_options.direct prevents
     * that). NULL: every address is allowed. */
    bool (*may_connect)(void *ctx, const struct sock_addr *addr);
    /* Decides whether a redirect is followed; false ends the call with ERR_DENIED. NULL: every
     * redirect is followed, within the limit of their number. */
    bool (*may_redirect)(void *ctx, const char *from_url, const char *to_url);
    void *ctx; /* for the functions above */
    /* A POST that does no harm when it arrives twice, such as one that asks a git server for a
     * pack. Like a GET, it may use an open connection, and it is tried again after a failure. */
    bool repeatable;
    /* The request is never repeated. Otherwise these rules apply:
     * - GET, HEAD, PUT, DELETE and OPTIONS are tried again after connection failures, time-outs,
     *   429 and 5xx.
     * - Other methods are tried again only if the request never reached the peer, or after 429 or
     *   503 with Retry-After.
     * - Nothing is tried again once on_body() was called. */
    bool no_retry;
    bool no_redirect; /* return a redirect as the response instead of following it */
    /* When true, the call ends; checked while the call waits; may be NULL. */
    const _Atomic(bool) *cancel;
};

struct client_response {
    int status;
    struct http_header *headers; /* in the arena */
    size_t header_count;
    struct str body; /* in the arena; empty when client_open() made the call */
    struct str url;  /* in the arena: the URL that answered, after all redirects */
    unsigned attempts;
};

/* Makes a call. The call succeeds whatever the HTTP status is; the error codes are those of
 * upstream_send(). Between two attempts the call waits for a random time: up to 0.2 s before the
 * first retry, and up to twice as long before each further one, at most 20 s. If the response has
 * the header Retry-After, the call waits as long as the header says, but at most 5 min. */
int client_call(struct client *c, struct arena *arena, struct client_response *out,
                const struct client_request *r, struct err *err) MUST_CHECK;

struct str client_header(const struct client_response *r, const char *name);
/* Returns how many seconds the header Retry-After asks the caller to wait, at most `max_s`, or -1
 * when the response has no such header or one that cannot be read. */
int64_t client_retry_after_s(const struct client_response *r, int64_t max_s);

/* Limits of one streaming call. Only `total_ms` includes the time that the caller spends outside of
 * read(), so a slow consumer is not mistaken for a slow peer. 0: no limit, unless the comment of
 * the member says otherwise. */
struct client_limits {
    /* Longest wait for one byte, sent or received; 0: client_options.timeout_ms. */
    uint64_t idle_ms;
    uint64_t slow_bytes_per_s; /* least speed of the body, on average over `slow_ms` */
    uint64_t slow_ms;
    uint64_t total_ms;      /* most time from client_open() to the last byte */
    uint64_t body_max;      /* most bytes of the body */
    unsigned redirects_max; /* 0: 5; client_request.no_redirect follows none */
};

struct client_stream; /* belongs to one thread at a time */

/* Makes a call and returns when the head of the response has arrived. Retries, redirects and errors
 * are those of client_call(); on_body(), on_success_only and on_progress are not used. The call
 * succeeds whatever the HTTP status is. `l` may be NULL. The strings of `r` are borrowed until the
 * stream is closed. The call uses HTTP/1.1, because with HTTP/2 other calls would share its
 * connection and could be delayed. */
int client_open(struct client_stream **out, struct client *c, struct arena *arena,
                struct client_response *head, const struct client_request *r,
                const struct client_limits *l, struct err *err) MUST_CHECK;

/* The reader of the body. Bytes are received when read() is called; at most 384 KiB are held in
 * memory, however fast the peer sends. read() returns ERR_TIMEOUT, ERR_TOO_LARGE (body_max),
 * ERR_CANCELED, or an error of client_call(). After an error every read() returns the same code.
 * Closing the reader does nothing; client_stream_close() ends the stream. */
struct reader *client_stream_reader(struct client_stream *s);
/* Changes the least speed, and begins a new measurement now. It exists because a git server may
 * compute for minutes before it sends at full speed. */
void client_stream_expect(struct client_stream *s, uint64_t slow_bytes_per_s, uint64_t slow_ms);
/* Ends the stream. A connection whose response was read to its end is kept for later calls. NULL is
 * fine. */
void client_stream_close(struct client_stream *s);

#endif
