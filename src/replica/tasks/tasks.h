/* The handlers of replication's tasks (docs/replication.md, "Work") and of checks (docs/diff.md),
 * for coord/worker.h.
 *
 * Each handler first reads the status of its replication. If the replication was removed, there is
 * nothing to do; if it is paused, the task waits. Then the handler waits for the limits of the
 * storages, takes the lock of the thing at the destination (C1), reads its version vector (V4), and
 * looks at what both sides have (C6). At the end it confirms what it has done (C2). A task says
 * which thing changed, never how (R2), so it may run at any time and any number of times. */
#ifndef REPLICA_TASKS_TASKS_H
#define REPLICA_TASKS_TASKS_H

#include "coord/lock.h"
#include "coord/replication.h"
#include "coord/worker.h"
#include "copy/copy.h"

struct tasks;

/* The limits of a storage; 0: no limit. */
struct storage_limits {
    double requests_per_second, bytes_per_second;
};

struct tasks_options {
    struct replications *replications; /* borrowed, like all other members */
    struct store *app, *lock;          /* appDB and lockDB, joined by store_join() */
    /* The queue's store is joined with `app` and `lock`. NULL: there are no checks, and uploads
     * that copies leave behind stay. */
    struct queue *queue;
    struct locks *locks;  /* locks in the store `lock` */
    struct keyring *keys; /* keys of sealed objects; NULL: sealed objects cannot be copied */
    /* Returns the storage of this name; NULL: this process does not have the storage. The storage
     * is borrowed while handlers run. */
    struct storage *(*find)(void *ctx, struct str name);
    /* Sets *out to the limits of a storage. NULL: there are no limits. */
    void (*limits)(void *ctx, struct str storage, struct storage_limits *out);
    /* Returns whether every gateway knows the replication, so that its first listing may begin
     * (P3). NULL: every gateway knows every replication. */
    bool (*is_known)(void *ctx, const struct replication_id *id);
    /* Returns when all changes of the storage that were made before the call are recorded (S10).
     * NULL: changes are always recorded. */
    int (*settle)(void *ctx, struct storage *s, struct err *err);
    /* Returns the name of the main storage, where buckets that have no policy are. NULL: it is not
     * known. */
    struct str (*main)(void *ctx);
    void *ctx;
    int64_t pause_retry_s;    /* seconds until a task of a paused replication runs again; 0: 30 */
    uint64_t outstanding_max; /* a listing waits while more copies than this are open; 0: 10,000 */
    uint64_t check_steps;     /* most steps of a check's walk that one task does (D9); 0: 100 */
    struct copy_options copy; /* only the sizes in it are used; 0: the defaults */
};

struct tasks *tasks_new(const struct tasks_options *o);
void tasks_free(struct tasks *t); /* to be called when no handler runs any more; NULL is fine */

/* Fills `out` with the handlers and returns their number. */
enum { TASKS_HANDLERS = 17 };
size_t tasks_handlers(struct tasks *t, struct task_handler out[TASKS_HANDLERS]);

/* The queues that replication uses, with their weights, for coord/worker.h. */
enum { TASKS_QUEUES = 16 };
extern const struct queue_weight tasks_queues[TASKS_QUEUES];

/* Type and queue of the task that aborts an upload that a copy began and that no copy will
 * continue. */
#define UPLOAD_ABORT_TYPE  "upload:abort"
#define UPLOAD_ABORT_QUEUE STR("api")

/* Makes the first task of a new replication, in the arena, for replication_add(). */
struct task tasks_first(struct arena *a, const struct replication_id *id, int priority);

#endif
