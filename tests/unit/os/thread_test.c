/* thread: locks, the bounded pool, and timers. */
#include "os/thread.h"
#include "base/clock.h"
#include "os/timer.h"
#include "unit/test.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t soon(void)
{
    return clock_mono_ns() + 30 * NS_PER_S;
}

/* A door that jobs wait at, and a count of those that came through. */
struct gate {
    struct mutex lock;
    struct cond changed;
    bool open;
    int arrived, passed;
};

static void gate_init(struct gate *g)
{
    *g = (struct gate){0};
    mutex_init(&g->lock, "gate");
    cond_init(&g->changed);
}

static void gate_release(struct gate *g)
{
    cond_release(&g->changed);
    mutex_release(&g->lock);
}

static void gate_pass(void *ctx)
{
    struct gate *g = ctx;

    mutex_lock(&g->lock);
    g->arrived++;
    cond_broadcast(&g->changed);
    while (!g->open)
        cond_wait(&g->changed, &g->lock);
    g->passed++;
    cond_broadcast(&g->changed);
    mutex_unlock(&g->lock);
}

static void gate_open(void *ctx)
{
    struct gate *g = ctx;

    mutex_lock(&g->lock);
    g->open = true;
    cond_broadcast(&g->changed);
    mutex_unlock(&g->lock);
}

static void gate_wait(struct gate *g, const int *count, int want)
{
    mutex_lock(&g->lock);
    while (*count < want)
        CHECK(cond_wait_until(&g->changed, &g->lock, soon()));
    mutex_unlock(&g->lock);
}

static void count_up(void *ctx)
{
    int *counter = ((void **)ctx)[1];

    for (int i = 0; i < 10000; i++) {
        mutex_lock(((void **)ctx)[0]);
        (*counter)++;
        mutex_unlock(((void **)ctx)[0]);
    }
}

TEST(thread, a_mutex_lets_one_in_at_a_time)
{
    struct mutex m;
    int counter = 0;
    void *ctx[] = {&m, &counter};
    struct thread threads[4] = {0};
    struct err err = {0};

    mutex_init(&m, "test");
    for (int i = 0; i < 4; i++)
        CHECK_OK(thread_start(&threads[i], "a name that is far too long", 0, count_up, ctx, &err));
    for (int i = 0; i < 4; i++)
        thread_join(&threads[i]);
    CHECK_INT(counter, 40000);
    mutex_lock(&m);
    mutex_assert_held(&m);
    mutex_unlock(&m);
    mutex_release(&m);
    thread_join(&threads[0]); /* again: nothing */
}

TEST(thread, asserting_a_lock_that_is_not_held_is_a_bug)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        struct mutex m;
        mutex_init(&m, "test");
        signal(SIGABRT, SIG_DFL);
        mutex_assert_held(&m);
        _exit(0);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}

TEST(thread, waiting_for_a_condition_ends_at_its_deadline)
{
    struct mutex m;
    struct cond c;
    uint64_t deadline = clock_mono_ns() + 2000000;

    mutex_init(&m, "test");
    cond_init(&c);
    mutex_lock(&m);
    while (cond_wait_until(&c, &m, deadline))
        ;
    CHECK(clock_mono_ns() >= deadline);
    mutex_assert_held(&m);
    mutex_unlock(&m);
    cond_release(&c);
    mutex_release(&m);
}

static void read_mask(void *ctx)
{
    pthread_sigmask(SIG_SETMASK, NULL, ctx);
}

TEST(thread, signals_are_blocked_in_threads_only)
{
    struct thread t;
    struct err err = {0};
    sigset_t inside, outside;

    CHECK_OK(thread_start(&t, "mask", 0, read_mask, &inside, &err));
    thread_join(&t);
    read_mask(&outside);
    CHECK(sigismember(&inside, SIGTERM) && sigismember(&inside, SIGPIPE));
    CHECK(!sigismember(&outside, SIGTERM));
}

TEST(pool, refuses_what_is_past_its_bound)
{
    struct gate g;
    struct pool *p = pool_new("test", 2, 1, 0);
    struct pool_job jobs[4];

    gate_init(&g);
    for (int i = 0; i < 4; i++)
        jobs[i] = (struct pool_job){.fn = gate_pass, .ctx = &g};
    for (int i = 0; i < 3; i++)
        CHECK_INT(pool_submit(p, &jobs[i]), 0);
    CHECK_ERR(pool_submit(p, &jobs[3]), ERR_BUSY);
    gate_wait(&g, &g.arrived, 2);
    CHECK_INT(pool_stats(p).busy, 2);
    CHECK_INT(pool_stats(p).waiting, 1);
    CHECK_INT(pool_stats(p).threads, 2);
    gate_open(&g);
    gate_wait(&g, &g.passed, 3);
    while (pool_stats(p).busy)
        sched_yield();
    CHECK_INT(pool_submit(p, &jobs[3]), 0);
    CHECK(pool_stop(p, soon()));
    CHECK_INT(g.passed, 4);
    pool_free(p);
    gate_release(&g);
}

TEST(pool, stopping_waits_for_what_was_accepted_until_the_deadline)
{
    struct gate g;
    struct pool *p = pool_new("test", 1, 10, 0);
    struct pool_job jobs[3];

    gate_init(&g);
    for (int i = 0; i < 3; i++) {
        jobs[i] = (struct pool_job){.fn = gate_pass, .ctx = &g};
        CHECK_INT(pool_submit(p, &jobs[i]), 0);
    }
    CHECK(!pool_stop(p, clock_mono_ns() + 2000000));
    CHECK_ERR(pool_submit(p, &jobs[0]), ERR_SHUTDOWN);
    gate_open(&g);
    CHECK(pool_stop(p, soon()));
    CHECK_INT(g.passed, 3);
    pool_free(p);
    pool_free(NULL);
    gate_release(&g);
}

/* A job that steps aside, and then waits at the gate. */
struct aside {
    struct pool_job job;
    struct pool *pool;
    struct gate *gate;
    bool stepped;
};

static void step_aside(void *ctx)
{
    struct aside *a = ctx;

    a->stepped = pool_step_aside(a->pool);
    if (a->stepped)
        CHECK(pool_step_aside(a->pool)); /* twice is once */
    gate_pass(a->gate);
}

TEST(pool, jobs_that_stepped_aside_leave_their_place_to_others)
{
    enum { ASIDE = 2 * POOL_ASIDE };
    static struct aside jobs[ASIDE + 1];
    struct gate slow, quick;
    struct pool *p = pool_new("test", 2, 100, 0);
    struct pool_job work[4];

    gate_init(&slow);
    gate_init(&quick);
    CHECK_INT(pool_aside_max(p), ASIDE);
    for (int i = 0; i < ASIDE; i++) {
        jobs[i] = (struct aside){{.fn = step_aside, .ctx = &jobs[i]}, p, &slow, false};
        CHECK_INT(pool_submit(p, &jobs[i].job), 0);
    }
    gate_wait(&slow, &slow.arrived, ASIDE); /* all of them, though there are two threads to work */
    CHECK_INT(pool_stats(p).aside, ASIDE);
    CHECK_INT(pool_stats(p).busy, 0);
    gate_open(&quick);
    for (int i = 0; i < 4; i++) {
        work[i] = (struct pool_job){.fn = gate_pass, .ctx = &quick};
        CHECK_INT(pool_submit(p, &work[i]), 0);
    }
    gate_wait(&quick, &quick.passed, 4);
    jobs[ASIDE] = (struct aside){{.fn = step_aside, .ctx = &jobs[ASIDE]}, p, &slow, true};
    CHECK_INT(pool_submit(p, &jobs[ASIDE].job), 0);
    gate_wait(&slow, &slow.arrived, ASIDE + 1);
    CHECK(!jobs[ASIDE].stepped); /* one too many: it stays among those that work */
    CHECK_INT(pool_stats(p).busy, 1);
    gate_open(&slow);
    gate_wait(&slow, &slow.passed, ASIDE + 1);
    while (pool_stats(p).busy + pool_stats(p).aside)
        sched_yield();
    while (pool_stats(p).threads > 2) /* and those whose place was taken end */
        sched_yield();
    CHECK(pool_stop(p, soon()));
    pool_free(p);
    gate_release(&slow);
    gate_release(&quick);
}

TEST(pool, stopping_waits_for_jobs_that_stepped_aside)
{
    struct gate g;
    struct pool *p = pool_new("test", 1, 10, 0);
    struct aside job = {{.fn = step_aside, .ctx = &job}, p, &g, false};

    gate_init(&g);
    CHECK_INT(pool_submit(p, &job.job), 0);
    gate_wait(&g, &g.arrived, 1);
    CHECK(!pool_stop(p, clock_mono_ns() + 2000000));
    gate_open(&g);
    CHECK(pool_stop(p, soon()));
    CHECK_INT(g.passed, 1);
    pool_free(p);
    gate_release(&g);
}

struct numbered {
    struct pool_job job;
    int n;
    int *order, *next;
};

static void note_order(void *ctx)
{
    struct numbered *job = ctx;
    job->order[(*job->next)++] = job->n;
}

TEST(pool, one_thread_runs_jobs_in_the_order_given)
{
    enum { JOBS = 1000 };
    static struct numbered jobs[JOBS];
    static int order[JOBS], next;
    struct pool *p = pool_new("test", 1, JOBS, 64 * KIB);

    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct numbered){{.fn = note_order, .ctx = &jobs[i]}, i, order, &next};
        CHECK_INT(pool_submit(p, &jobs[i].job), 0);
    }
    CHECK(pool_stop(p, soon()));
    CHECK_INT(next, JOBS);
    for (int i = 0; i < JOBS; i++)
        CHECK_INT(order[i], i);
    pool_free(p);
}

static void free_self(void *ctx)
{
    free(ctx);
}

TEST(pool, a_job_may_free_itself_and_threads_are_reused)
{
    struct pool *p = pool_new("test", 4, 100000, 0);

    for (int i = 0; i < 20000; i++) {
        struct pool_job *job = xzalloc(sizeof(*job));
        *job = (struct pool_job){.fn = free_self, .ctx = job};
        CHECK_INT(pool_submit(p, job), 0);
    }
    CHECK(pool_stats(p).threads <= 4);
    CHECK(pool_stop(p, soon()));
    pool_free(p);
}

TEST(timer, calls_in_the_order_of_due_times)
{
    enum { COUNT = 200 };
    static struct timer timers[COUNT];
    static struct numbered notes[COUNT];
    static int order[COUNT], next;
    static uint64_t due[COUNT];
    struct timer blocker = {0}, end = {0};
    struct timers *ts = NULL;
    struct err err = {0};
    struct gate start, done;

    gate_init(&start);
    gate_init(&done);
    done.open = true;
    CHECK_OK(timers_new(&ts, &err));
    timer_set(ts, &blocker, 0, 0, gate_pass, &start);
    gate_wait(&start, &start.arrived, 1);
    /* While the only thread waits at the gate: in a mixed order, set twice, some cancelled. */
    for (int i = 0; i < COUNT; i++) {
        int n = i * 77 % COUNT;
        notes[n] = (struct numbered){.n = n, .order = order, .next = &next};
        timer_set(ts, &timers[n], 0, 0, note_order, &notes[n]);
        timer_set(ts, &timers[n], n * NS_PER_MS, 0, note_order, &notes[n]);
    }
    for (int n = 0; n < COUNT; n++)
        due[n] = timers[n].due_ns;
    for (int n = 50; n < COUNT; n++)
        timer_cancel(ts, &timers[n]);
    timer_set(ts, &end, COUNT * NS_PER_MS, 0, gate_pass, &done);
    gate_open(&start);
    gate_wait(&done, &done.passed, 1);
    timers_free(ts);
    CHECK_INT(next, 50);
    for (int i = 1; i < 50; i++)
        CHECK(due[order[i - 1]] <= due[order[i]] && order[i] < 50);
    gate_release(&start);
    gate_release(&done);
}

TEST(timer, a_periodic_timer_comes_again_until_cancelled)
{
    struct timers *ts = NULL;
    struct timer t = {0};
    struct err err = {0};
    struct gate g;
    int passed;

    gate_init(&g);
    g.open = true;
    CHECK_OK(timers_new(&ts, &err));
    timer_set(ts, &t, 0, 100000, gate_pass, &g);
    gate_wait(&g, &g.passed, 5);
    timer_cancel(ts, &t);
    passed = g.passed;
    CHECK_INT(t.heap_index, 0);
    timer_cancel(ts, &t);
    timers_free(ts);
    CHECK_INT(g.passed, passed);
    timers_free(NULL);
    gate_release(&g);
}

TEST(timer, one_that_is_far_away_is_cancelled_or_forgotten)
{
    struct timers *ts = NULL;
    struct timer far = {0}, farther = {0};
    struct err err = {0};
    struct gate g;

    gate_init(&g);
    CHECK_OK(timers_new(&ts, &err));
    timer_set(ts, &far, 3600 * NS_PER_S, 0, gate_pass, &g);
    timer_set(ts, &farther, UINT64_MAX, 0, gate_pass, &g);
    timer_cancel(ts, &far);
    timers_free(ts);
    CHECK_INT(g.arrived, 0);
    gate_release(&g);
}

TEST(timer, cancelling_waits_for_a_callback_that_runs)
{
    struct timers *ts = NULL;
    struct timer t = {0};
    struct thread opener;
    struct err err = {0};
    struct gate g;

    gate_init(&g);
    CHECK_OK(timers_new(&ts, &err));
    timer_set(ts, &t, 0, 0, gate_pass, &g);
    gate_wait(&g, &g.arrived, 1);
    CHECK_OK(thread_start(&opener, "opener", 0, gate_open, &g, &err));
    timer_cancel(ts, &t);
    CHECK_INT(g.passed, 1);
    thread_join(&opener);
    timers_free(ts);
    gate_release(&g);
}

struct again {
    struct timers *ts;
    struct timer t;
    struct gate g;
};

static void set_again(void *ctx)
{
    struct again *a = ctx;

    timer_set(a->ts, &a->t, 0, 0, set_again, a);
    gate_pass(&a->g);
}

TEST(timer, a_callback_may_set_its_own_timer_and_cancelling_still_ends_it)
{
    struct again a = {0};
    struct err err = {0};
    int passed;

    gate_init(&a.g);
    a.g.open = true;
    CHECK_OK(timers_new(&a.ts, &err));
    timer_set(a.ts, &a.t, 0, 0, set_again, &a);
    gate_wait(&a.g, &a.g.passed, 10);
    timer_cancel(a.ts, &a.t);
    passed = a.g.passed;
    timers_free(a.ts);
    CHECK_INT(a.g.passed, passed);
    gate_release(&a.g);
}
