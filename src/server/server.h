/* The running weir: one struct with every part, built at the start and taken apart at the end.
 *
 * The parts are a table (server.c), started in order and stopped in the reverse order; a part that
 * cannot start stops those before it. The struct belongs to the main thread; what parts share is
 * said in their own headers. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "api/api.h"
#include "base/vec.h"
#include "coord/lock.h"
#include "coord/queue.h"
#include "coord/worker.h"
#include "db/db.h"
#include "os/process.h"
#include "replica/clean.h"
#include "replica/store_keep.h"
#include "replica/switch/switch.h"
#include "replica/tap/tap.h"
#include "replica/tasks/tasks.h"
#include "route/remotes.h"
#include "route/route.h"
#include "route/users.h"
#include "s3/log/access_log.h"
#include "s3/gateway/gateway.h"
#include "s3/lifecycle/lifecycle_worker.h"
#include "s3/notify/notify.h"
#include "store/store.h"
#include "swarm/service.h"
#include "swarm/torrents.h"

/* What --only may choose. The API is always there. */
enum server_role {
    ROLE_GATEWAY = 1,
    ROLE_WORKER = 2,
    ROLE_TRACKER = 4,
    ROLE_ARCHIVE = 8,
    ROLE_ALL = 15
};

/* A local storage that was added earlier, as a part of /readyz. */
struct added_storage {
    struct routes *routes;
    struct storage *storage;
    char part[80]; /* "storage.disk2" */
};

struct server {
    struct conf *start;   /* what it was started with; never replaced */
    struct conf *conf;    /* the newest; replaced by a reload */
    unsigned roles;       /* enum server_role */
    uint64_t deadline_ns; /* for stopping; clock_mono_ns() */

    bool ports_tried;

    struct log_sink *sink;
    struct log log;
    int lock_fd; /* held on <data>/lock */
    struct credentials admin;
    bool new_credentials; /* made by this start */
    struct db *db;
    struct store *stores[STORE_DATABASES];
    bool joined;                       /* the stores are of one server: store_join() */
    struct installation *installation; /* whether the store is the known one */
    struct store_keep *store_keep;
    struct queue *queue;
    VEC(struct queue_weight) queues; /* that workers take tasks from */
    struct locks *locks;
    struct replications *replications; /* NULL: off, as the stores are not joined */
    struct taps *taps;                 /* NULL likewise */
    struct sides *sides;               /* NULL likewise */
    struct lease *lease;
    struct keeper *keeper;           /* NULL where no tasks run */
    char boot[PROCESS_BOOT_LEN + 1]; /* of the machine */
    struct tasks *tasks;             /* what the worker runs; NULL likewise, or not a worker */
    struct keyring *task_keys;
    struct cleaner cleaner;
    struct switcher switcher;
    struct worker *worker;     /* NULL: not a worker */
    struct torrents *torrents; /* of objects; NULL: there is no tracker */
    struct keyring *torrent_keys;
    struct users *users;
    struct routes *routes;
    struct remotes *remotes;
    struct lifecycle_worker *lifecycle; /* NULL: not a worker */
    struct notify *notify;
    struct access_log *access_log;
    struct pool *pool;
    struct ready ready;
    struct added_storage added[ROUTES_STORAGES_MAX];
    struct service swarm;
    char *swarm_path; /* of the snapshot */
    struct gateway *gateway;
    struct http_server *s3; /* NULL: s3.listen is off, or not a gateway */
    struct api *api;
    size_t started; /* parts that run */
};

/* Takes the reference to conf. An error's text is one line for the person who started it. */
int server_start(struct server *s, struct conf *conf, unsigned roles, struct err *err) MUST_CHECK;

/* Graceful within shutdown.timeout; what is not done by then ends with the process. */
void server_stop(struct server *s);

/* Take over what is reloadable from `next` (its reference is taken), or nothing at all. */
int server_reload(struct server *s, struct conf *next, struct err *err) MUST_CHECK;

#endif
