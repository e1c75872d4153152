/* The thread that sweeps the buckets of this weir's local storages by their lifecycle
 * configurations. It sweeps once in each interval, and is busy at most a quarter of the time
 * (docs/lifecycle.md).
 *
 * Remote storages have a lifecycle of their own. A local storage belongs to one process, so no
 * other process sweeps it and no lock is needed. */
#ifndef S3_LIFECYCLE_LIFECYCLE_WORKER_H
#define S3_LIFECYCLE_LIFECYCLE_WORKER_H

#include "base/clock.h"
#include "base/log.h"
#include "route/route.h"
#include "s3/lifecycle/lifecycle_sweep.h"

struct lifecycle_worker;

struct lifecycle_worker_options {
    struct routes *routes; /* borrowed; must outlive the worker */
    struct notify *notify; /* announces every removal and transition; borrowed; may be NULL */
    int64_t day_ms;        /* 0: MS_PER_DAY */
    int64_t interval_ms;   /* 0: a day if day_ms is a real day, else half of day_ms */
    /* Returns true if the bucket must not be swept now, because it is being switched to another
     * storage: a rule that removes an old object on one storage would also remove its newer state
     * on the other. May be NULL. */
    bool (*rests)(void *ctx, const struct storage *s, struct str bucket);
    void *ctx;
    const struct log *log;
};

/* Counts since the start of the process. */
struct lifecycle_stats {
    struct lifecycle_counts counts;
    uint64_t sweeps;   /* completed sweeps over all buckets */
    uint64_t buckets;  /* buckets swept to their end */
    uint64_t failures; /* buckets whose sweep failed; they are swept again in the next interval */
    uint64_t running;  /* 1: a sweep is running */
    uint64_t last_ms;  /* when the last sweep ended, ms since 1970; 0: none yet */
    uint64_t last_took_ms;
};

int lifecycle_worker_start(struct lifecycle_worker **out, const struct lifecycle_worker_options *o,
                           struct err *err) MUST_CHECK;
/* Stops the worker: ends its thread after the present action and frees `w`, which may be NULL. */
void lifecycle_worker_stop(struct lifecycle_worker *w);
/* Copies the counts to *out. Any thread may call this function. */
void lifecycle_worker_stats(struct lifecycle_worker *w, struct lifecycle_stats *out);

/* Returns the time at which the interval of `now_ms` began. Intervals are counted from 1970, so
 * that those of a day begin at midnight UTC. */
int64_t lifecycle_slot(int64_t now_ms, int64_t interval_ms);

#endif
