/* The work queue: tasks in queueDB, in Asynq's layout. docs/queue.md has the invariants (Q1 to Q9),
 * the keys and the times. Each change of a task's state is one script on the store (Q1), and the
 * store's clock decides when a lease ends and when a task is due. Any thread may call these
 * functions.
 *
 * Calls fail with the store's codes (store/store.h), and with the codes that are named below. The
 * strings of a task that a call returns are in the arena of that call. */
#ifndef COORD_QUEUE_H
#define COORD_QUEUE_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/store.h"

struct queue;

#define QUEUE_CHANNEL STR("weir:queue")   /* a message says that a queue has pending tasks again */
#define QUEUE_CANCEL  STR("asynq:cancel") /* a message is the id of a task to cancel */

enum {
    TASK_RETRY_MAX = 25,
    TASK_TIMEOUT_S = 8 * S_PER_HOUR,
    TASK_PAYLOAD_MAX = 64 * 1024,
    QUEUE_LEASE_S = 30,
    QUEUE_BATCH_MAX = 1000, /* most tasks in one call of queue_add_many() */
};

/* A task, with the fields of Asynq's message. 0 or empty: the field is not set. Times are seconds
 * since 1970. */
struct task {
    struct str type;
    struct str payload;
    struct str id;    /* empty: queue_add() makes a random one */
    struct str queue; /* name of the queue */
    int retry_max;    /* number of tries after the first; 0: TASK_RETRY_MAX; -1: no further tries */
    int retried;      /* number of tries after the first that were made so far */
    struct str error; /* error of the last try that failed */
    int64_t timeout_s, deadline_s;
    struct str unique_key;
    int64_t last_failed_s;
    int64_t retention_s; /* seconds for which the task is kept after it is done */
    int64_t completed_s;
    struct str token; /* proves that the caller holds the lease (Q4); not in the message */
};

struct queue *queue_new(struct store *s); /* `s` is queueDB; borrowed */
/* Makes each call that adds tasks a numbered step from now on (coord/seen.h). `seen` is borrowed.
 * Called before other threads use the queue. */
struct seen;
void queue_number_steps(struct queue *q, struct seen *seen);
void queue_free(struct queue *q); /* NULL is fine */
struct store *queue_store(struct queue *q);

/* --- adding --- */

/* Adds a task. `delay_s` 0: it is pending at once; else it is scheduled. ERR_EXISTS: there is a
 * task with this id that is neither archived nor completed (Q7). */
int queue_add(struct queue *q, const struct task *t, int64_t delay_s, struct err *err) MUST_CHECK;
/* Adds several tasks in one script. Tasks that queue_add() would refuse with ERR_EXISTS are left
 * out. *added is the number of tasks that were added; `added` may be NULL. */
int queue_add_many(struct queue *q, const struct task *tasks, size_t count, size_t *added,
                   struct err *err) MUST_CHECK;
/* Adds a task that is pending at once. ERR_EXISTS: a task of the same type and payload was added in
 * the last `ttl_s` seconds. */
int queue_add_unique(struct queue *q, const struct task *t, int64_t ttl_s,
                     struct err *err) MUST_CHECK;
/* Moves scheduled tasks to `delay_s` seconds from now. Tasks that are not scheduled any more stay
 * as they are. */
int queue_postpone(struct queue *q, struct str queue, const struct str *ids, size_t count,
                   int64_t delay_s, struct err *err) MUST_CHECK;

/* --- working --- */

/* Takes the oldest pending task of the first queue in `names` that has a pending task and is not
 * paused. The caller then has a lease on the task. ERR_NOT_FOUND: there is no such task. */
int queue_take(struct queue *q, struct arena *a, const struct str *names, size_t count,
               struct task *out, struct err *err) MUST_CHECK;
/* Prolongs the leases of tasks. `pairs` has the id and the token of each task. *lost is set to the
 * ids of the tasks that the caller does not hold any more. */
int queue_extend(struct queue *q, struct arena *a, struct str queue, const struct store_args *pairs,
                 struct store_args *lost, struct err *err) MUST_CHECK;
/* This call and the next three end the caller's lease on a task. ERR_NOT_FOUND: the task is not
 * active, or another worker has taken it since (Q4). */
int queue_done(struct queue *q, const struct task *t, struct err *err) MUST_CHECK;
/* Puts the task back for another try. `counts` true: this try has failed, and after the last try
 * the task is archived instead. `counts` false: the task is put back without using up a try (Q6).
 * `error` is the reason; it may be empty. `delay_s` is the time until the next try in seconds; -1:
 * the rule of docs/queue.md decides. */
int queue_retry(struct queue *q, const struct task *t, int64_t delay_s, bool counts,
                struct str error, struct err *err) MUST_CHECK;
int queue_archive(struct queue *q, const struct task *t, struct str error,
                  struct err *err) MUST_CHECK;
/* Puts the task back to the front of its queue, as if it had not been taken. A worker that stops
 * calls this. */
int queue_requeue(struct queue *q, const struct task *t, struct err *err) MUST_CHECK;

/* --- housekeeping, which every worker does (coord/worker.h) ---
 *
 * Each call handles some tasks of each of the named queues: call again while *moved is not 0. */

/* Moves the scheduled and retried tasks whose time has come to the state pending. */
int queue_forward(struct queue *q, const struct store_args *names, size_t *moved,
                  struct err *err) MUST_CHECK;
/* Counts the present try of each active task as failed when the task's lease has ended (Q3). */
int queue_recover(struct queue *q, const struct store_args *names, size_t *moved,
                  struct err *err) MUST_CHECK;
/* Removes completed and archived tasks that need not be kept any longer. */
int queue_clean(struct queue *q, const struct store_args *names, size_t *moved,
                struct err *err) MUST_CHECK;

/* --- looking and managing --- */

enum task_state {
    TASK_PENDING,
    TASK_ACTIVE,
    TASK_SCHEDULED,
    TASK_RETRY,
    TASK_ARCHIVED,
    TASK_COMPLETED,
    TASK_STATES
};
extern const char *const task_state_names[TASK_STATES];

struct queue_stats {
    struct str name;
    uint64_t size[TASK_STATES];
    uint64_t processed, failed; /* number of tries that ended; number of tries that failed */
    uint64_t processed_today, failed_today; /* since midnight UTC */
    int64_t latency_ms;                     /* age of the oldest pending task; 0: there is none */
    bool paused;
};
/* Lists all queues that ever had a task, sorted by name. */
int queue_list(struct queue *q, struct arena *a, struct queue_stats **out, size_t *count,
               struct err *err) MUST_CHECK;
struct task_info {
    struct task task;
    enum task_state state;
    /* Seconds since 1970. Scheduled, retry: when the task becomes pending. Archived: when it was
     * archived. Completed: until when it is kept. */
    int64_t due_s;
};
/* Which tasks to list: up to `limit` tasks of one state, the oldest or soonest first. The first
 * `skip` tasks are left out. */
struct queue_page {
    struct str queue;
    enum task_state state;
    size_t skip, limit;
};
int queue_tasks(struct queue *q, struct arena *a, const struct queue_page *page,
                struct task_info **out, size_t *count, struct err *err) MUST_CHECK;
int queue_task(struct queue *q, struct arena *a, struct str name, struct str id,
               struct task_info *out, struct err *err) MUST_CHECK;
int queue_pause(struct queue *q, struct str name, bool paused, struct err *err) MUST_CHECK;
/* queue_run_now() makes a task pending at once, queue_delete() removes it. ERR_CONFLICT: the task
 * is active. ERR_NOT_FOUND: there is no such task. */
int queue_run_now(struct queue *q, struct str name, struct str id, struct err *err) MUST_CHECK;
int queue_delete(struct queue *q, struct str name, struct str id, struct err *err) MUST_CHECK;
/* Asks the worker that runs the task to end it, by a message on asynq:cancel. */
int queue_cancel(struct queue *q, struct str id, struct err *err) MUST_CHECK;

#endif
