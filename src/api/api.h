/* The API endpoint: health, readiness, metrics, and /api/v1 for administrators. docs/operations.md
 * describes it to people. Each file has a table of its routes at its top, in the form of
 * rest/rest.h; the rooms bring tables of their own.
 *
 * Every /api/v1 call needs HTTP Basic authentication with an administrator's keys. */
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

/* All borrowed; they must outlive the api. */
struct api_options {
    const struct conf
        *conf; /* the configuration at the start; addresses and limits do not change later */
    struct db *db;
    struct users *users;
    struct routes *routes;
    struct remotes *remotes;
    struct notify *notify;
    struct access_log *access_log;      /* NULL: there is none */
    struct http_server *s3;             /* for its metrics; NULL: S3 is not served */
    struct lifecycle_worker *lifecycle; /* for its metrics; NULL: this weir is no worker */
    struct store *app; /* on one server with the queue's database when replication is on */
    struct queue *queue;
    const struct queue_weight *queues; /* that workers take tasks from */
    size_t queue_count;
    struct store *config;              /* likewise on one server */
    struct replications *replications; /* NULL: replication is off */
    struct installation *installation; /* knows whether the store is the known one */
    struct worker *worker;             /* for its metrics; NULL: this weir is no worker */
    const struct services *services;
    const struct room_instance *rooms; /* for their routes and metrics */
    size_t room_count;
    struct pool *pool;
    struct ready *ready;
    const struct credentials *admin;
    struct tls_context *tls; /* NULL: without TLS; the API takes a reference of its own */
    const struct log *log;
};

/* The API listens on conf->api.listen when this returns. ERR_IN_USE: the text names the address. */
int api_start(struct api **out, const struct api_options *o, struct err *err) MUST_CHECK;
void api_address(struct api *api, struct sock_addr *out);
void api_tls(struct api *api, struct tls_context *tls); /* for new connections */
/* Lets running requests finish until the deadline, then cuts them off. False: some still run, as
 * with http_server_stop(). */
bool api_stop(struct api *api, uint64_t deadline_ns);
void api_free(struct api *api); /* waits for requests that still run; NULL is fine */

#endif
