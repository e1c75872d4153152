/* Between the files of api/. */
#ifndef API_API_INT_H
#define API_API_INT_H

#include "api/api.h"
#include "api/auth.h"
#include "api/metrics.h"
#include "base/json.h"
#include "http/route.h"
#include "http/server.h"
#include "route/remotes.h"

struct api {
    struct api_options o;
    struct http_server *server;
    struct auth auth;
    uint64_t started_mono_ms;
    int64_t started_wall_ms;
    _Atomic(bool) backing_up; /* one backup at a time */
    /* Of the rooms; NULL: the room is not there. */
    struct taps *taps; /* of this process's changes */
    struct store_keep *store_keep;
    struct service *swarm;
    struct torrents *torrents; /* of objects */
};

extern const struct route api_routes[];
extern const size_t api_route_count;

/* --- answers --- */

/* One JSON object: begun, filled through `w`, and sent; the sending closes and releases it. What
 * was written is overwritten, as it may hold a secret. */
struct api_json {
    struct buf body;
    struct json_out w;
};
void api_json_begin(struct api_json *j);
int api_json_send(struct http_request *req, int status, struct api_json *j) MUST_CHECK;
void api_json_drop(struct api_json *j); /* instead of sending it */
/* 204, without a body. */
int api_send_done(struct http_request *req) MUST_CHECK;

int api_send_error(struct http_request *req, int status, const char *code,
                   const char *message) MUST_CHECK;
/* By the table of codes; 500 for those that are not in it. */
int api_send_failure(struct http_request *req, int code, const struct err *err) MUST_CHECK;

/* --- requests --- */

/* The body as a JSON object, the caller's. False: there is none, and *answer is what the handler
 * returns (the failure was answered; or this thread may not wait for a body). */
bool api_read_json(struct http_request *req, json_t **out, int *answer) MUST_CHECK;
/* A body whose members must be strings when they are there; the names end with NULL. */
int api_check_strings(const json_t *object, const char *const *names, struct err *err) MUST_CHECK;
/* A value of the query, decoded, in the request's arena; empty when absent. */
int api_query(struct http_request *req, const char *wanted, struct str *out,
              struct err *err) MUST_CHECK;
/* The same as a number up to `max`; `fallback` when absent. */
int api_query_number(struct http_request *req, const char *wanted, size_t fallback, size_t max,
                     size_t *out, struct err *err) MUST_CHECK;
/* The answer to who may not; `code` as auth_check() has it. */
int api_send_denied(struct http_request *req, int code) MUST_CHECK;
/* Is the caller an administrator? For what is open but says more to one. */
bool api_is_admin(struct api *api, struct http_request *req);

/* --- handlers as rows --- */

/* A request under way. */
struct api_call {
    struct api *api;
    struct http_request *req;
    const struct route_params *params;
    struct cache *cache; /* the tracker's models, when the handler needs them */
    json_t *body;        /* NULL when the handler takes none */
    struct api_json answer;
    struct json_out *w; /* the answer's open object; or its array, when the handler lists */
};

typedef int api_fn(struct api_call *c, struct err *err);

struct api_handler {
    api_fn *run;
    int status;          /* when it succeeds; 204 has no body */
    bool waits;          /* runs where it may; with a body it does anyway */
    bool takes_body;     /* a JSON object */
    bool needs_tracker;  /* 501 without one */
    const char *list;    /* the array that is the answer's first member; NULL: none */
    const char *missing; /* what ERR_NOT_FOUND says; NULL: as the error has it */
};

/* Runs the handler and answers. */
int api_run(struct api_call *c, const struct api_handler *h) MUST_CHECK;

/* A row: the route_fn of that name runs `fn` and answers `code`; what follows are other members. */
#define API_ROUTE(name, fn, code, ...)                                                             \
    int name(struct http_request *req, const struct route_params *params, void *ctx)               \
    {                                                                                              \
        return api_run(&(struct api_call){.api = ctx, .req = req, .params = params},               \
                       &(struct api_handler){.run = fn, .status = code, __VA_ARGS__});             \
    }

/* --- the handlers of users.c, storages.c, buckets.c, webhooks.c, queues.c, replication*.c,
 * switches.c ---
 */

route_fn api_get_users, api_post_user, api_get_user, api_delete_user, api_post_key, api_delete_key;
route_fn api_get_storages, api_post_storage, api_post_test, api_post_scrub;
route_fn api_delete_storage, api_post_main, api_post_limits, api_post_claim, api_get_credentials,
    api_post_credential, api_delete_credential;
route_fn api_get_buckets, api_get_bucket, api_get_policies, api_post_bucket_route,
    api_post_user_route;
route_fn api_get_webhooks, api_post_webhook, api_delete_webhook;
route_fn api_get_queues, api_put_pause_queue, api_put_resume_queue, api_get_tasks, api_get_task,
    api_delete_task, api_post_run_task, api_post_cancel_task;
route_fn api_get_swarm_stats, api_get_swarm_users, api_post_swarm_user, api_delete_swarm_user,
    api_get_swarm_clients, api_post_swarm_client, api_delete_swarm_client, api_get_swarm_torrents,
    api_post_swarm_torrent, api_delete_swarm_torrent, api_post_swarm_check, api_get_swarm_feed,
    api_post_swarm_feed, api_delete_swarm_feed, api_get_swarm_deltas, api_post_swarm_acknowledge;
route_fn api_get_replications, api_post_replication, api_get_replication, api_delete_replication,
    api_put_pause_replication, api_put_resume_replication, api_post_resync;
route_fn api_get_diffs, api_post_diff, api_get_diff, api_get_diff_entries, api_post_diff_fix,
    api_post_diff_restart, api_delete_diff;
route_fn api_post_notify, api_get_notify;
route_fn api_get_store, api_post_store_accept, api_post_store_restore;
route_fn api_get_torrents, api_post_torrent, api_get_torrent, api_get_torrent_file,
    api_delete_torrent;
route_fn api_get_switches, api_post_switch, api_get_switch, api_put_switch, api_delete_switch;

/* --- remotes.c --- */

/* Adds the remote storage of a request's body, with the credentials and as the main one when it
 * says so. */
int api_add_remote(struct api *api, const json_t *object, struct arena *a,
                   struct err *err) MUST_CHECK;
/* Members of `s` that only a remote storage has, into the object under way. */
void api_write_remote(struct json_out *w, const struct remote_entry *e);

/* --- storages.c --- */

/* With ?force=true also one that is in use. */
int api_remove_storage(struct http_request *req, struct api *api, struct str name,
                       struct err *err) MUST_CHECK;
/* The open object's members about a bucket. */
void api_write_bucket(struct json_out *w, const struct bucket_info *info, struct str storage);
/* ERR_NOT_FOUND: there is no remote storage so named. */
int api_find_remote(struct api *api, struct arena *a, struct str name, struct remote_entry *out,
                    struct err *err) MUST_CHECK;

/* --- backup.c --- */

/* A copy of everything that a start needs into `dir`, which appears when it is complete.
 * ERR_INVALID: not an absolute path; ERR_EXISTS; ERR_BUSY: another backup is running. */
int api_backup(struct api *api, const char *dir, struct err *err) MUST_CHECK;

#endif
