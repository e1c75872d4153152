/* Workers: threads that take tasks from the queue and run their handlers, and the housekeeping of
 * docs/queue.md: leases, forwarding, recovery, cleaning, registry. */
#ifndef COORD_WORKER_H
#define COORD_WORKER_H

#include "base/log.h"
#include "coord/queue.h"

struct worker;

struct queue_weight {
    const char *name;
    int weight;
};
extern const struct queue_weight queue_weights[]; /* docs/queue.md, "Queues" */
extern const size_t queue_weight_count;

/* What a handler is given. */
struct task_run {
    const struct task *task;
    struct arena *arena; /* of the run */
    struct log log;      /* with the task's context */
    void *ctx;           /* of the handler */
    int64_t put_back_s;  /* for ERR_AGAIN: when it is to be tried again; 0: soon */
    bool done;           /* with 0: its last script has written that already */
};
/* True when the handler is to return at once, with any code: the lease was lost, the task was
 * cancelled, its time is over, or the worker stops. */
bool task_ended(const struct task_run *run);

/* 0: done. ERR_AGAIN: put back without using a try (Q6). ERR_INVALID: archived at once, as nothing
 * will mend it. Everything else: tried again later. */
typedef int task_fn(struct task_run *run, struct err *err);

struct task_handler {
    const char *type;
    task_fn *fn;
    void *ctx;
};

struct worker_options {
    struct queue *queue;                 /* borrowed */
    const struct task_handler *handlers; /* copied */
    size_t handler_count;
    size_t threads;    /* 0: 16 */
    uint64_t grace_ms; /* at a stop, before running tasks are told to end; 0: 5000 */
    /* Called once at a stop when that time is over and tasks still run: ends what they wait for.
     * NULL: nothing. */
    void (*on_end)(void *ctx);
    void *end_ctx;
    const struct log *log;
};
int worker_start(struct worker **out, const struct worker_options *o, struct err *err) MUST_CHECK;
/* Takes no more; those that run may end by themselves for a while, then are ended and put back. */
void worker_stop(struct worker *w); /* NULL is fine */

struct worker_stats {
    size_t threads, busy;
    uint64_t done, failed, put_back;
};
void worker_stats(struct worker *w, struct worker_stats *out);

#endif
