/* The HTTP client for peers that are not storages, such as forges and webhooks. It uses libcurl,
 * which supports proxies and HTTP/2. Calls block, and any thread may make them. docs/upstream.md
 * has the rules of retry and redirect. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "http/wire.h"
#include "os/sock.h"

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
    /* The time limit of one transfer, which begins anew with each retry; 0: 60 s. */
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
    client_body_fn *on_body; /* NULL: the body is gathered in client_response.body (limit 64 MiB) */
    /* on_body() gets only bodies of responses with a status of 2xx; other bodies are gathered. */
    bool on_success_only;
    /* Is called several times a second with the bytes that were sent and received so far. NULL: no
     * function is called. */
    void (*on_progress)(void *ctx, uint64_t sent, uint64_t received);
    /* Decides by the address that was resolved whether a connection may be made. When no address
     * may be used, the call fails with ERR_DENIED. The address is that of the proxy if there is one
     * (client_options.direct). NULL: every address may be used. */
    bool (*may_connect)(void *ctx, const struct sock_addr *addr);
    void *ctx; /* for on_body(), on_progress() and may_connect() */
    /* The request is never repeated. Otherwise GET, HEAD, PUT, DELETE and OPTIONS are tried again
     * after connection failures, time-outs, 429 and 5xx. Other methods are tried again only if the
     * request never reached the peer, or after 429 or 503 with Retry-After. Nothing is tried again
     * once on_body() got bytes. */
    bool no_retry;
    bool no_redirect;            /* return a redirect as the response instead of following it */
    const _Atomic(bool) *cancel; /* true: the call ends; checked while it waits; may be NULL */
};

struct client_response {
    int status;
    struct http_header *headers; /* in the arena */
    size_t header_count;
    struct str body; /* in the arena */
    unsigned attempts;
};

/* Makes a call. Any HTTP status is success; the error codes are those of upstream_send(). Between
 * two attempts the call waits for a random time. That time is at most 0.2 s before the first retry,
 * and the limit doubles with each further retry, up to 20 s. When the response has the header
 * Retry-After, the call waits as long as the header says, but at most 5 min. */
int client_call(struct client *c, struct arena *arena, struct client_response *out,
                const struct client_request *r, struct err *err) MUST_CHECK;

struct str client_header(const struct client_response *r, const char *name);

#endif
