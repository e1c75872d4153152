/* Repairs replications after the store went back in time (docs/store-redis.md, I4): comparing finds
 * what was changed and forgotten. */
#ifndef REPLICA_WENT_BACK_H
#define REPLICA_WENT_BACK_H

#include "coord/lock.h"
#include "coord/replication.h"

struct went_back {
    struct replications *replications; /* borrowed, as the others */
    struct queue *queue;
    struct locks *locks;
    const struct log *log;
};
/* Begins the copies of all replications anew. ERR_BUSY: another process does it. Call it again when
 * it fails. */
int went_back_mend(const struct went_back *w, struct err *err) MUST_CHECK;

#endif
