/* One attempt of a client call; only for client*.c and their tests. */
#ifndef HTTP_CLIENT_INT_H
#define HTTP_CLIENT_INT_H

#include "base/clock.h"
#include "base/vec.h"
#include "http/client.h"
#include "os/thread.h"

#include <curl/curl.h>

enum {
    CLIENT_MAX_REDIRECTS = 5,
    CLIENT_MAX_BODY = 64 * 1024 * 1024,
    CLIENT_MAX_HEAD = 64 * 1024,
    CLIENT_MAX_IDLE = 16, /* limit of idle handles, each with a few open connections */
    CLIENT_RETRY_AFTER_MAX_MS = 5 * MS_PER_MINUTE,
};

struct client {
    char *ca_file, *unix_path, *user_agent; /* owned; the first two may be NULL */
    bool tls_insecure, direct;
    uint64_t connect_timeout_ms, timeout_ms;
    unsigned max_attempts;
    struct mutex lock;
    VEC(CURL *) idle; /* guarded by `lock`; last in, first out */
};

/* Whether a failed attempt may be repeated. */
enum again {
    AGAIN_NEVER,
    AGAIN_IF_REPEATABLE, /* the peer may have acted on the request */
    AGAIN_ALWAYS,        /* the request never reached the peer */
};

struct attempt {
    struct client *client;
    const struct client_request *request;
    bool last;       /* the last attempt: the caller gets its response, whatever the status */
    bool repeatable; /* the method is idempotent */

    /* The response of this attempt: */
    int status;
    struct buf head; /* "Name: value\r\n" lines */
    size_t header_count;
    struct buf body;
    bool body_begun;
    bool delivered; /* the caller's on_body() has got a piece: the request cannot be repeated */
    /* The body is ignored, because the response is a redirect or the request will be repeated. */
    bool dropped;

    /* The error code with which one of our callbacks ended the transfer; 0: none did. */
    int stopped;
    bool kept_out; /* may_connect() has refused an address */
    struct err *err;
    enum again again;
    struct str retry_after; /* the header's value; points into `head` */
};

void attempt_init(struct attempt *a, struct client *c, const struct client_request *r);
void attempt_release(struct attempt *a);
/* Sends one request and follows its redirects. */
int attempt_run(struct attempt *a, struct err *err) MUST_CHECK;
/* Whether the request is sent again after a response with this status (rule C1 of
 * docs/upstream.md). */
bool attempt_refused(const struct attempt *a);

/* Returns the wait in ms that the value of Retry-After asks for, or UINT64_MAX when the value is
 * neither a number of seconds nor a date (rule C2 of docs/upstream.md). */
uint64_t client_retry_after_ms(struct str value, int64_t wall_ms);

#endif
