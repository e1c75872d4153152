/* The API endpoint: health, readiness, metrics, and /api/v1 for administrators. docs/operations.md
 * describes it to users. Each file of api/ begins with a table of its routes (rest/rest.h); the
 * rooms have tables of their own.
 *
 * Every /api/v1 call needs HTTP Basic authentication with an administrator's keys, except the calls
 * of a table with a dialect (rest/rest.h), which checks its callers itself. */
#ifndef API_API_H
#define API_API_H

#include "base/log.h"
#include "conf/conf.h"
#include "conf/credentials.h"
#include "os/sock.h"
#include "os/thread.h"
#include "room/ready.h"

struct api;
struct db;
struct http_server;
struct installation;
struct remotes;
struct lifecycle_worker;
struct access_log;
struct notify;
struct queue;
struct queue_weight;
struct replications;
struct worker;
struct room_instance;
struct routes;
struct services;
struct store;
struct tls_context;
struct users;

/* The services that the API uses. All pointers are borrowed and must outlive the API. */
struct api_options {
    const struct conf *conf; /* the configuration at the start; a reload does not replace it */
    struct db *db;
    struct users *users;
    struct routes *routes;
    struct remotes *remotes;
    struct notify *notify;
    struct access_log *access_log; /* NULL: there is no access log */
    /* the S3 server, whose metrics are shown; NULL: S3 is not served */
    struct http_server *s3;
    struct lifecycle_worker *lifecycle; /* for its metrics; NULL: this process is not a worker */
    /* AppDB; if replication is on, it is on the same server as the queue. */
    struct store *app;
    struct queue *queue;
    const struct queue_weight *queues; /* the queues that workers take tasks from */
    size_t queue_count;
    /* ConfigDB; if replication is on, it is on the same server as the queue. */
    struct store *config;
    struct replications *replications; /* NULL: replication is off */
    /* Checks that the store is the one that weir has used before. */
    struct installation *installation;
    struct worker *worker; /* for its metrics; NULL: this process is not a worker */
    const struct services *services;
    const struct room_instance *rooms; /* the rooms whose routes and metrics are served */
    size_t room_count;
    struct pool *pool;
    struct ready *ready;
    const struct credentials *admin;
    struct tls_context *tls; /* NULL: plain HTTP; the API takes a reference of its own */
    const struct log *log;
};

/* Starts the API, which listens on conf->api.listen when this returns. ERR_IN_USE: the address is
 * in use; the text names it. */
int api_start(struct api **out, const struct api_options *o, struct err *err) MUST_CHECK;
void api_address(struct api *api, struct sock_addr *out);
void api_tls(struct api *api, struct tls_context *tls); /* sets the context for new connections */
/* Stops the API. Requests may finish until the deadline; then they are cut off. Returns false if
 * some still run, as http_server_stop() does. */
bool api_stop(struct api *api, uint64_t deadline_ns);
void api_free(struct api *api); /* waits for requests that still run; `api` may be NULL */

#endif
