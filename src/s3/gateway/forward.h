/* Requests for buckets on remote storages: signed again and passed on, the answer passed back.
 * docs/forward.md has the promise and the invariants (F1 to F8). Only for src/s3/gateway*.c,
 * forward*.c and op_*.c. */
#ifndef S3_GATEWAY_FORWARD_H
#define S3_GATEWAY_FORWARD_H

#include "http/upstream.h"
#include "object/held.h"
#include "s3/gateway/gateway_int.h"

enum {
    FORWARD_SMALL = 64 * 1024,     /* a body up to here is read before anything is sent */
    FORWARD_WHOLE = CALL_LIST_MAX, /* the same of one that must be looked into */
    FORWARD_CHUNK = 64 * 1024,     /* of a body framed with a trailer */
    FORWARD_HEADERS_MAX = HTTP_MAX_HEADERS + 8,
};

/* --- forward_body.c: the body of a request as the storage gets it --- */

struct forward_body {
    struct held_reader held; /* F4: the last bytes come when all that was said of the body holds */
    struct payload payload;
    struct call *call; /* once it is open; borrowed */
    bool open;
    bool whole;      /* set before it is opened: all of it is read before anything is sent, into: */
    struct str text; /* in: */
    struct buf bytes;
    struct budget *budget; /* that `bytes` of a whole one is taken from; NULL: none */
    /* what to send: */
    struct reader *reader; /* NULL: no body */
    uint64_t len;          /* UINT64_MAX: not known */
    struct str sha256;     /* as forward_request.sha256 */
    bool has_checksum;     /* known before the body is sent; a trailer's, or the MD5 of ours: */
    struct http_header checksum;
    bool ours;    /* not the client's bytes: what it said of them is not sent on */
    bool framed;  /* with the trailer that the client announced */
    bool streams; /* nothing of it was asked for yet */
    /* a small one: */
    struct str_reader small;
    /* a framed one: */
    struct reader chunks;
    struct buf chunk;
    size_t chunk_at;
    uint64_t left;
    bool ended;
};

/* The body of a request; `framing`: the storage takes trailers. Reads a small body. */
int forward_body_open(struct call *c, struct forward_body *b, bool framing,
                      struct err *err) MUST_CHECK;
/* Another body than the request's, with c->head's headers: exactly `bound` bytes, or at most so
 * many when that is a small one. */
int forward_body_of(struct call *c, struct forward_body *b, struct reader *from, uint64_t bound,
                    struct err *err) MUST_CHECK;
/* Instead of a whole body that was verified: ours, which means the same. Takes the bytes. */
int forward_body_replace(struct call *c, struct forward_body *b, struct buf *bytes,
                         struct err *err) MUST_CHECK;
void forward_body_close(struct forward_body *b);

/* --- forward_request.c --- */

/* Path, query and headers of what is sent, in the arena; `out->headers` has room for
 * FORWARD_HEADERS_MAX. */
int forward_describe(struct call *c, const struct forward_body *b, struct forward_request *out,
                     struct http_header *headers, struct err *err) MUST_CHECK;
/* Is it of the connection, and not of the message? */
bool forward_is_hop(const struct http_head *head, struct str name);

/* --- forward.c --- */

/* Sends the whole request to the storage of its target, and the answer back. */
int forward_call(struct call *c, struct err *err) MUST_CHECK;
/* Asks the storage; errors as the client shall see them. */
int forward_send(struct storage *s, const struct forward_request *r, const struct forward_body *b,
                 struct exchange **out, struct err *err) MUST_CHECK;
/* What is known of a change, by what forward_send() returned. */
enum outcome forward_outcome(int code, struct exchange *e);
/* The storage's answer, as it is. */
int forward_answer(struct call *c, struct exchange *e, struct err *err) MUST_CHECK;

#endif
