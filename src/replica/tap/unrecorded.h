/* Changes that clients got an answer for and that are not recorded yet: rows of local storages that
 * their thread has not reached, and intents of remote ones. To tell how far a replication is, read
 * this first and the status afterwards: a change that is recorded in between is counted by the
 * status then, so no answered change is missed (docs/replication.md, "Status"). */
#ifndef REPLICA_TAP_UNRECORDED_H
#define REPLICA_TAP_UNRECORDED_H

#include "base/map.h"
#include "base/vec.h"
#include "coord/queue.h"

struct routes;
struct taps;

struct unrecorded_options {
    struct taps *taps; /* borrowed, like the other pointers; NULL: this process writes nothing */
    struct routes *routes;
    struct queue *queue;
    struct store *config;
};

struct unrecorded_storage;
struct unrecorded {
    struct unrecorded_options o;
    struct arena a;
    struct map announced;                      /* count of changes by "<storage>\n<bucket>" */
    struct map seen;                           /* ids of intents */
    VEC(struct unrecorded_storage *) storages; /* storages that were asked about */
    uint64_t deadline_ns;
    /* When a storage was first asked about, by the store's clock; 0: none was yet. */
    int64_t began_ms;
};
/* Counts the unrecorded changes of this moment. First waits, a second at most, for this process to
 * record its changes. Release `u` also after an error. */
int unrecorded_read(struct unrecorded *u, const struct unrecorded_options *o,
                    struct err *err) MUST_CHECK;
/* *out: the number of unrecorded changes of the bucket at the storage. It is at least 1 if nobody
 * can say that there are none. If the storage is local to another process, the call may take some
 * seconds. */
int unrecorded_of(struct unrecorded *u, struct str storage, struct str bucket, uint64_t *out,
                  struct err *err) MUST_CHECK;
void unrecorded_release(struct unrecorded *u);

#endif
