/* Handlers of the tasks replication:clean and replication:resync (replica/first.h). Both delete
 * what the store knows about a replication's destination (docs/replication.md, P5 and V4). */
#ifndef REPLICA_CLEAN_H
#define REPLICA_CLEAN_H

#include "coord/replication.h"
#include "coord/worker.h"

struct cleaner {
    struct replications *replications;
    struct store *app;
    struct queue *queue;
};

/* Removes the destination's numbers from the version vectors of the bucket and of its objects. The
 * call ends early when `run` says that the task must end. */
int clean_vectors(const struct cleaner *c, struct task_run *run, const struct replication_id *id,
                  struct err *err) MUST_CHECK;

/* The ctx of both handlers is a struct cleaner. */
task_fn clean_handle;  /* deletes vectors, cursors and tasks of a removed replication (P5) */
task_fn resync_handle; /* removes the destination's numbers and begins the copy again (V4) */

#endif
