/* Between the files of api/. */
#ifndef API_API_INT_H
#define API_API_INT_H

#include "api/api.h"
#include "api/auth.h"
#include "api/metrics.h"
#include "base/json.h"
#include "http/route.h"
#include "http/server.h"

struct api {
    struct api_options o;
    struct http_server *server;
    struct metrics_server watched;
    struct auth auth;
    uint64_t started_mono_ms;
    int64_t started_wall_ms;
    struct mutex backup; /* class "backup": one backup at a time */
};

extern const struct route api_routes[];
extern const size_t api_route_count;

/* --- answers --- */

int api_send_json(struct http_request *req, int status, const struct buf *body) MUST_CHECK;
int api_send_error(struct http_request *req, int status, const char *code,
                   const char *message) MUST_CHECK;
/* By the table of codes; 500 for those that are not in it. */
int api_send_failure(struct http_request *req, int code, const struct err *err) MUST_CHECK;

/* --- backup.c --- */

/* A copy of everything that a start needs into `dir`, which appears when it is complete.
 * ERR_INVALID: not an absolute path; ERR_EXISTS. A second one waits for the first. */
int api_backup(struct api *api, const char *dir, struct err *err) MUST_CHECK;

#endif
