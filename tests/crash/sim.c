/* Virtual time, and threads that take turns (sim.h). */
#include "crash/sim.h"
#include "base/vec.h"
#include "os/thread.h"

#include <sys/random.h>
#include <time.h>
#include <ucontext.h>

enum { SIM_STACK = 256 * 1024, SIM_TASKS_MAX = 4000 };

struct sim_task {
    ucontext_t context;
    struct sim_machine *machine;
    sim_fn *fn;
    void *ctx;
    char *stack;
    const void *key; /* what the task waits for; NULL: only a time */
    uint64_t turn;   /* grows each time that the task goes on, so that old alarms are known */
    bool woken, ended;
};

/* A moment at which a task goes on, or at which fn() is called. */
struct sim_alarm {
    uint64_t when_ns, order;
    struct sim_task *task;
    uint64_t turn;
    sim_fn *fn;
    void *ctx;
};

static struct {
    bool runs;
    uint64_t now_ns, order, random;
    struct sim_task *current; /* NULL: the scheduler, or an event */
    ucontext_t scheduler;
    VEC(struct sim_alarm) alarms; /* a heap: the first is the next */
    VEC(struct sim_task *) tasks;
    VEC(char *) stacks; /* that no task uses */
} sim;

/* --- random numbers --- */

static uint64_t sim_next(void)
{
    uint64_t z = (sim.random += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t sim_random(uint64_t below)
{
    return sim_next() % below;
}

bool sim_chance(unsigned percent)
{
    return sim_random(100) < percent;
}

/* --- alarms --- */

static bool alarm_before(const struct sim_alarm *a, const struct sim_alarm *b)
{
    return a->when_ns != b->when_ns ? a->when_ns < b->when_ns : a->order < b->order;
}

static void alarm_push(struct sim_alarm alarm)
{
    size_t i = sim.alarms.len;

    alarm.order = ++sim.order;
    if (alarm.when_ns < sim.now_ns)
        alarm.when_ns = sim.now_ns;
    vec_push(&sim.alarms, alarm);
    for (; i > 0 && alarm_before(&alarm, &sim.alarms.items[(i - 1) / 2]); i = (i - 1) / 2)
        sim.alarms.items[i] = sim.alarms.items[(i - 1) / 2];
    sim.alarms.items[i] = alarm;
}

static struct sim_alarm alarm_pop(void)
{
    struct sim_alarm first = sim.alarms.items[0], last = vec_pop(&sim.alarms);
    size_t i = 0;

    while (2 * i + 1 < sim.alarms.len) {
        size_t child = 2 * i + 1;
        if (child + 1 < sim.alarms.len &&
            alarm_before(&sim.alarms.items[child + 1], &sim.alarms.items[child]))
            child++;
        if (!alarm_before(&sim.alarms.items[child], &last))
            break;
        sim.alarms.items[i] = sim.alarms.items[child];
        i = child;
    }
    if (sim.alarms.len)
        sim.alarms.items[i] = last;
    return first;
}

/* --- tasks --- */

static void task_main(void)
{
    struct sim_task *t = sim.current;

    t->fn(t->ctx);
    t->ended = true;
    vec_push(&sim.stacks, t->stack);
    sim.current = NULL;
    setcontext(&sim.scheduler);
}

void sim_start(struct sim_machine *m, sim_fn *fn, void *ctx)
{
    struct sim_task *t = xzalloc(sizeof(*t));

    BUG_ON(sim.tasks.len >= SIM_TASKS_MAX);
    t->machine = m;
    t->fn = fn;
    t->ctx = ctx;
    t->stack = sim.stacks.len ? vec_pop(&sim.stacks) : xzalloc(SIM_STACK);
    BUG_ON(getcontext(&t->context) != 0);
    t->context.uc_stack.ss_sp = t->stack;
    t->context.uc_stack.ss_size = SIM_STACK;
    makecontext(&t->context, task_main, 0);
    vec_push(&sim.tasks, t);
    alarm_push((struct sim_alarm){.when_ns = sim.now_ns, .task = t, .turn = t->turn});
}

void sim_at(uint64_t when_ns, sim_fn *fn, void *ctx)
{
    alarm_push((struct sim_alarm){.when_ns = when_ns, .fn = fn, .ctx = ctx});
}

struct sim_machine *sim_machine(void)
{
    return sim.current ? sim.current->machine : NULL;
}

static void task_switch(struct sim_task *t)
{
    sim.current = t;
    t->turn++;
    BUG_ON(swapcontext(&sim.scheduler, &t->context) != 0);
}

bool sim_wait(const void *key, uint64_t until_ns)
{
    struct sim_task *t = sim.current;

    BUG_ON(!t);
    t->key = key;
    t->woken = false;
    if (until_ns != UINT64_MAX)
        alarm_push((struct sim_alarm){.when_ns = until_ns, .task = t, .turn = t->turn});
    sim.current = NULL;
    BUG_ON(swapcontext(&t->context, &sim.scheduler) != 0);
    t->key = NULL;
    return t->woken;
}

void sim_sleep(uint64_t ns)
{
    sim_wait(NULL, sim.now_ns + ns);
}

void sim_wake(const void *key)
{
    for (size_t i = 0; i < sim.tasks.len; i++) {
        struct sim_task *t = sim.tasks.items[i];
        if (t->ended || t->key != key || t->woken)
            continue;
        t->woken = true;
        alarm_push((struct sim_alarm){.when_ns = sim.now_ns, .task = t, .turn = t->turn});
    }
}

uint64_t sim_now(void)
{
    return sim.now_ns;
}

/* --- the scheduler --- */

static void alarm_ring(struct sim_alarm a)
{
    struct sim_task *t = a.task;

    if (!t) {
        a.fn(a.ctx);
        return;
    }
    if (t->ended || t->turn != a.turn || (t->machine && t->machine->dead))
        return;
    if (t->machine && t->machine->stopped_until_ns > sim.now_ns) {
        a.when_ns = t->machine->stopped_until_ns;
        alarm_push(a);
        return;
    }
    task_switch(t);
}

static void sim_clear(void)
{
    for (size_t i = 0; i < sim.tasks.len; i++) {
        if (!sim.tasks.items[i]->ended)
            vec_push(&sim.stacks, sim.tasks.items[i]->stack);
        free(sim.tasks.items[i]);
    }
    sim.tasks.len = sim.alarms.len = 0;
}

void sim_run(uint64_t seed, uint64_t end_ns, sim_fn *first, void *ctx)
{
    sim.now_ns = 3600 * NS_PER_S;
    sim.random = seed;
    sim.order = 0;
    sim.runs = true;
    end_ns += sim.now_ns;
    sim_start(NULL, first, ctx);
    while (sim.alarms.len && sim.alarms.items[0].when_ns <= end_ns) {
        struct sim_alarm a = alarm_pop();
        sim.now_ns = a.when_ns;
        alarm_ring(a);
    }
    sim_clear();
    sim.runs = false;
}

/* --- what the linker replaces --- */

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __real_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
ssize_t __real_getrandom(void *out, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t len, unsigned flags);
void __real_mutex_lock(struct mutex *m);
void __wrap_mutex_lock(struct mutex *m);
void __real_mutex_unlock(struct mutex *m);
void __wrap_mutex_unlock(struct mutex *m);
void __real_mutex_assert_held(struct mutex *m);
void __wrap_mutex_assert_held(struct mutex *m);
void __real_cond_wait(struct cond *c, struct mutex *m);
void __wrap_cond_wait(struct cond *c, struct mutex *m);
bool __real_cond_wait_until(struct cond *c, struct mutex *m, uint64_t deadline_ns);
bool __wrap_cond_wait_until(struct cond *c, struct mutex *m, uint64_t deadline_ns);
void __real_cond_signal(struct cond *c);
void __wrap_cond_signal(struct cond *c);
void __real_cond_broadcast(struct cond *c);
void __wrap_cond_broadcast(struct cond *c);
int __wrap_thread_start(struct thread *t, const char *name, size_t stack, thread_fn *fn, void *ctx,
                        struct err *err);

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    if (!sim.runs)
        return __real_clock_gettime(id, out);
    *out = (struct timespec){(time_t)(sim.now_ns / NS_PER_S), (long)(sim.now_ns % NS_PER_S)};
    return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
    if (!sim.runs)
        return __real_nanosleep(t, left);
    sim_sleep((uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec);
    return 0;
}

ssize_t __wrap_getrandom(void *out, size_t len, unsigned flags)
{
    if (!sim.runs)
        return __real_getrandom(out, len, flags);
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)out)[i] = (unsigned char)sim_next();
    return (ssize_t)len;
}

/* A lock of a task is only a mark. An event needs no lock: no task runs meanwhile. */
void __wrap_mutex_lock(struct mutex *m)
{
    if (!sim.runs)
        __real_mutex_lock(m);
    if (!sim.current)
        return;
    while (atomic_load(&m->owner_tid))
        sim_wait(m, UINT64_MAX);
    atomic_store(&m->owner_tid, 1);
}

void __wrap_mutex_unlock(struct mutex *m)
{
    if (!sim.runs)
        __real_mutex_unlock(m);
    if (!sim.current)
        return;
    atomic_store(&m->owner_tid, 0);
    sim_wake(m);
}

void __wrap_mutex_assert_held(struct mutex *m)
{
    if (sim.current)
        BUG_ON(!atomic_load(&m->owner_tid));
    else if (!sim.runs)
        __real_mutex_assert_held(m);
}

bool __wrap_cond_wait_until(struct cond *c, struct mutex *m, uint64_t deadline_ns)
{
    if (!sim.current)
        return __real_cond_wait_until(c, m, deadline_ns);
    mutex_unlock(m);
    bool woken = sim_wait(c, deadline_ns);
    mutex_lock(m);
    return woken;
}

void __wrap_cond_wait(struct cond *c, struct mutex *m)
{
    if (sim.current)
        (void)__wrap_cond_wait_until(c, m, UINT64_MAX);
    else
        __real_cond_wait(c, m);
}

void __wrap_cond_broadcast(struct cond *c)
{
    if (sim.runs)
        sim_wake(c);
    else
        __real_cond_broadcast(c);
}

/* Waking more tasks than one is allowed: each looks again at what it waits for. */
void __wrap_cond_signal(struct cond *c)
{
    __wrap_cond_broadcast(c);
}

struct sim_thread {
    thread_fn *fn;
    void *ctx;
};

static void sim_thread_main(void *ctx)
{
    struct sim_thread t = *(struct sim_thread *)ctx;

    free(ctx);
    t.fn(t.ctx);
}

/* The thread belongs to the machine of its maker. No thread of a simulation is joined. */
int __wrap_thread_start(struct thread *t, const char *name, size_t stack, thread_fn *fn, void *ctx,
                        struct err *err)
{
    struct sim_thread *s = xzalloc(sizeof(*s));

    BUG_ON(!sim.current);
    *s = (struct sim_thread){fn, ctx};
    sim_start(sim.current->machine, sim_thread_main, s);
    t->started = true;
    return 0;
}
