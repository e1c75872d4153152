/* Types and functions that the files of api/ share. */
#ifndef API_API_INT_H
#define API_API_INT_H

#include "api/api.h"
#include "api/auth.h"
#include "api/metrics.h"
#include "rest/rest.h"
#include "route/remotes.h"
#include "s3/lifecycle/lifecycle_sweep.h"

enum { API_TABLES_MAX = 64 };

/* The API; it is the `ctx` of calls of all rows in api/. */
struct api {
    struct api_options o;
    struct http_server *server;
    struct auth auth;
    struct rest_table tables[API_TABLES_MAX]; /* tables of api/ and of the rooms */
    size_t table_count;
    struct buf openapi; /* the OpenAPI document */
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

/* The user's name and the keys that the user's requests to a remote storage are signed with. */
struct credential_form {
    struct str storage; /* the storage's name; empty in struct storage_form */
    struct str user, access, secret;
};

/* A storage that is to be added, or whose limits are to be set. */
struct storage_form {
    enum storage_form_kind { STORAGE_FORM_LOCAL, STORAGE_FORM_REMOTE } kind;
    bool main;
    struct rest_known requests_per_minute, bytes_per_second;
    struct str folder;          /* of a local storage */
    struct remote_entry remote; /* `name` is also the name of a local storage */
    unsigned style, framing;    /* 1: the bucket is in the host name; 1: uploads have trailers */
    struct credential_form keys;
};

/* Adds the remote storage of the form, with its credentials. Makes it the main storage when the
 * form says so. */
int api_add_remote(struct rest_call *c, const struct storage_form *in, struct err *err) MUST_CHECK;
/* --- buckets.c --- */

/* A bucket as it is shown. The list of buckets has only `info` and `storage`. */
struct bucket_view {
    struct bucket_info info;
    struct str storage;
    bool sharded;
    struct rest_known objects, bytes, old_versions, old_bytes;
    struct rest_known counted_versions, counted_bytes;
    const char *lifecycle;
    struct lifecycle_counts swept; /* in the last whole sweep */
    int64_t swept_ms;
};

#define BUCKET_FIELDS                                                                              \
    {"name", "The bucket's name.", REST_AT(struct bucket_view, info.name)},                        \
        {"storage", "The storage that has it.", REST_AT(struct bucket_view, storage)},             \
        {"owner", "The id of the user who owns it; empty: the storage does not say.",              \
         REST_AT(struct bucket_view, info.owner)},                                                 \
        {"created", "When it was made, as far as the storage says.", REST_TIME,                    \
         REST_AT(struct bucket_view, info.created_ms)},                                            \
        {"versions", "Versioning: \"never\", \"on\" or \"suspended\".",                            \
         .choices = REST_CHOICES("never", "on", "suspended"),                                      \
         REST_AT(struct bucket_view, info.versions)},                                              \
    {                                                                                              \
        "object_lock", "Is object lock on?", REST_BOOLEAN,                                         \
            REST_AT(struct bucket_view, info.object_lock)                                          \
    }

/* --- backup.c --- */

/* Copies everything that a new start needs into the new folder `dir`. The folder appears when the
 * copy is complete. ERR_INVALID: `dir` is not an absolute path. ERR_EXISTS: `dir` exists. ERR_BUSY:
 * another backup runs. */
int api_backup(struct api *api, const char *dir, struct err *err) MUST_CHECK;

#endif
