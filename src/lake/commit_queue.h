/* Commits of one branch wait for each other in this process, in the order in which they came. This
 * saves the work of trees that would lose their race. Correctness does not depend on it: other
 * processes commit to the same branch (docs/lake.md, C5). */
#ifndef LAKE_COMMIT_QUEUE_H
#define LAKE_COMMIT_QUEUE_H

#include "base/str.h"

struct commit_queue;
struct commit_turn;

struct commit_queue *commit_queue_new(void);
void commit_queue_free(struct commit_queue *q); /* NULL is fine; nobody may be waiting */

/* Waits until no earlier commit of the branch is under way in this process, at most `limit_ms`.
 * Never NULL; the caller goes on in any case. */
struct commit_turn *commit_turn_take(struct commit_queue *q, struct str partition,
                                     struct str branch, uint64_t limit_ms);
void commit_turn_end(struct commit_queue *q, struct commit_turn *t);
/* Returns how many commits are under way or wait. */
size_t commit_queue_count(struct commit_queue *q);
/* Whether a commit of the branch is under way in this process. */
bool commit_turn_is_taken(struct commit_queue *q, struct str partition, struct str branch);

#endif
