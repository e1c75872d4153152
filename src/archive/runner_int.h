/* Declarations that archive/runner*.c share. */
#ifndef ARCHIVE_RUNNER_INT_H
#define ARCHIVE_RUNNER_INT_H

#include "archive/rebuild.h"
#include "archive/runner.h"
#include "os/loop.h"

/* One thread that syncs accounts. */
struct runner_seat {
    struct runner *runner;
    struct thread thread;
    const struct lock *lock; /* lock of its claim; NULL: it has no claim; guarded by runner.lock */
    _Atomic(bool) cancel;
};

struct runner {
    struct runner_options o;
    _Atomic(uint64_t) resync_after_ms;
    struct store_subscription *news;
    struct loop watch, keep;
    _Atomic(bool) stopping;

    struct mutex lock; /* class "runner"; guards the members below */
    struct cond changed;
    bool asking;     /* a thread is asking the schedule for an account */
    uint64_t ask_ns; /* earliest time at which the next thread may ask (clock_mono_ns()) */
    uint64_t kicks;  /* number of calls of runner_kick() */
    size_t running;  /* number of threads that have not ended */
    struct runner_numbers numbers;

    /* Used by the keeper alone. */
    uint64_t mend_ns, mend_pause_ms; /* no mending before mend_ns; length of the next pause */
    uint64_t rebuild_ns;             /* no tasks of the rebuild are added before this time */
    /* The table of slots has changed, so the next pass is a whole one. */
    bool mend_whole;

    size_t seat_count;
    struct runner_seat seats[];
};

/* One step of each of the two loops. The watch cancels syncs whose lock is lost; the keeper checks
 * the schedule. */
loop_step_fn runner_watch, runner_keep;

#endif
