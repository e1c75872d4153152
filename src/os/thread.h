/* Threads, locks and the pool of blocking threads. All locks use this wrapper, so that code can
 * assert that a lock is held, and so that each lock has a class. docs/threads.md lists the classes
 * and the order in which they may be taken. */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include "base/err.h"
#include "base/list.h"

#include <pthread.h>
#include <stdatomic.h>

struct mutex {
    pthread_mutex_t lock;
    const char *name;       /* the class of the lock, as in docs/threads.md */
    _Atomic(int) owner_tid; /* 0: the lock is free */
};

void mutex_init(struct mutex *m, const char *name);
void mutex_release(struct mutex *m);
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);
void mutex_assert_held(struct mutex *m);

struct cond {
    pthread_cond_t cond; /* uses the monotonic clock */
};

void cond_init(struct cond *c);
void cond_release(struct cond *c);
void cond_wait(struct cond *c, struct mutex *m);
/* Waits for cond_signal() or cond_broadcast(). Returns false when `deadline_ns`, in clock_mono_ns()
 * time, passed first. */
bool cond_wait_until(struct cond *c, struct mutex *m, uint64_t deadline_ns);
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);

typedef void thread_fn(void *ctx);

struct thread {
    pthread_t id;
    bool started;
};

/* Starts a thread. ps and gdb show the first 15 characters of `name`. Signals are blocked in every
 * thread but main. stack_size is in bytes; 0 means the system's default. */
int thread_start(struct thread *t, const char *name, size_t stack_size, thread_fn *fn, void *ctx,
                 struct err *err) MUST_CHECK;
/* Gives the calling thread a low priority for the rest of its life, so that other threads of the
 * process are served first when processors are scarce. */
void thread_low_priority(void);
void thread_join(struct thread *t); /* does nothing for a thread that was never started */

/* A bounded pool that starts threads on demand and ends those that were idle for 10 s. Jobs start
 * in the order in which they were submitted.
 *
 * A job that is about to wait for something outside weir, such as the peer of a connection, calls
 * pool_step_aside(). Then the job no longer counts as busy, and the pool may start another thread
 * in place of its thread. So jobs that only wait cannot keep other jobs from running. At most
 * POOL_ASIDE times max_threads jobs may have stepped aside at a time. */
struct pool;

enum { POOL_ASIDE = 4 };

struct pool_job {
    struct list node; /* owned by the pool from pool_submit() until fn is called */
    thread_fn *fn;
    void *ctx;
};

struct pool_stats {
    size_t threads;       /* existing threads */
    size_t busy, waiting; /* jobs that run and are not aside, and jobs that wait for a thread */
    size_t aside;         /* jobs that have stepped aside */
};

struct pool *pool_new(const char *name, size_t max_threads, size_t max_waiting, size_t stack_size);
/* Adds a job. ERR_BUSY: max_threads are busy and max_waiting jobs wait. ERR_SHUTDOWN: pool_stop()
 * was called. */
int pool_submit(struct pool *p, struct pool_job *job) MUST_CHECK;
struct pool_stats pool_stats(struct pool *p);
/* A job calls this before it waits for a peer. The job then no longer counts as busy, until its
 * function returns. Returns false when too many jobs have stepped aside already: then the job stays
 * busy and should not wait. A second call in the same job changes nothing. */
bool pool_step_aside(struct pool *p) MUST_CHECK;
size_t pool_aside_max(const struct pool *p);
/* Accepts no more jobs. Returns true when all accepted jobs have run, or false at the deadline. */
bool pool_stop(struct pool *p, uint64_t deadline_ns);
void pool_free(struct pool *p); /* call it after pool_stop(); it waits for jobs that still run */

#endif
