/* The running weir. It is a list of parts, which start in order and stop in the reverse order. Some
 * parts are the server's own: the database, the store, the gateway, the API. The other parts belong
 * to the rooms (room/room.h), whose list comes from main.c.
 *
 * The struct belongs to the main thread. Its services are shared with other threads;
 * room/services.h says how. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "api/api.h"
#include "base/vec.h"
#include "route/route.h"
#include "room/room.h"

/* A local storage that an administrator has added, for its check in /readyz. */
struct added_storage {
    struct routes *routes;
    struct storage *storage;
    char part[80]; /* name of the check, such as "storage.disk2" */
};

/* One step of the start: a part of the server or of a room. */
struct server_step {
    const struct server_part *own;   /* a part of the server; NULL: `foreign` is set */
    const struct room_part *foreign; /* a part of a room; NULL: `own` is set */
    void *state;                     /* the room's state; NULL for a part of the server */
};

struct server {
    struct services services; /* shared with the rooms */
    VEC(struct room_instance) rooms;
    VEC(struct server_step) steps;
    size_t started; /* number of steps that have started */

    struct conf *start; /* the configuration at the start; never replaced */
    struct conf *conf;  /* the newest configuration; a reload replaces it */
    struct log_sink *sink;
    struct log log;
    struct ready ready;
    bool ports_tried;

    int lock_fd; /* holds the lock on the file "lock" in the data folder */
    struct credentials admin;
    bool new_credentials; /* this start has made new keys for the administrator */
    struct db *db;
    struct store *kv_store; /* the Redis server of kv.url; NULL: services.kv uses another store */
    struct added_storage added[ROUTES_STORAGES_MAX];
    VEC(struct queue_weight) queues; /* the queues that workers take tasks from */
    /* `worker` and `lifecycle` are NULL when the process is not a worker. */
    struct worker *worker;
    struct lifecycle_worker *lifecycle;
    struct gateway *gateway; /* NULL: s3.listen is off, or the process is not a gateway */
    struct api *api;         /* NULL: api.listen is off */
};

struct server_options {
    struct conf *conf; /* the server becomes the owner of the reference, even if the start fails */
    const struct room *const *rooms;
    size_t room_count;
    const char *only; /* roles, comma-separated; NULL: every role; borrowed */
};

/* Starts all parts. The text of an error is one line for the person who starts weir. */
int server_start(struct server *s, const struct server_options *o, struct err *err) MUST_CHECK;

/* Stops all parts. Requests may finish within shutdown.timeout; if some still run then, the process
 * ends here. */
void server_stop(struct server *s);

/* Applies the reloadable keys of `next`, or on an error none of them. The server becomes the owner
 * of the reference `next`. */
int server_reload(struct server *s, struct conf *next, struct err *err) MUST_CHECK;

#endif
