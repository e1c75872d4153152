/* The queue of commits: in this process, the commits of one branch run one after the other, in the
 * order in which they came. This avoids building trees that would lose their race. Correctness does
 * not depend on the queue, because other processes commit to the same branch too (docs/lake.md,
 * C5).
 *
 * A *turn* is the place of one commit, or of another change of a branch, in the queue. A turn is
 * *slow* while its change waits for webhooks: their hosts, which the repository's owner chose, may
 * take minutes. */
#ifndef LAKE_COMMIT_QUEUE_H
#define LAKE_COMMIT_QUEUE_H

#include "base/str.h"

struct commit_queue;
struct commit_turn;

/* In all branches together, at most `slow_max` turns wait for a slow turn to end; 0: any number. */
struct commit_queue *commit_queue_new(size_t slow_max);
void commit_queue_free(struct commit_queue *q); /* NULL is fine; no commit may be waiting */

/* Waits, at most `limit_ms`, until no earlier commit of the branch is under way in this process.
 * The caller goes on even after a time-out. NULL: `slow_max` turns wait for slow turns already. */
struct commit_turn *commit_turn_take(struct commit_queue *q, struct str partition,
                                     struct str branch, uint64_t limit_ms);
void commit_turn_end(struct commit_queue *q, struct commit_turn *t);
/* Sets whether the turn is slow now. */
void commit_turn_set_slow(struct commit_queue *q, struct commit_turn *t, bool is_slow);
/* Returns the number of commits that run or wait. */
size_t commit_queue_count(struct commit_queue *q);
/* Whether a commit of the branch runs or waits in this process. */
bool commit_turn_is_taken(struct commit_queue *q, struct str partition, struct str branch);

#endif
