/* Tasks that concern a replication as a whole: begin it anew, clean up after it, bring a user's
 * policy to existing buckets. */
#ifndef REPLICA_FIRST_H
#define REPLICA_FIRST_H

#include "coord/payload.h"

/* All are made in the arena; arena_error() tells whether they are whole. */

/* replication:resync forgets what is known of the destination; then the copy begins as with
 * tasks_first(). */
struct task first_task_resync(struct arena *a, const struct replication_id *id);
/* replication:clean removes what a removed replication leaves behind. */
struct task first_task_clean(struct arena *a, const struct replication_id *id);
/* migrate:user gives the buckets of a user the replications of a new user policy. Its id is random,
 * since a task that runs may be of an earlier policy. */
#define USER_TYPE "migrate:user"
struct task first_task_user(struct arena *a, const struct replication_id *id);

bool first_same(const struct replication_id *a, const struct replication_id *b);

#endif
