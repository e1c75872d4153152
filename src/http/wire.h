/* HTTP/1.1 on the wire: request and response heads, chunked bodies, URLs. Parsing is strict and
 * allocates nothing; results point into the caller's bytes. docs/http.md lists what is refused and
 * why. Parsers get all bytes received so far. They return ERR_AGAIN when more bytes are needed,
 * ERR_PARSE when the input is malformed, and ERR_TOO_LARGE past a limit. The parser of requests
 * also returns ERR_VERSION (not HTTP/1.0 or 1.1) and ERR_UNSUPPORTED (a transfer coding other than
 * chunked). */
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
    HTTP_METHOD_OTHER, /* another valid method, whose name is in method_text */
};

struct http_header {
    struct str name, value; /* `value` has no blanks around it */
};

struct http_head {
    /* Only in a request: */
    enum http_method method;
    struct str method_text;
    struct str target; /* as sent: "/bucket/key?x=y" */
    struct str path;   /* the target before '?', still percent-encoded */
    struct str query;  /* the target behind '?', still percent-encoded */
    /* Only in a response: */
    int status;
    struct str reason;
    /* In requests and responses: */
    int minor; /* HTTP/1.<minor>: 0 or 1 */
    struct http_header headers[HTTP_MAX_HEADERS];
    size_t header_count;
    bool keep_alive; /* from the version and the header Connection */
    bool chunked;
    bool expect_continue;
    bool has_length;
    uint64_t content_length;
    size_t size; /* bytes of the head, including the empty line */
};

/* These functions parse a head. *seen counts the bytes that earlier calls have searched; set it to
 * 0 before the first call. So a head that arrives byte by byte takes linear time. */
int http_parse_request(struct http_head *out, struct str in, size_t *seen,
                       struct err *err) MUST_CHECK;
int http_parse_response(struct http_head *out, struct str in, size_t *seen,
                        struct err *err) MUST_CHECK;

/* Returns the value of the first header with this name, ignoring case. Its p is NULL when there is
 * no such header. http_header_next() finds repeated headers. */
struct str http_header(const struct http_head *head, const char *name);
struct str http_header_among(const struct http_header *headers, size_t count, const char *name);
const struct http_header *http_header_next(const struct http_head *head, const char *name,
                                           const struct http_header *after);
/* Whether a header may be sent: its name must be a token, and its value must have no control
 * characters except tabs. So the value cannot end the header's line (RFC 9110 sections 5.1 and
 * 5.5). */
bool http_field_is_valid(struct str name, struct str value);

/* Whether `token` is in a comma-separated list such as Connection or Accept-Encoding. */
bool http_list_has(struct str list, struct str token);

/* Whether the response has a body. Responses to HEAD and responses with status 1xx, 204 or 304 have
 * none, whatever their headers say (RFC 9112 section 6.3). A body that is not chunked and has no
 * length ends when the peer closes. */
bool http_response_has_body(const struct http_head *head, bool to_head_request);

enum http_method http_method(struct str text);
const char *http_method_name(enum http_method m);
const char *http_reason(int status);

/* An incremental decoder of chunked bodies. It finds the bytes of the body in place, without
 * copying. */
struct http_chunked {
    int state;
    uint64_t left; /* bytes left of the current chunk */
    size_t line;   /* bytes of the current size or trailer line */
    size_t trailer_bytes;
    bool done; /* the last chunk and the trailers were decoded */
};
/* Decodes the next part of `in`. *body is the next run of body bytes inside `in`, and may be empty.
 * *used is how many bytes of `in` were decoded, *body included. Trailer lines ("Name: value\r\n")
 * are appended to `trailers` unless that is NULL. Call it until c->done. */
int http_chunked_next(struct http_chunked *c, struct str in, struct str *body, size_t *used,
                      struct buf *trailers, struct err *err) MUST_CHECK;
/* Returns how many body bytes come next without framing between them. A caller may receive that
 * many bytes straight into their destination and then pass them to the decoder. */
uint64_t http_chunked_run(const struct http_chunked *c);

/* Decodes a part of a URL and appends it. ERR_PARSE: a malformed escape. With plus_is_space, which
 * is for forms and queries, '+' is a blank. */
int url_decode(struct buf *out, struct str in, bool plus_is_space) MUST_CHECK;
/* Appends `in`, and percent-encodes all but unreserved characters (RFC 3986). With keep_slash, '/'
 * is not encoded either. */
void url_encode(struct buf *out, struct str in, bool keep_slash);
/* Removes the next name[=value] from the front of a query; both stay encoded. Returns false at the
 * end. */
bool url_query_next(struct str *rest, struct str *name, struct str *value);
/* Removes the next pair from the front of a record that is stored in the form of a query, and sets
 * *out to the pair's decoded value in the arena. ERR_CORRUPT: the next pair does not have that
 * name. */
int url_query_take(struct str *rest, struct arena *a, const char *name, struct str *out) MUST_CHECK;

struct url {
    struct str scheme, user, password, host, path,
        query;     /* all encoded and borrowed; host has no brackets, and is empty in file:///x */
    uint16_t port; /* 0 when not given */
};
/* Splits a URL into its parts. A fragment is refused. */
int url_parse(struct url *out, struct str in, struct err *err) MUST_CHECK;
/* Whether both URLs have the same scheme, host and port (RFC 6454). False when one is malformed. */
bool url_same_origin(struct str a, struct str b);
/* The port of a URL with the scheme http or https: the port in the URL, or otherwise the default
 * port. */
uint16_t url_port(const struct url *u);

#endif
