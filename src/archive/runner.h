/* Runners: threads that claim accounts from the schedule and sync them, and one thread that
 * maintains the schedule (docs/archive.md, "Runners", U1 to U6).
 *
 * A runner claims one account at a time, so that no claimed account waits for a thread while its
 * lock is held. When there is nothing to claim, only one runner asks the schedule again: after the
 * time that the schedule has named, or when a message reports news. The other runners wait for this
 * runner.
 *
 * The thread that maintains the schedule is the *keeper*. Once a second it checks the schedule. If
 * the store has lost its data, the keeper writes the table of slots to it again and starts the
 * rebuild of the missing slots. If somebody has changed `tracked` by hand, it corrects the indexes.
 * A further thread, the watch, stops a sync whose lock is lost.
 *
 * Any thread may call these functions. */
#ifndef ARCHIVE_RUNNER_H
#define ARCHIVE_RUNNER_H

#include "archive/schedule.h"
#include "os/thread.h"

enum { RUNNER_THREADS = 4, RUNNER_THREADS_MAX = 256 };

struct runner;

/* The outcome of a sync, which decides how its claim is ended. */
enum runner_outcome {
    RUNNER_FULL,   /* every listed repository was stored, unchanged or permanently unavailable */
    RUNNER_FAILED, /* the account is held: it waits before it is tried again */
    RUNNER_BACK,   /* the sync was cancelled, or the forge's host or the satellite rests: the
                    * account may be claimed again, and this does not count as a failure of the
                    * account */
    RUNNER_OUTCOMES
};

struct runner_job {
    struct schedule_claim *claim;
    struct arena *arena; /* released after the sync */
    /* When true, the sync must return soon: the lock was lost, or weir stops. */
    const _Atomic(bool) *cancel;
    /* A sync that returns RUNNER_FAILED may set how long the account waits before the next try. 0:
     * schedule_end_failed() decides. */
    uint64_t hold_ms;
};
/* Syncs one account, and logs the reason if the sync was not full. Several threads call it at
 * once. */
typedef enum runner_outcome runner_sync_fn(void *ctx, struct runner_job *job);

/* Lists the ready sets from which a runner may claim now: one for each host that does not rest and
 * each satellite that is up. The list is made in the arena and has at most SCHEDULE_SETS_MAX sets.
 * *retry_ms is the time after which the list may be longer, or UINT64_MAX. */
typedef int runner_sets_fn(void *ctx, struct arena *a, struct schedule_set **out, size_t *count,
                           uint64_t *retry_ms, struct err *err);

struct rebuild;

struct runner_options {
    struct schedule *schedule; /* borrowed, as everything here */
    struct store *app;         /* appDB, for news */
    struct rebuild *rebuild;   /* NULL: missing slots are not rebuilt */
    size_t threads;            /* number of threads that sync; 0: RUNNER_THREADS */
    bool keeps_only;           /* there is only the keeper, and no thread that syncs */
    uint64_t resync_after_ms;  /* 0: SCHEDULE_RESYNC_MS */
    runner_sync_fn *sync;
    runner_sets_fn *sets;
    void (*table)(void *ctx, struct slots *out); /* copies the table of slots */
    schedule_found_fn *found;                    /* for schedule_mend() */
    void *ctx;                                   /* for the four functions above */
    const struct log *log;
};
int runner_start(struct runner **out, const struct runner_options *o, struct err *err) MUST_CHECK;
/* Stops the runners: they claim no more accounts, the running syncs are cancelled, and their
 * accounts are put back. Returns false when a sync still runs at the deadline (clock_mono_ns());
 * then nothing is freed. `r` may be NULL. */
bool runner_stop(struct runner *r, uint64_t deadline_ns);
/* Makes the runners ask the schedule at once, because the sets have changed. */
void runner_kick(struct runner *r);
/* Changes `resync_after_ms`, when the configuration is reloaded. */
void runner_change(struct runner *r, uint64_t resync_after_ms);

struct runner_numbers {
    uint64_t threads, busy;
    uint64_t ended[RUNNER_OUTCOMES]; /* syncs by outcome */
    uint64_t lost;                   /* syncs whose lock was lost */
    uint64_t claims, claim_errors;
    uint64_t mends, found,
        /* Passes over the indexes; accounts that were added by hand; accounts that were removed by
         * hand. */
        dropped;
    struct schedule_counts counts; /* counts that the keeper read last; `due` and `never` are 0 */
};
void runner_numbers(struct runner *r, struct runner_numbers *out);

#endif
