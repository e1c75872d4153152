/* A worker: threads that take tasks from the queue and run their handlers, and one thread that does
 * the housekeeping of docs/queue.md: it prolongs leases, makes due tasks pending, recovers tasks of
 * dead workers, removes old tasks, and enters the worker in Asynq's list of servers. */
#ifndef COORD_WORKER_H
#define COORD_WORKER_H

#include "base/log.h"
#include "coord/queue.h"

struct worker;

/* A queue that workers take tasks from. When several queues have tasks, a worker picks among them
 * with probabilities in the ratio of their weights (Q8). */
struct queue_weight {
    const char *name;
    int weight; /* at least 1 */
};

/* One run of a task's handler. */
struct task_run {
    const struct task *task;
    struct arena *arena; /* freed when the handler has returned */
    struct log log;      /* adds the task's type and id to each line */
    void *ctx;           /* task_handler.ctx */
    /* Set by a handler that returns ERR_AGAIN: seconds until the next run; 0: 5. */
    int64_t put_back_s;
    bool done; /* set by a handler that returns 0: its own script has ended the task */
};
/* Returns true when the handler must return soon, with any code: the lease was lost, the task was
 * cancelled or has used up its time, or the worker stops. */
bool task_ended(const struct task_run *run);

/* Runs a task. 0: the task is done. ERR_AGAIN: the task is put back without using up a try
 * (docs/queue.md, Q6). ERR_INVALID: the task is archived at once, because another try would fail
 * too. Any other code: the task is tried again later. */
typedef int task_fn(struct task_run *run, struct err *err);

struct task_handler {
    const char *type; /* type of the tasks that `fn` runs, such as "object:sync" */
    task_fn *fn;
    void *ctx;
};

struct worker_options {
    struct queue *queue;               /* borrowed */
    const struct queue_weight *queues; /* copied, but not the names; each name once */
    size_t queue_count;
    const struct task_handler *handlers; /* copied, but not the types; each type once */
    size_t handler_count;
    size_t threads;    /* number of threads that run tasks; 0: 16 */
    uint64_t grace_ms; /* how long a stop lets running tasks finish; 0: 5000 */
    /* Called once when the worker stops, `grace_ms` has passed and tasks still run. The function
     * ends the waits of handlers: it makes the calls in which they wait return. NULL: nothing is
     * called. */
    void (*on_end)(void *ctx);
    void *end_ctx;
    const struct log *log;
};
int worker_start(struct worker **out, const struct worker_options *o, struct err *err) MUST_CHECK;
/* Stops the worker: it takes no more tasks. Running tasks may finish within `grace_ms`; after that
 * they are ended and put back. Returns when all threads have ended. */
void worker_stop(struct worker *w); /* NULL is fine */

struct worker_stats {
    size_t threads, busy;
    uint64_t done, failed, put_back;
};
void worker_stats(struct worker *w, struct worker_stats *out);

#endif
