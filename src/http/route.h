/* A table of routes: method and path pattern to handler. "{name}" matches one segment, a last
 * "{name...}" the rest with its slashes. Exact segments win over patterns. */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include "http/server.h"

enum { HTTP_MAX_PARAMS = 8 };

struct route_params {
    struct str name[HTTP_MAX_PARAMS], value[HTTP_MAX_PARAMS]; /* values decoded, in the arena */
    size_t count;
};

typedef int route_fn(struct http_request *req, const struct route_params *params, void *ctx);

struct route {
    enum http_method method;
    const char *pattern; /* "/api/v1/storages/{name}" */
    route_fn *fn;
    bool open;       /* no authentication needed */
    const char *doc; /* one line for the API page */
};

/* The row and its parameters. ERR_NOT_FOUND, or ERR_UNSUPPORTED when the path exists with other
 * methods (405), or ERR_PARSE when an escape is bad or hides a NUL. GET rows also take HEAD.
 * A "{name}" is never empty; "{name...}" may be. */
int route_match(const struct route **out, struct route_params *params, const struct route *table,
                size_t count, struct http_request *req, struct err *err) MUST_CHECK;
/* NULL p when absent. */
struct str route_param(const struct route_params *params, const char *name);

#endif
