/* Between the files of the server. */
#ifndef SERVER_SERVER_INT_H
#define SERVER_SERVER_INT_H

#include "http/endpoint.h"
#include "server/server.h"

enum {
    APP_DB,
    QUEUE_DB,
    LOCK_DB,
    CONFIG_DB,
    JOINED_DATABASES,
    SWARM_DB = JOINED_DATABASES
}; /* of server.stores */

/* --- server.c --- */

/* "api.listen (weir.yaml:3): ..." before an error that this key's value led to. */
int server_name_key(const struct server *s, const char *name, int code, struct err *err);

/* --- server_ports.c: parts of the table in server.c --- */

/* Whether all can be listened on; the first unless there is a data folder already. */
int server_try_ports_first(struct server *s, struct err *err) MUST_CHECK;
int server_try_ports(struct server *s, struct err *err) MUST_CHECK;

/* --- server_store.c: parts of the table in server.c --- */

int server_start_stores(struct server *s, struct err *err) MUST_CHECK;
void server_stop_stores(struct server *s);
/* Whether the store is the one that the data folder knows; then, once users and storages were read,
 * that it is remembered, and copied. */
int server_start_installation(struct server *s, struct err *err) MUST_CHECK;
void server_stop_installation(struct server *s);
int server_start_keeping(struct server *s, struct err *err) MUST_CHECK;
void server_stop_keeping(struct server *s);

/* --- server_work.c: parts of the table in server.c --- */

int server_start_queue(struct server *s, struct err *err) MUST_CHECK;
void server_stop_queue(struct server *s);
int server_start_taps(struct server *s, struct err *err) MUST_CHECK;
void server_stop_taps(struct server *s);
int server_start_worker(struct server *s, struct err *err) MUST_CHECK;
void server_stop_worker(struct server *s);

/* --- server_swarm.c --- */

int server_start_swarm(struct server *s, struct err *err) MUST_CHECK;
/* False when requests still run at the deadline. */
bool server_stop_swarm(struct server *s) MUST_CHECK;
/* Takes over what may change; the rest of `next` is not looked at. */
int server_reload_swarm(struct server *s, const struct conf *next, struct err *err) MUST_CHECK;

/* --- server_torrents.c --- */

int server_start_torrents(struct server *s, struct err *err) MUST_CHECK;
/* Once the tracker listens. */
int server_place_torrents(struct server *s, struct err *err) MUST_CHECK;
void server_stop_torrents(struct server *s);

#endif
