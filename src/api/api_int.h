/* Types and functions that the files of api/ share. */
#ifndef API_API_INT_H
#define API_API_INT_H

#include "api/api.h"
#include "api/auth.h"
#include "api/metrics.h"
#include "rest/rest.h"
#include "route/remotes.h"

enum { API_TABLES_MAX = 64 };

/* The API; it is the `ctx` of calls of all rows in api/. */
struct api {
    struct api_options o;
    struct http_server *server;
    struct auth auth;
    struct rest_table tables[API_TABLES_MAX]; /* tables of api/ and of the rooms */
    size_t table_count;
    uint64_t started_mono_ms;
    int64_t started_wall_ms;
    _Atomic(bool) backing_up; /* a backup is running; a second one is refused */
};

/* The routes of each file. Their `ctx` is filled in when the API starts. */
extern const struct rest_table api_server_rows, api_user_rows, api_storage_rows, api_remote_rows,
    api_bucket_rows, api_bucket_show_rows, api_webhook_rows, api_queue_rows, api_notice_rows;

/* Answers 401, 429 or 503 to a caller that auth_check() or auth_check_token() refused with `code`.
 */
int api_send_denied(struct http_request *req, int code) MUST_CHECK;
/* Whether the caller is an administrator. Used by routes that anyone may call, but whose answers to
 * administrators have more details. */
bool api_is_admin(struct api *api, struct http_request *req);

/* --- remotes.c --- */

/* Adds the remote storage that the call's body describes, with its credentials. Makes it the main
 * storage when the body says so. */
int api_add_remote(struct rest_call *c, struct err *err) MUST_CHECK;
/* Writes the members that only a remote storage has into the JSON object that is open in `w`. */
void api_write_remote(struct json_out *w, const struct remote_entry *e);
/* --- buckets.c --- */

/* The members of a bucket in an answer, and the function that writes them. */
#define BUCKET_FIELDS                                                                              \
    {"name", "The bucket's name."}, {"storage", "The storage that has it."},                       \
        {"owner", "The id of the user who owns it; empty: the storage does not say."},             \
        {"created", "When it was made, as far as the storage says.", REST_TIME},                   \
        {"versions", "Versioning: \"never\", \"on\" or \"suspended\"."},                           \
    {                                                                                              \
        "object_lock", "Is object lock on?", REST_BOOLEAN                                          \
    }
void api_write_bucket(struct json_out *w, const struct bucket_info *info, struct str storage);

/* --- backup.c --- */

/* Copies everything that a new start needs into the new folder `dir`. The folder appears when the
 * copy is complete. ERR_INVALID: `dir` is not an absolute path. ERR_EXISTS: `dir` exists. ERR_BUSY:
 * another backup runs. */
int api_backup(struct api *api, const char *dir, struct err *err) MUST_CHECK;

#endif
