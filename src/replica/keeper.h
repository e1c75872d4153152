/* Periodic checks that one worker's process at a time makes: replications whose tasks somebody
 * deleted (docs/replication.md, P8), switches whose task is gone, vectors of buckets that are no
 * longer replicated (V3). */
#ifndef REPLICA_KEEPER_H
#define REPLICA_KEEPER_H

#include "base/log.h"
#include "coord/lock.h"
#include "coord/replication.h"

struct keeper;

struct keeper_options {
    struct replications *replications; /* borrowed, as the others */
    struct queue *queue;
    struct locks *locks;
    uint64_t interval_ms;
    const struct log *log;
};
/* Starts the keeper's thread. */
int keeper_start(struct keeper **out, const struct keeper_options *o, struct err *err) MUST_CHECK;
void keeper_stop(struct keeper *k); /* NULL is fine */
/* Does one round now. ERR_BUSY: another process does one. */
int keeper_run(const struct keeper_options *o, bool (*ended)(void *ctx), void *ctx,
               struct err *err) MUST_CHECK;

#endif
