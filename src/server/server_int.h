/* Types and functions that the files of the server share. */
#ifndef SERVER_SERVER_INT_H
#define SERVER_SERVER_INT_H

#include "coord/installation.h"
#include "coord/lock.h"
#include "coord/queue.h"
#include "coord/worker.h"
#include "db/db.h"
#include "http/server.h"
#include "route/remotes.h"
#include "route/users.h"
#include "s3/gateway/gateway.h"
#include "s3/lifecycle/lifecycle_worker.h"
#include "s3/log/access_log.h"
#include "s3/notify/notify.h"
#include "server/server.h"

/* Functions that start and stop one of the server's own parts. A part that fails to start undoes
 * what it began, and its stop function is not called. */
typedef int server_start_fn(struct server *s, struct err *err);
typedef void server_stop_fn(struct server *s); /* may end the process: server_stop_by_force() */

/* Ends the process. Called when a request still runs at the deadline, because a disk or the store
 * does not answer. Parts that started earlier cannot be stopped then, because the request uses
 * them. No data are lost: everything durable is on disk. */
_Noreturn void server_stop_by_force(struct server *s);

/* --- server_ports.c --- */

/* Both functions check that weir can listen on every address. server_try_ports_first() checks only
 * if there is no data folder yet. */
server_start_fn server_try_ports_first, server_try_ports;

/* --- server_folder.c: the data folder, the first administrator's keys, the database --- */

server_start_fn server_start_folder, server_start_credentials, server_keep_credentials,
    server_start_db;
server_stop_fn server_stop_folder, server_stop_credentials, server_stop_db;

/* --- server_store.c: the coordination store, its installation, and the queue --- */

server_start_fn server_start_stores, server_start_installation, server_start_queue;
server_stop_fn server_stop_stores, server_stop_installation, server_stop_queue;

/* --- server_kv.c: the key-value store of the lake --- */

server_start_fn server_start_kv;
server_stop_fn server_stop_kv;

/* --- server_routes.c: users, storages and routes, and the lease --- */

server_start_fn server_start_users, server_start_routes, server_start_remotes, server_make_lease,
    server_start_lease;
server_stop_fn server_stop_users, server_stop_routes, server_stop_remotes, server_free_lease,
    server_stop_lease;

/* --- server_work.c: work in the background --- */

server_start_fn server_start_notify, server_start_lifecycle, server_start_access_log,
    server_start_worker;
server_stop_fn server_stop_notify, server_stop_lifecycle, server_stop_access_log,
    server_stop_worker;

/* --- server_listen.c: the pool of threads and the endpoints --- */

server_start_fn server_start_pool, server_start_s3, server_start_api;
server_stop_fn server_stop_pool, server_stop_s3, server_stop_api;
/* Makes a new TLS context for a running endpoint; *out stays NULL for plain HTTP. `name` is for
 * error messages. */
int server_reload_tls(struct tls_context **out, const char *name, const struct conf_tls *start,
                      const struct conf_tls *next, struct err *err) MUST_CHECK;

#endif
