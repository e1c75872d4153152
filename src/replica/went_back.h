/* Repairs replications after the store went back in time, that is, has lost changes
 * (docs/store-redis.md, I4). Comparing both sides finds the changes that the store has
 * forgotten. */
#ifndef REPLICA_WENT_BACK_H
#define REPLICA_WENT_BACK_H

#include "coord/lock.h"
#include "coord/replication.h"

struct went_back {
    struct replications *replications; /* borrowed, like the other pointers */
    struct queue *queue;
    struct locks *locks;
    const struct log *log;
};
/* Begins the copies of all replications again. ERR_BUSY: another process is doing that. After a
 * failure the caller calls it again. */
int went_back_mend(const struct went_back *w, struct err *err) MUST_CHECK;

#endif
