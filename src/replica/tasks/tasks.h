/* The handlers of replication's tasks (docs/replication.md, "Work") and of checks (docs/diff.md),
 * for coord/worker.h.
 *
 * Each reads the status of its replication first: one that is gone has nothing to do any more, one
 * that is paused waits. Then limits of the storages, the lock of the thing at the destination (C1),
 * its vector (V4), and what both sides have (C6); at the end the confirmation (C2). A task says
 * which thing, never what happened to it (R2), so each may run at any time and any number of times.
 */
#ifndef REPLICA_TASKS_TASKS_H
#define REPLICA_TASKS_TASKS_H

#include "coord/lock.h"
#include "coord/replication.h"
#include "coord/worker.h"
#include "copy/copy.h"

struct tasks;

/* 0: no limit. */
struct storage_limits {
    double requests_per_second, bytes_per_second;
};

struct tasks_options {
    struct replications *replications; /* all borrowed */
    struct store *app, *lock;          /* appDB and lockDB, joined */
    struct queue *queue;               /* joined with them; NULL: no checks, and uploads
                                          that copies leave stay */
    struct locks *locks;               /* on `lock` */
    struct keyring *keys;              /* of sealed objects; NULL: those cannot be copied */
    /* The storage of this name, or NULL; borrowed as long as the handlers run. */
    struct storage *(*find)(void *ctx, struct str name);
    /* May be NULL: there are none. */
    void (*limits)(void *ctx, struct str storage, struct storage_limits *out);
    /* P3: whether every gateway knows the replication, so that its first listing may begin. NULL:
     * they do. */
    bool (*is_known)(void *ctx, const struct replication_id *id);
    /* S10: returns when all changes of the storage that were made before the call are recorded.
     * NULL: they are. */
    int (*settle)(void *ctx, struct storage *s, struct err *err);
    /* Where buckets without a policy are. NULL: not known. */
    struct str (*main)(void *ctx);
    void *ctx;
    int64_t pause_retry_s;    /* until a task of a paused replication is looked at again; 0: 30 s */
    uint64_t outstanding_max; /* copies that are not done before a listing waits; 0: 10,000 */
    uint64_t check_steps;     /* of a check's walk that one task does (D9); 0: 100 */
    struct copy_options copy; /* sizes alone; 0: the defaults */
};

struct tasks *tasks_new(const struct tasks_options *o);
void tasks_free(struct tasks *t); /* no handler runs any more; NULL is fine */

/* Fills `out` with the handlers; returns how many they are. */
enum { TASKS_HANDLERS = 17 };
size_t tasks_handlers(struct tasks *t, struct task_handler out[TASKS_HANDLERS]);

/* The queues of everything that replication puts on the queue, for coord/worker.h. */
enum { TASKS_QUEUES = 16 };
extern const struct queue_weight tasks_queues[TASKS_QUEUES];

/* Aborts an upload that a copy began and nobody will go on with. */
#define UPLOAD_ABORT_TYPE  "upload:abort"
#define UPLOAD_ABORT_QUEUE STR("api")

/* The first task of a new replication, as replication_add() takes it. In the arena. */
struct task tasks_first(struct arena *a, const struct replication_id *id, int priority);

#endif
