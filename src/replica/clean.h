/* Handlers of replication:clean and replication:resync (replica/first.h): both forget what is known
 * of a destination. */
#ifndef REPLICA_CLEAN_H
#define REPLICA_CLEAN_H

#include "coord/replication.h"
#include "coord/worker.h"

struct cleaner {
    struct replications *replications;
    struct store *app;
    struct queue *queue;
};

/* Forgets what is known of the destination: its fields in the vectors of the bucket. `run` says
 * when to break off. */
int clean_vectors(const struct cleaner *c, struct task_run *run, const struct replication_id *id,
                  struct err *err) MUST_CHECK;

/* ctx is a struct cleaner. */
task_fn clean_handle;  /* P5: vectors, cursors and tasks of a replication that was removed */
task_fn resync_handle; /* V4: nothing is known, so everything is compared */

#endif
