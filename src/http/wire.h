/* HTTP/1.1 on the wire: request and response heads, chunked bodies, URLs. Strict, no allocation;
 * what is parsed points into the caller's bytes. docs/http.md lists what is refused and why.
 *
 * Parsers take all bytes received so far and answer ERR_AGAIN when more are needed, ERR_PARSE when
 * no more bytes can make it right, ERR_TOO_LARGE past a limit. Of a request also ERR_VERSION,
 * for one other than 1.0 and 1.1, and ERR_UNSUPPORTED, for a transfer coding other than chunked. */
#ifndef HTTP_WIRE_H
#define HTTP_WIRE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum { HTTP_MAX_HEADERS = 100, HTTP_MAX_HEAD = 16 * 1024, HTTP_MAX_LINE = 8 * 1024 };

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_PUT,
    HTTP_POST,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_PATCH,
    HTTP_METHOD_OTHER, /* a valid token that we do not know; its text is in method_text */
};

struct http_header {
    struct str name, value; /* value without blanks around it */
};

struct http_head {
    /* request */
    enum http_method method;
    struct str method_text;
    struct str target; /* as sent: "/bucket/key?x=y" */
    struct str path;   /* before '?', still percent-encoded */
    struct str query;  /* behind '?', still percent-encoded */
    /* response */
    int status;
    struct str reason;
    /* both */
    int minor; /* HTTP/1.<minor>: 0 or 1 */
    struct http_header headers[HTTP_MAX_HEADERS];
    size_t header_count;
    bool keep_alive; /* by version and Connection */
    bool chunked;
    bool expect_continue;
    bool has_length;
    uint64_t content_length;
    size_t size; /* bytes of the head, with the empty line */
};

/* *seen is how many bytes earlier calls have already looked through (start with 0), so that a head
 * that drips in byte by byte costs linear time. */
int http_parse_request(struct http_head *out, struct str in, size_t *seen,
                       struct err *err) MUST_CHECK;
int http_parse_response(struct http_head *out, struct str in, size_t *seen,
                        struct err *err) MUST_CHECK;

/* The value of the first header with this name, in any case; p is NULL when there is none.
 * http_header_next() finds repeated headers. */
struct str http_header(const struct http_head *head, const char *name);
const struct http_header *http_header_next(const struct http_head *head, const char *name,
                                           const struct http_header *after);
/* Whether a field may be sent: its name is a token, and its value has no control character but
 * tabs, so that it cannot end its line (RFC 9110 sections 5.1 and 5.5). */
bool http_field_is_valid(struct str name, struct str value);

/* Whether `token` is in a comma-separated list such as Connection or Accept-Encoding. */
bool http_list_has(struct str list, struct str token);

/* Whether the response has a body: not to HEAD, nor with 1xx, 204 or 304, whatever its headers say
 * (RFC 9112 section 6.3). A body that is neither chunked nor has a length ends when the peer
 * closes. */
bool http_response_has_body(const struct http_head *head, bool to_head_request);

enum http_method http_method(struct str text);
const char *http_method_name(enum http_method m);
const char *http_reason(int status);

/* Incremental chunked decoder. Feed bytes, take out body bytes in place. */
struct http_chunked {
    int state;
    uint64_t left; /* of the current chunk */
    size_t line;   /* bytes of the current size or trailer line */
    size_t trailer_bytes;
    bool done; /* last chunk and trailers seen */
};
/* Looks at `in`; *body is the next run of body bytes inside it (may be empty), *used how much of
 * `in` was consumed, body included. Trailer lines are appended to `trailers` ("Name: value\r\n")
 * when it is not NULL. Call until done. */
int http_chunked_next(struct http_chunked *c, struct str in, struct str *body, size_t *used,
                      struct buf *trailers, struct err *err) MUST_CHECK;
/* How many body bytes come next for certain, without framing between them. So many may be received
 * straight to their destination and then shown to the decoder. */
uint64_t http_chunked_run(const struct http_chunked *c);

/* URLs. Decoding appends; ERR_PARSE on a bad escape. plus_is_space for form bodies and queries. */
int url_decode(struct buf *out, struct str in, bool plus_is_space) MUST_CHECK;
/* Encode all but unreserved characters (RFC 3986); '/' kept when keep_slash. */
void url_encode(struct buf *out, struct str in, bool keep_slash);
/* The next name[=value] of a query, still encoded; false at the end. */
bool url_query_next(struct str *rest, struct str *name, struct str *value);
/* For records that are stored as a query: the decoded value of the next pair, in the arena.
 * ERR_CORRUPT when the next pair has another name. */
int url_query_take(struct str *rest, struct arena *a, const char *name, struct str *out) MUST_CHECK;

struct url {
    struct str scheme, user, password, host, path,
        query;     /* encoded, borrowed; host without brackets, may be empty (file:///x) */
    uint16_t port; /* 0 when not given */
};
/* Fragments are refused. */
int url_parse(struct url *out, struct str in, struct err *err) MUST_CHECK;

#endif
