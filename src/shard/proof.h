/* Looks at the number of the newest map of a bucket that several requests share (docs/sharding.md,
 * H12).
 *
 * A process without a lease cannot know whether it holds the newest map. A read that it has done
 * under map n is right all the same if n is still the newest map after the answer has begun: maps
 * are numbered upwards, so n was the newest one during the whole read. One look at the log proves
 * all reads whose answers began before the look did.
 *
 *     read 1   ──answer──┐
 *     read 2   ────answer┤                     one LIST of one key
 *                        └──► look: begins ──────────────► number of the newest map
 *     read 3   ──────────────────answer──┐
 *                                        └──► the next look
 *
 * Any thread may call these functions. */
#ifndef SHARD_PROOF_H
#define SHARD_PROOF_H

#include "object/bucket.h"
#include "os/thread.h"

struct shard_proof {
    struct bucket *log; /* the map bucket; borrowed */
    struct mutex lock;  /* class "shard.proof"; guards the members below */
    struct cond ended;
    uint64_t begun, done; /* how many looks have begun, and have ended */
    uint64_t number;      /* what the last look has found, unless it failed: */
    struct err failed;    /* code 0: it did not */
};

void proof_init(struct shard_proof *p, struct bucket *log);
void proof_release(struct shard_proof *p);
/* Finds the number of the newest map by a look that begins after this call. Waits while an older
 * look is under way, so that at most one is at any time. */
int proof_look(struct shard_proof *p, uint64_t *number, struct err *err) MUST_CHECK;

#endif
