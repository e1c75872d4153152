/* Handlers of the tasks replication:clean and replication:resync (replica/first.h). Both delete
 * what the store knows about a destination. */
#ifndef REPLICA_CLEAN_H
#define REPLICA_CLEAN_H

#include "coord/replication.h"
#include "coord/worker.h"

struct cleaner {
    struct replications *replications;
    struct store *app;
    struct queue *queue;
};

/* Removes the destination's fields from the vectors of the bucket and its objects. `run` says when
 * to stop. */
int clean_vectors(const struct cleaner *c, struct task_run *run, const struct replication_id *id,
                  struct err *err) MUST_CHECK;

/* The ctx of both handlers is a struct cleaner. */
task_fn clean_handle;  /* P5: deletes vectors, cursors and tasks of a removed replication */
task_fn resync_handle; /* V4: forgets the vectors and begins the copy anew */

#endif
