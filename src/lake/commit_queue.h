/* The queue of commits: in this process, the commits of one branch run one after the other, in the
 * order in which they came. This avoids building trees that would lose their race. Correctness does
 * not depend on the queue, because other processes commit to the same branch too (docs/lake.md,
 * C5). */
#ifndef LAKE_COMMIT_QUEUE_H
#define LAKE_COMMIT_QUEUE_H

#include "base/str.h"

struct commit_queue;
struct commit_turn;

struct commit_queue *commit_queue_new(void);
void commit_queue_free(struct commit_queue *q); /* NULL is fine; no commit may be waiting */

/* Waits, at most `limit_ms`, until no earlier commit of the branch is under way in this process.
 * The result is never NULL; the caller goes on even after a time-out. */
struct commit_turn *commit_turn_take(struct commit_queue *q, struct str partition,
                                     struct str branch, uint64_t limit_ms);
void commit_turn_end(struct commit_queue *q, struct commit_turn *t);
/* Returns the number of commits that run or wait. */
size_t commit_queue_count(struct commit_queue *q);
/* Whether a commit of the branch runs or waits in this process. */
bool commit_turn_is_taken(struct commit_queue *q, struct str partition, struct str branch);

#endif
