/* The running weir. It is a list of parts, which start in order and stop in the reverse order. Some
 * parts are the server's own: the database, the store, the gateway, the API. The others belong to
 * the rooms (room/room.h), which the server knows by the list that main.c gives it.
 *
 * The struct belongs to the main thread. The services in it are shared; room/services.h says how.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "api/api.h"
#include "base/vec.h"
#include "route/route.h"
#include "room/room.h"

/* A local storage that was added earlier, as a part of /readyz. */
struct added_storage {
    struct routes *routes;
    struct storage *storage;
    char part[80]; /* "storage.disk2" */
};

/* A part with what its functions need. */
struct server_step {
    const struct server_part *own;   /* a part of the server; or */
    const struct room_part *foreign; /* a part of a room */
    void *state;                     /* of the room */
};

struct server {
    struct services services; /* lent to the rooms */
    VEC(struct room_instance) rooms;
    VEC(struct server_step) steps;
    size_t started; /* steps that have started */

    struct conf *start; /* the configuration at the start; never replaced */
    struct conf *conf;  /* the newest configuration; a reload replaces it */
    struct log_sink *sink;
    struct log log;
    struct ready ready;
    bool ports_tried;

    int lock_fd; /* held on <data folder>/lock */
    struct credentials admin;
    bool new_credentials; /* made by this start */
    struct db *db;
    struct added_storage added[ROUTES_STORAGES_MAX];
    VEC(struct queue_weight) queues; /* that workers take tasks from */
    struct worker *worker;           /* NULL: this process is no worker, as the next */
    struct lifecycle_worker *lifecycle;
    struct gateway *gateway; /* NULL: s3.listen is off, or this process is no gateway */
    struct api *api;         /* NULL: api.listen is off */
};

struct server_options {
    struct conf *conf; /* the reference is taken, also by a start that fails */
    const struct room *const *rooms;
    size_t room_count;
    const char *only; /* roles with commas between them; NULL: every role. Borrowed */
};

/* An error's text is one line for the person who started weir. */
int server_start(struct server *s, const struct server_options *o, struct err *err) MUST_CHECK;

/* Lets requests finish within shutdown.timeout. When some still run then, the process ends here. */
void server_stop(struct server *s);

/* Takes over the reloadable keys of `next` (whose reference is taken), or nothing at all. */
int server_reload(struct server *s, struct conf *next, struct err *err) MUST_CHECK;

#endif
