/* After the store went back in time (docs/store-redis.md, I4): what was changed and forgotten is
 * found by comparing.
 */
#ifndef REPLICA_WENT_BACK_H
#define REPLICA_WENT_BACK_H

#include "coord/lock.h"
#include "coord/replication.h"

struct went_back {
    struct replications *replications; /* borrowed, as all of these */
    struct queue *queue;
    struct locks *locks;
    const struct log *log;
};
/* Begins the copies of all replications anew. ERR_BUSY: another process is at it. When it fails it
 * is to be called again. */
int went_back_mend(const struct went_back *w, struct err *err) MUST_CHECK;

#endif
