/* One attempt of a client call; for client*.c and their tests only. */
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
    CLIENT_MAX_IDLE = 16, /* idle handles that are kept, each with its few open connections */
    CLIENT_RETRY_AFTER_MAX_MS = 5 * MS_PER_MINUTE,
};

struct client {
    char *ca_file, *unix_path, *user_agent; /* owned; the first two may be NULL */
    bool tls_insecure, direct;
    uint64_t connect_timeout_ms, timeout_ms;
    unsigned max_attempts;
    struct mutex lock;
    VEC(CURL *) idle; /* under `lock`; last in, first out */
};

/* Whether a failed attempt may be repeated. */
enum again {
    AGAIN_NEVER,
    AGAIN_IF_REPEATABLE, /* the peer may have acted on it */
    AGAIN_ALWAYS,        /* it never reached the peer */
};

struct attempt {
    struct client *client;
    const struct client_request *request;
    bool last;       /* the last attempt: its response is the result, whatever it is */
    bool repeatable; /* the method is idempotent */

    /* The response of this attempt: */
    int status;
    struct buf head; /* "Name: value\r\n" lines */
    size_t header_count;
    struct buf body;
    bool body_begun;
    bool delivered; /* the caller's function has got a piece: the request cannot be repeated */
    bool dropped;   /* the body is of no use: of a redirect, or of a response that is repeated */

    int stopped; /* the code with which one of our own callbacks ended the transfer */
    struct err *err;
    enum again again;
    struct str retry_after; /* in `head` */
};

void attempt_init(struct attempt *a, struct client *c, const struct client_request *r);
void attempt_release(struct attempt *a);
/* Sends one request and follows its redirects. */
int attempt_run(struct attempt *a, struct err *err) MUST_CHECK;
/* Whether a request is repeated after this status (C1). */
bool attempt_refused(const struct attempt *a);

/* The wait that Retry-After asks for, or UINT64_MAX when it says nothing (C2). */
uint64_t client_retry_after_ms(struct str value, int64_t wall_ms);

#endif
