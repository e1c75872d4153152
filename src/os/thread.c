/* Locks, threads and the bounded pool of blocking threads. */
#include "os/thread.h"
#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { IDLE_SECONDS = 10 };

/* Checks the result of a pthread call, which can fail only because of a bug in weir. */
static void must(int result)
{
    BUG_ON(result != 0);
}

static int this_thread(void)
{
    static _Thread_local int tid;
    if (!tid)
        tid = gettid();
    return tid;
}

void mutex_init(struct mutex *m, const char *name)
{
    must(pthread_mutex_init(&m->lock, NULL));
    m->name = name;
    atomic_init(&m->owner_tid, 0);
}

void mutex_release(struct mutex *m)
{
    must(pthread_mutex_destroy(&m->lock));
}

/* Reading and writing `owner_tid` needs no memory order: the holder of the lock reads the id that
 * it wrote itself, and any other thread only needs to see an id that is not its own. */
void mutex_lock(struct mutex *m)
{
    must(pthread_mutex_lock(&m->lock));
    atomic_store_explicit(&m->owner_tid, this_thread(), memory_order_relaxed);
}

void mutex_unlock(struct mutex *m)
{
    atomic_store_explicit(&m->owner_tid, 0, memory_order_relaxed);
    must(pthread_mutex_unlock(&m->lock));
}

void mutex_assert_held(struct mutex *m)
{
    BUG_ON(atomic_load_explicit(&m->owner_tid, memory_order_relaxed) != this_thread());
}

void cond_init(struct cond *c)
{
    pthread_condattr_t attr;
    must(pthread_condattr_init(&attr));
    must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    must(pthread_cond_init(&c->cond, &attr));
    must(pthread_condattr_destroy(&attr));
}

void cond_release(struct cond *c)
{
    must(pthread_cond_destroy(&c->cond));
}

void cond_wait(struct cond *c, struct mutex *m)
{
    mutex_assert_held(m);
    must(pthread_cond_wait(&c->cond, &m->lock));
    atomic_store_explicit(&m->owner_tid, this_thread(), memory_order_relaxed);
}

bool cond_wait_until(struct cond *c, struct mutex *m, uint64_t deadline_ns)
{
    struct timespec at = {(time_t)(deadline_ns / NS_PER_S), (long)(deadline_ns % NS_PER_S)};
    int result;

    mutex_assert_held(m);
    result = pthread_cond_timedwait(&c->cond, &m->lock, &at);
    BUG_ON(result != 0 && result != ETIMEDOUT);
    atomic_store_explicit(&m->owner_tid, this_thread(), memory_order_relaxed);
    return result == 0;
}

void cond_signal(struct cond *c)
{
    must(pthread_cond_signal(&c->cond));
}

void cond_broadcast(struct cond *c)
{
    must(pthread_cond_broadcast(&c->cond));
}

struct start {
    thread_fn *fn;
    void *ctx;
    char name[16];
};

static void *thread_main(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    pthread_setname_np(pthread_self(), start.name);
    start.fn(start.ctx);
    return NULL;
}

int thread_start(struct thread *t, const char *name, size_t stack_size, thread_fn *fn, void *ctx,
                 struct err *err)
{
    struct start *start = xzalloc(sizeof(*start));
    pthread_attr_t attr;
    sigset_t all, old;
    int result;

    *start = (struct start){.fn = fn, .ctx = ctx};
    memcpy(start->name, name, size_min(strlen(name), sizeof(start->name) - 1));
    must(pthread_attr_init(&attr));
    if (stack_size)
        must(pthread_attr_setstacksize(&attr, stack_size));
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* SIGBUS stays unblocked for process_exit_on_bad_page() */
    must(pthread_sigmask(SIG_SETMASK, &all, &old));
    result = pthread_create(&t->id, &attr, thread_main, start);
    must(pthread_sigmask(SIG_SETMASK, &old, NULL));
    must(pthread_attr_destroy(&attr));
    t->started = result == 0;
    if (result) {
        free(start);
        return err_errno(err, result, "starting the thread %s", name);
    }
    return 0;
}

/* Lowers the priority of one thread. POSIX says that setpriority() takes a process id, but Linux
 * has a priority for each thread and accepts a thread id. */
void thread_low_priority(void)
{
    enum { LOW = 10 };
    static _Thread_local bool is_low;

    if (!is_low)
        setpriority(PRIO_PROCESS, (id_t)this_thread(), LOW);
    is_low = true;
}

void thread_join(struct thread *t)
{
    if (t->started)
        must(pthread_join(t->id, NULL));
    t->started = false;
}

/* A thread that has waited IDLE_SECONDS for a job ends. Each thread that ends joins the thread that
 * ended before it, and pool_free() joins the last one. So when pool_free() returns, no thread is
 * left, not even in the destructors that libraries run at a thread's end. */
struct pool {
    struct mutex lock; /* guards all members below */
    struct cond work;  /* signalled when a job was added or the pool is stopping */
    struct cond quiet; /* signalled when a job or a thread ended while the pool is stopping */
    struct list jobs;
    const char *name;
    size_t max_threads, max_waiting, stack_size;
    size_t threads, busy, waiting, aside; /* the numbers that pool_stats() returns */
    struct thread ended;                  /* the last thread that ended, not joined yet */
    bool stopping;
};

struct pool *pool_new(const char *name, size_t max_threads, size_t max_waiting, size_t stack_size)
{
    struct pool *p = xzalloc(sizeof(*p));
    BUG_ON(max_threads == 0);
    mutex_init(&p->lock, "pool");
    cond_init(&p->work);
    cond_init(&p->quiet);
    list_init(&p->jobs);
    p->name = name;
    p->max_threads = max_threads;
    p->max_waiting = max_waiting;
    p->stack_size = stack_size;
    return p;
}

/* Whether the job of this thread has stepped aside. */
static _Thread_local bool is_aside;

/* Returns the number of threads whose job has not stepped aside, or that have no job. */
static size_t pool_present(const struct pool *p)
{
    return p->threads - p->aside;
}

/* Takes the next job, or returns NULL when this thread should end. */
static struct pool_job *next_job(struct pool *p)
{
    uint64_t deadline = clock_mono_ns() + IDLE_SECONDS * NS_PER_S;

    mutex_assert_held(&p->lock);
    if (pool_present(p) > p->max_threads) /* more threads were started while jobs were aside */
        return NULL;
    while (list_empty(&p->jobs)) {
        if (p->stopping || !cond_wait_until(&p->work, &p->lock, deadline))
            break;
    }
    if (list_empty(&p->jobs))
        return NULL;
    p->waiting--;
    return list_entry(list_shift(&p->jobs), struct pool_job, node);
}

static void pool_thread(void *ctx)
{
    struct pool *p = ctx;
    struct pool_job *job;

    mutex_lock(&p->lock);
    while ((job = next_job(p))) {
        thread_fn *fn = job->fn;
        void *arg = job->ctx;
        p->busy++;
        mutex_unlock(&p->lock);
        fn(arg);
        mutex_lock(&p->lock);
        if (is_aside)
            p->aside--;
        else
            p->busy--;
        is_aside = false;
        if (p->stopping)
            cond_broadcast(&p->quiet);
    }
    struct thread before = p->ended;
    p->ended = (struct thread){pthread_self(), true};
    p->threads--;
    cond_broadcast(&p->quiet);
    mutex_unlock(&p->lock);
    thread_join(&before);
}

/* Starts one more thread if every existing thread has a job. A failed start is an error only when
 * the pool has no thread at all; otherwise the job waits for the existing threads. */
static int pool_grow(struct pool *p)
{
    struct thread t;

    mutex_assert_held(&p->lock);
    if (p->busy + p->waiting < pool_present(p) || pool_present(p) >= p->max_threads)
        return 0;
    if (thread_start(&t, p->name, p->stack_size, pool_thread, p, NULL) < 0)
        return pool_present(p) ? 0 : ERR_BUSY;
    p->threads++;
    return 0;
}

int pool_submit(struct pool *p, struct pool_job *job)
{
    int code = 0;

    mutex_lock(&p->lock);
    if (p->stopping)
        code = ERR_SHUTDOWN;
    else if (p->busy + p->waiting >= p->max_threads + p->max_waiting)
        code = ERR_BUSY;
    else
        code = pool_grow(p);
    if (code == 0) {
        list_push(&p->jobs, &job->node);
        p->waiting++;
        cond_signal(&p->work);
    }
    mutex_unlock(&p->lock);
    return code;
}

struct pool_stats pool_stats(struct pool *p)
{
    struct pool_stats stats;
    mutex_lock(&p->lock);
    stats = (struct pool_stats){p->threads, p->busy, p->waiting, p->aside};
    mutex_unlock(&p->lock);
    return stats;
}

size_t pool_aside_max(const struct pool *p)
{
    return POOL_ASIDE * p->max_threads;
}

bool pool_step_aside(struct pool *p)
{
    if (is_aside)
        return true;
    mutex_lock(&p->lock);
    is_aside = p->aside < pool_aside_max(p);
    if (is_aside) {
        p->aside++;
        p->busy--;
        if (p->waiting)
            (void)!pool_grow(p); /* on failure the jobs wait for the existing threads */
    }
    mutex_unlock(&p->lock);
    return is_aside;
}

bool pool_stop(struct pool *p, uint64_t deadline_ns)
{
    bool done;

    mutex_lock(&p->lock);
    p->stopping = true;
    cond_broadcast(&p->work);
    while (p->busy + p->waiting + p->aside && cond_wait_until(&p->quiet, &p->lock, deadline_ns))
        ;
    done = p->busy + p->waiting + p->aside == 0;
    mutex_unlock(&p->lock);
    return done;
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    mutex_lock(&p->lock);
    p->stopping = true;
    cond_broadcast(&p->work);
    while (p->threads)
        cond_wait(&p->quiet, &p->lock);
    mutex_unlock(&p->lock);
    thread_join(&p->ended);
    cond_release(&p->work);
    cond_release(&p->quiet);
    mutex_release(&p->lock);
    free(p);
}
