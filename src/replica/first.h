/* Tasks that concern a replication as a whole: begin it anew, clean up after it, bring a user's
 * policy to existing buckets. */
#ifndef REPLICA_FIRST_H
#define REPLICA_FIRST_H

#include "coord/payload.h"

/* These functions make a task in the arena. arena_error() tells whether the task is complete. */

/* The task replication:resync forgets what is known of the destination, and begins the copy as
 * tasks_first() does. */
struct task first_task_resync(struct arena *a, const struct replication_id *id);
/* The task replication:clean deletes what a removed replication leaves behind. */
struct task first_task_clean(struct arena *a, const struct replication_id *id);
/* The task migrate:user gives the buckets of a user the replications of a new user policy. Its id
 * is random, because a task that is running may belong to an earlier policy. */
#define USER_TYPE "migrate:user"
struct task first_task_user(struct arena *a, const struct replication_id *id);

bool first_same(const struct replication_id *a, const struct replication_id *b);

#endif
