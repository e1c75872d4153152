/* Declarations that worker.c and worker_keep.c share. */
#ifndef COORD_WORKER_INT_H
#define COORD_WORKER_INT_H

#include "coord/worker.h"
#include "os/loop.h"

enum { WORKER_CHORES = 7 };

enum ending_why { END_NOT, END_STOP, END_LOST, END_LATE, END_CANCELLED };

/* A running task. It is in worker.running, which worker.lock guards. */
struct running {
    struct list node;
    struct task_run run;
    struct task task;
    uint64_t started_ns;
    int64_t started_ms;
    uint64_t deadline_ns; /* when the task must end (clock_mono_ns()); 0: no deadline */
    /* When the lease ends (clock_mono_ns()), counted from the moment before the store was asked for
     * it. */
    _Atomic(uint64_t) lease_until_ns;
    _Atomic(int) ended; /* an enum ending_why: why the handler must return */
};

struct worker {
    struct worker_options o; /* `queues` and `handlers` are the worker's own copies */
    struct str *names;       /* names of `o.queues`, in the same order */
    char id[160];            /* host:pid:uuid */
    char host[65];
    int64_t started_ms;
    struct thread *threads;
    struct loop keeper;
    uint64_t chore_ns[WORKER_CHORES]; /* when each chore is due; used by `keeper` alone */
    struct store_subscription *wake_up, *cancel;
    _Atomic(uint64_t) done, failed, put_back;

    struct mutex lock; /* class "worker"; guards the members below */
    struct cond work;  /* signalled when `hints` has grown or `stop` is set */
    struct cond idle;  /* signalled when a task has ended */
    struct list running;
    size_t busy;
    size_t hints; /* how many idle threads should look for tasks */
    bool stop;
};

/* Lets one idle thread look for a task. */
void worker_hint(struct worker *w);
loop_step_fn worker_keep;
void worker_keep_stop(struct worker *w);

#endif
