/* What must be looked after now and then, by one worker's process at a time: replications whose
 * tasks somebody else has deleted (docs/replication.md, P8), switches whose task is gone, vectors
 * of buckets that are replicated no more (V3). */
#ifndef REPLICA_KEEPER_H
#define REPLICA_KEEPER_H

#include "base/log.h"
#include "coord/lock.h"
#include "coord/replication.h"

struct keeper;

struct keeper_options {
    struct replications *replications; /* borrowed, as all */
    struct queue *queue;
    struct locks *locks;
    uint64_t interval_ms;
    const struct log *log;
};
/* Has a thread. */
int keeper_start(struct keeper **out, const struct keeper_options *o, struct err *err) MUST_CHECK;
void keeper_stop(struct keeper *k); /* NULL is fine */
/* One round, now. ERR_BUSY: another process is at it. */
int keeper_run(const struct keeper_options *o, bool (*ended)(void *ctx), void *ctx,
               struct err *err) MUST_CHECK;

#endif
