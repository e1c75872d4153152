/* Tasks about a replication as a whole: what it begins with, what begins it anew, and what cleans
 * up behind it. */
#ifndef REPLICA_FIRST_H
#define REPLICA_FIRST_H

#include "coord/payload.h"

/* In the arena; arena_error() tells whether they are whole. */

/* replication:resync: as if nothing were known of the destination; then tasks_first(). */
struct task first_task_resync(struct arena *a, const struct replication_id *id);
/* replication:clean: what a replication that was removed leaves behind. */
struct task first_task_clean(struct arena *a, const struct replication_id *id);
/* migrate:user: a user's policy that is new comes to the buckets that are there. Its id is random:
 * one that runs may be of an earlier policy. */
#define USER_TYPE "migrate:user"
struct task first_task_user(struct arena *a, const struct replication_id *id);

bool first_same(const struct replication_id *a, const struct replication_id *b);

#endif
