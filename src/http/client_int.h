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
    CLIENT_MAX_HEADS = 4 * CLIENT_MAX_HEAD, /* with responses of 1xx and trailers */
    CLIENT_MAX_IDLE = 16, /* most idle handles that are kept, each with a few open connections */
    CLIENT_RETRY_AFTER_MAX_MS = 5 * MS_PER_MINUTE,
    CLIENT_STREAM_HELD = 256 * 1024,   /* a stream with more unread bytes is paused */
    CLIENT_STREAM_BUFFER = 128 * 1024, /* most bytes that libcurl receives at a time */
    /* Most bytes of a redirect's or refusal's body that a stream reads. */
    CLIENT_REFUSAL_MAX = 64 * 1024,
};

/* The handles of a streaming call. The multi handle keeps the connections. */
struct client_line {
    CURL *easy;
    CURLM *multi;
};

struct client {
    char *ca_file, *unix_path, *user_agent; /* owned; the first two may be NULL */
    bool tls_insecure, direct;
    uint64_t connect_timeout_ms, timeout_ms;
    unsigned max_attempts;
    struct mutex lock;
    /* Guarded by `lock`; the handle that was used last is used first. */
    VEC(CURL *) idle;
    VEC(struct client_line) lines; /* idle handles of streams; guarded and used in the same way */
};

/* Whether a failed attempt may be repeated. */
enum again {
    AGAIN_NEVER,
    AGAIN_IF_REPEATABLE, /* the peer may have acted on the request */
    AGAIN_ALWAYS,        /* the request never reached the peer */
};

/* The URL, method and headers of an attempt's next transfer. */
struct hop {
    char *url; /* owned */
    const char *method;
    bool with_body;
    bool foreign; /* a redirect left the caller's origin, so only harmless headers are sent */
    struct curl_slist *headers;
};

struct attempt {
    struct client *client;
    const struct client_request *request;
    struct client_stream *stream; /* takes the body; NULL: client_call() */
    bool last;       /* the last attempt: the caller gets its response, whatever the status */
    bool repeatable; /* the request may arrive twice */
    unsigned redirects_max, redirects;
    struct hop hop;
    CURL *handle; /* of the transfer that is under way */
    char reason[CURL_ERROR_SIZE];

    /* The response of this attempt: */
    int status;
    struct buf head; /* "Name: value\r\n" lines */
    size_t header_count;
    size_t head_bytes; /* of all heads and trailers of the transfer */
    struct buf body;
    uint64_t received; /* bytes of all heads and bodies */
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

/* ERR_INVALID: the URL is not one of http or https. */
int attempt_check_url(const struct attempt *a, struct err *err) MUST_CHECK;
/* The two parts of attempt_run(). attempt_hop_begin() sets the options of the next transfer.
 * attempt_hop_end() is called when the transfer has ended with libcurl's `result`. If the response
 * is a redirect, it sets *next to true, and a->hop then leads to the redirect's target. */
int attempt_hop_begin(struct attempt *a, CURL *handle, struct err *err) MUST_CHECK;
int attempt_hop_end(struct attempt *a, CURLcode result, bool *next, struct err *err) MUST_CHECK;
/* Whether the head of the response is complete and the caller must get the response: it is not a
 * redirect, and the request is not repeated because of its status. */
bool attempt_has_answer(const struct attempt *a);

/* Passes a piece of the body to the stream. Returns what a write function of libcurl must
 * return. */
size_t client_stream_take(struct client_stream *s, struct str piece);
/* client_stream_new() makes a stream. The next function sends its request, follows redirects, and
 * waits for the head. */
struct client_stream *client_stream_new(struct client *c, const struct client_request *r,
                                        const struct client_limits *l);
int client_stream_begin(struct client_stream *s, uint64_t began_ns, struct err *err) MUST_CHECK;
struct attempt *client_stream_attempt(struct client_stream *s);
/* Whether the request is sent again after a response with this status (rule C1 of
 * docs/upstream.md). */
bool attempt_refused(const struct attempt *a);

/* Returns the wait in ms that the value of Retry-After asks for, at most `max_ms`, or UINT64_MAX
 * when the value is neither a number of seconds nor a date (rule C2 of docs/upstream.md). */
uint64_t client_retry_after_ms(struct str value, int64_t wall_ms, uint64_t max_ms);

#endif
