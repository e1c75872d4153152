/* Passes requests for buckets on remote storages on to these storages, signed anew, and passes the
 * answers back. docs/forward.md has the promise and the invariants (F1 to F13). Only for the files
 * of the gateway. */
#ifndef S3_GATEWAY_FORWARD_H
#define S3_GATEWAY_FORWARD_H

#include "http/upstream.h"
#include "object/held.h"
#include "s3/gateway/gateway_int.h"

enum {
    /* Limit on the bytes of a body that is read before anything is sent. */
    FORWARD_SMALL = 64 * 1024,
    FORWARD_WHOLE = CALL_LIST_MAX, /* limit on the bytes of a body that weir has to parse */
    FORWARD_CHUNK = 64 * 1024,     /* bytes of a chunk, in a body that is sent with a trailer */
    FORWARD_HEADERS_MAX = HTTP_MAX_HEADERS + 8,
};

/* --- forward_body.c: the body of a request as the storage gets it --- */

struct forward_body {
    /* Holds the last bytes back until all claims about the body are verified (docs/forward.md,
     * F4). */
    struct held_reader held;
    struct payload payload;
    struct call *call; /* set once the body is open; borrowed */
    bool open;
    /* The caller sets this before opening: the whole body is read into `text` before any of it is
     * sent. */
    bool whole;
    struct str text; /* the body if `whole`; its memory is in `bytes` */
    struct buf bytes;
    /* The budget that counts the memory of `bytes`; NULL: no memory was counted. */
    struct budget *budget;
    /* The members up to `checksum` describe the body that is sent. */
    struct reader *reader; /* NULL: no body */
    uint64_t len;          /* in bytes; UINT64_MAX: not known */
    struct str sha256;     /* SHA-256 of the body in hex; empty: not known */
    bool has_checksum; /* `checksum` is sent; it is from the client's trailer, or weir made it */
    struct http_header checksum;
    bool ours;   /* weir wrote the bytes, so the client's claims about its own bytes are not sent */
    bool framed; /* the body is sent with the trailer that the client announced */
    bool streams; /* no byte of the body has been asked for yet */
    /* Only for a small body: */
    struct str_reader small;
    /* Only for a framed body: */
    struct reader chunks;
    struct buf chunk;
    size_t chunk_at;
    uint64_t left;
    bool ended;
};

/* Opens the body of the request, and reads it if it is small. `framing`: the storage accepts
 * trailers. */
int forward_body_open(struct forward_body *b, struct call *c, bool framing,
                      struct err *err) MUST_CHECK;
/* Opens a body that is read from `from` instead of from the client; c->head has the headers that
 * describe it. If `bound` is above FORWARD_SMALL, the body has exactly `bound` bytes, else at most
 * `bound` bytes. */
int forward_body_of(struct forward_body *b, struct call *c, struct reader *from, uint64_t bound,
                    struct err *err) MUST_CHECK;
/* Replaces a whole body that was verified by bytes that weir wrote and that mean the same. Takes
 * ownership of `bytes`. */
int forward_body_replace(struct forward_body *b, struct call *c, struct buf *bytes,
                         struct err *err) MUST_CHECK;
void forward_body_close(struct forward_body *b);

/* --- forward_request.c --- */

/* Fills in the path, query and headers of the request to send, in the arena; `headers` has room for
 * FORWARD_HEADERS_MAX. */
int forward_describe(struct call *c, const struct forward_body *b, struct forward_request *out,
                     struct http_header *headers, struct err *err) MUST_CHECK;
/* Is `name` a header about the connection, not about the message? */
bool forward_is_hop(const struct http_head *head, struct str name);

/* --- forward.c --- */

/* Sends the whole request to the target's storage, and the storage's answer to the client. */
int forward_call(struct call *c, struct err *err) MUST_CHECK;
/* Sends the request to the storage. Returns the error that the client gets. */
int forward_send(struct storage *s, const struct forward_request *r, const struct forward_body *b,
                 struct exchange **out, struct err *err) MUST_CHECK;
/* Returns how a change ended, as far as known; `code` is the result of forward_send(). */
enum outcome forward_outcome(int code, struct exchange *e);
/* Answers the client with the storage's answer, unchanged. */
int forward_answer(struct call *c, struct exchange *e, struct err *err) MUST_CHECK;

#endif
