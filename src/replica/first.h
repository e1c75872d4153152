/* Tasks that concern a replication as a whole. They begin its copy again, clean up after it, or
 * apply a user's policy to buckets that exist. */
#ifndef REPLICA_FIRST_H
#define REPLICA_FIRST_H

#include "coord/payload.h"

/* These functions make a task in the arena. arena_error() tells whether the task is complete. */

/* Makes the task replication:resync. It removes what the store knows about the destination, and
 * begins the copy as tasks_first() does. */
struct task first_task_resync(struct arena *a, const struct replication_id *id);
/* Makes the task replication:clean. It deletes the data that a removed replication leaves in the
 * store. */
struct task first_task_clean(struct arena *a, const struct replication_id *id);
/* Makes the task migrate:user. It gives the buckets of a user the replications of a new user
 * policy. Its id is random, because a task that is running may belong to an earlier policy. */
#define USER_TYPE "migrate:user"
struct task first_task_user(struct arena *a, const struct replication_id *id);

bool first_same(const struct replication_id *a, const struct replication_id *b);

#endif
