/* Repairs replications after the store *went back in time*: it has lost changes that it had
 * acknowledged (docs/store-redis.md, I4). Each bucket is copied again, and the comparison of both
 * sides finds the changes that the store has lost. */
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
