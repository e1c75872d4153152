/* Changes that were answered to a client and are not recorded yet. They are outbox rows of local
 * storages that the tap's thread has not reached, and intents of remote storages. A caller that
 * reports how far a replication is reads these changes first and the status afterwards. A change
 * that is recorded in between is then counted by the status, so no answered change is missed
 * (docs/replication.md, "Status"). */
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
    struct map announced; /* number of changes for each "<storage>\n<bucket>" */
    struct map seen;      /* ids of the intents that were counted */
    VEC(struct unrecorded_storage *) storages; /* storages that were asked about */
    uint64_t deadline_ns;
    /* When a storage was first asked about, by the store's clock (ms since 1970); 0: not yet. */
    int64_t began_ms;
};
/* Counts the changes that are unrecorded at this moment. First waits, a second at most, until this
 * process has recorded its changes. The caller releases `u` also after an error. */
int unrecorded_read(struct unrecorded *u, const struct unrecorded_options *o,
                    struct err *err) MUST_CHECK;
/* Sets *out to the number of unrecorded changes of the bucket at the storage. *out is 0 only if it
 * is certain that there are none. If the storage is local to another process, the call may take
 * some seconds. */
int unrecorded_of(struct unrecorded *u, struct str storage, struct str bucket, uint64_t *out,
                  struct err *err) MUST_CHECK;
void unrecorded_release(struct unrecorded *u);

#endif
