/* Periodic checks that one worker process at a time makes. They restore deleted tasks of
 * replications (docs/replication.md, P8) and of switches, and delete the version vectors of buckets
 * that are no longer replicated (V3). */
#ifndef REPLICA_KEEPER_H
#define REPLICA_KEEPER_H

#include "base/log.h"
#include "coord/lock.h"
#include "coord/replication.h"

struct keeper;

struct keeper_options {
    struct replications *replications; /* borrowed, like the other pointers */
    struct queue *queue;
    struct locks *locks;
    uint64_t interval_ms;
    const struct log *log;
};
/* Starts the keeper's thread. */
int keeper_start(struct keeper **out, const struct keeper_options *o, struct err *err) MUST_CHECK;
void keeper_stop(struct keeper *k); /* NULL is fine */
/* Does one round of checks now. The round stops early when `ended` returns true. ERR_BUSY: another
 * process is doing a round. */
int keeper_run(const struct keeper_options *o, bool (*ended)(void *ctx), void *ctx,
               struct err *err) MUST_CHECK;

#endif
