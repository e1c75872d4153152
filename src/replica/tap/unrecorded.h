/* Changes that clients got an answer for and that are not recorded yet: rows of local storages that
 * their thread has not reached, and intents of remote ones. Whoever tells how far a replication is
 * reads this first and the status afterwards: what is recorded in between counts as an event by
 * then, so no answered change is missed (docs/replication.md, "Status"). */
#ifndef REPLICA_TAP_UNRECORDED_H
#define REPLICA_TAP_UNRECORDED_H

#include "base/map.h"
#include "base/vec.h"
#include "coord/queue.h"

struct routes;
struct taps;

struct unrecorded_options {
    struct taps *taps; /* borrowed, as the others; NULL: this process writes nothing */
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
    int64_t began_ms; /* by the store's clock; 0: not asked yet */
};
/* Counts the changes of this moment. Waits for the rows of this process to be recorded, a second at
 * most. Release `u` also after an error. */
int unrecorded_read(struct unrecorded *u, const struct unrecorded_options *o,
                    struct err *err) MUST_CHECK;
/* *out: unrecorded changes of the bucket at the storage; at least 1 if it cannot be found out that
 * there are none. Asks about a local storage of another process, which may take some seconds. */
int unrecorded_of(struct unrecorded *u, struct str storage, struct str bucket, uint64_t *out,
                  struct err *err) MUST_CHECK;
void unrecorded_release(struct unrecorded *u);

#endif
