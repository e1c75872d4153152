/* The work queue: tasks in queueDB, in Asynq's layout. docs/queue.md has invariants (Q1 to Q9),
 * keys and times. Every call is one script on the store, whose clock counts; any thread.
 *
 * Calls fail with the store's codes (store/store.h), else as said. Strings of a task that a call
 * gives are in its arena. */
#ifndef COORD_QUEUE_H
#define COORD_QUEUE_H

#include "base/arena.h"
#include "base/err.h"
#include "store/store.h"

struct queue;

#define QUEUE_CHANNEL STR("weir:queue")   /* a pending list stopped being empty */
#define QUEUE_CANCEL  STR("asynq:cancel") /* the message is a task's id */

enum {
    TASK_RETRY_MAX = 25,
    TASK_TIMEOUT_S = 8 * 3600,
    TASK_PAYLOAD_MAX = 64 * 1024,
    QUEUE_LEASE_S = 30,
    QUEUE_BATCH_MAX = 1000, /* tasks of one queue_add_many() */
};

/* As in Asynq's message; 0 and empty: not set. Times are seconds since 1970. */
struct task {
    struct str type;
    struct str payload;
    struct str id;    /* empty: a random one is made */
    struct str queue; /* name */
    int retry_max;    /* 0: TASK_RETRY_MAX; -1: none */
    int retried;
    struct str error; /* of the last try */
    int64_t timeout_s, deadline_s;
    struct str unique_key;
    int64_t last_failed_s;
    int64_t retention_s; /* kept that long when it is done */
    int64_t completed_s;
    struct str token; /* of the lease; not in the message */
};

struct queue *queue_new(struct store *s); /* queueDB; borrowed */
/* What is added is acknowledged with a number from now on (coord/seen.h); borrowed. Before other
 * threads use the queue. */
struct seen;
void queue_number_steps(struct queue *q, struct seen *seen);
void queue_free(struct queue *q); /* NULL is fine */
struct store *queue_store(struct queue *q);

/* --- adding --- */

/* `delay_s` 0: at once; else it is scheduled. ERR_EXISTS: the id is there and neither archived nor
 * completed (Q7). */
int queue_add(struct queue *q, const struct task *t, int64_t delay_s, struct err *err) MUST_CHECK;
/* All in one script; those whose id is there are left out. *added may be NULL. */
int queue_add_many(struct queue *q, const struct task *tasks, size_t count, size_t *added,
                   struct err *err) MUST_CHECK;
/* At most one such (type, payload) in `ttl_s`: ERR_EXISTS. */
int queue_add_unique(struct queue *q, const struct task *t, int64_t ttl_s,
                     struct err *err) MUST_CHECK;
/* Pushes scheduled tasks back to `delay_s` from now; those that are not scheduled any more are left
 * alone. */
int queue_postpone(struct queue *q, struct str queue, const struct str *ids, size_t count,
                   int64_t delay_s, struct err *err) MUST_CHECK;

/* --- working --- */

/* The first task of the first queue in `names` that has one and is not paused; leased.
 * ERR_NOT_FOUND: there is none. */
int queue_take(struct queue *q, struct arena *a, const struct str *names, size_t count,
               struct task *out, struct err *err) MUST_CHECK;
/* Pushes the leases back; `pairs` are ids and tokens. *lost: the ids that are not ours any more. */
int queue_extend(struct queue *q, struct arena *a, struct str queue, const struct store_args *pairs,
                 struct store_args *lost, struct err *err) MUST_CHECK;
/* Outcomes. ERR_NOT_FOUND: the task is not active, or another took it since (Q4). */
int queue_done(struct queue *q, const struct task *t, struct err *err) MUST_CHECK;
/* `counts`: it is a failure of a try, else it is put back (Q6), with the reason if there is one.
 * Past the last try it is archived. `delay_s` -1: by the rule of docs/queue.md. */
int queue_retry(struct queue *q, const struct task *t, int64_t delay_s, bool counts,
                struct str error, struct err *err) MUST_CHECK;
int queue_archive(struct queue *q, const struct task *t, struct str error,
                  struct err *err) MUST_CHECK;
/* To the head of the line, as if it had not been taken: for a stop. */
int queue_requeue(struct queue *q, const struct task *t, struct err *err) MUST_CHECK;

/* --- what must be done now and then, by any process; worker.h does --- */

/* Some tasks of each of the queues that are named: call again while *moved is not 0. Makes due ones
 * pending; gives those whose lease ended to others; removes what need not be kept any more. */
int queue_forward(struct queue *q, const struct store_args *names, size_t *moved,
                  struct err *err) MUST_CHECK;
int queue_recover(struct queue *q, const struct store_args *names, size_t *moved,
                  struct err *err) MUST_CHECK;
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
    uint64_t processed, failed;             /* in all */
    uint64_t processed_today, failed_today; /* UTC */
    int64_t latency_ms;                     /* age of the oldest pending one; 0: none */
    bool paused;
};
/* Of all queues, by name. */
int queue_list(struct queue *q, struct arena *a, struct queue_stats **out, size_t *count,
               struct err *err) MUST_CHECK;
struct task_info {
    struct task task;
    enum task_state state;
    int64_t due_s; /* scheduled, retry: when; archived, completed: since, until */
};
/* From `skip` on, oldest or soonest first. */
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
/* Of one that is not active: ERR_CONFLICT. */
int queue_run_now(struct queue *q, struct str name, struct str id, struct err *err) MUST_CHECK;
int queue_delete(struct queue *q, struct str name, struct str id, struct err *err) MUST_CHECK;
/* Asks whichever worker has it to give it up (published on asynq:cancel). */
int queue_cancel(struct queue *q, struct str id, struct err *err) MUST_CHECK;

#endif
