/* Cross-origin rules of a bucket: the document, and the response headers that tell a browser what
 * it may do. Strings live in the arena; a configuration that was read does not change and may be
 * used by any thread. */
#ifndef S3_DOCUMENTS_CORS_H
#define S3_DOCUMENTS_CORS_H

#include "base/arena.h"
#include "base/buf.h"
#include "http/wire.h"
#include "meta/error.h"

enum { CORS_MAX_RULES = 100, CORS_MAX_BYTES = 64 * 1024, CORS_MAX_HEADERS = 7 };

struct str_list {
    struct str *items;
    size_t count;
};

struct cors_rule {
    struct str id; /* empty: the rule has no id */
    struct str_list origins, methods, headers, expose;
    int64_t max_age; /* seconds; -1: not given */
};

struct cors {
    struct cors_rule *rules;
    size_t count;
};

/* Reads the document. MalformedXML: its form is wrong. InvalidRequest: a method other than GET,
 * PUT, POST, DELETE or HEAD, more than one wildcard in an origin or header, or a wildcard in an
 * exposed header. */
int cors_read(struct cors *out, struct arena *a, struct str xml, struct err *err) MUST_CHECK;
void cors_write(struct buf *out, const struct cors *cors);

/* The parts of a request on which the choice of a rule depends. For a preflight these are the parts
 * of the later request, which the preflight announces in Access-Control-Request-*. */
struct cors_request {
    struct str origin, method;
    struct str headers; /* names, comma-separated; empty: none */
};

struct cors_answer {
    const struct cors_rule *rule;
    struct cors_request request;
    bool any_origin; /* the rule allows the origin "*" */
};

/* Finds the first rule that allows the origin, the method and all headers; false when there is
 * none. */
bool cors_match(const struct cors *cors, const struct cors_request *request,
                struct cors_answer *out);

/* Decides a preflight (OPTIONS). BadRequest: the preflight lacks origin or method. AccessForbidden:
 * no rule allows it. `cors` is NULL when the bucket has no rules. */
int cors_preflight(const struct cors *cors, const struct cors_request *request,
                   struct cors_answer *out, struct err *err) MUST_CHECK;

/* Makes the headers of the response and returns their number. */
size_t cors_headers(const struct cors_answer *answer, struct arena *a,
                    struct http_header out[CORS_MAX_HEADERS]);

#endif
