/* A thread that repeats a step: the thread runs the step, sleeps, and runs the step again until the
 * thread is stopped.
 *
 * The return value of the step is the time for which the thread sleeps. loop_wake() ends a sleep
 * early. A call of loop_wake() while the step runs is not lost: the next sleep ends at once. After
 * a failure the step returns loop_retry_ms(): then only the time and loop_stop() end the sleep, so
 * that frequent wakes do not make the thread ask a broken peer all the time.
 *
 * The step runs without a lock held, and only once at a time. */
#ifndef OS_LOOP_H
#define OS_LOOP_H

#include "base/clock.h"
#include "os/thread.h"

/* How long the thread sleeps before the next step; made by the functions below. */
struct loop_sleep {
    uint64_t ns; /* nanoseconds; 0: no sleep; UINT64_MAX: until loop_wake() */
    bool deaf;   /* loop_wake() does not end the sleep */
};

typedef struct loop_sleep loop_step_fn(void *ctx);

struct loop_options {
    const char *name; /* the thread's name; ps and gdb show its first 15 characters */
    loop_step_fn *step;
    void *ctx;               /* passed to the step */
    struct loop_sleep first; /* the sleep before the first step; {0}: none */
    size_t stack_size;       /* bytes; 0: the system's default */
};

/* A struct loop is a member of its owner's struct. {0} is a loop that was never started; waking and
 * stopping it do nothing. */
struct loop {
    struct loop_options o;
    struct thread thread;
    struct mutex lock; /* class "loop"; taken only to go to sleep and to wake */
    struct cond changed;
    _Atomic(bool) ready; /* `lock` and `changed` are initialised, and stay so after a stop */
    _Atomic(bool) woken, stop;
};

int loop_start(struct loop *l, const struct loop_options *o, struct err *err) MUST_CHECK;
/* Wakes the loop. Any thread may call this, also under a lock, and also while and after the loop is
 * stopped. When the loop was woken already, the call costs one atomic exchange. */
void loop_wake(struct loop *l);
/* Asks the loop to stop without waiting for it, so that several loops can stop at the same time. */
void loop_ask_stop(struct loop *l);
/* Ends the loop: returns when the step that runs has returned. The function must not be called from
 * inside the step. A stopped loop may be started again. */
void loop_stop(struct loop *l);
/* Whether loop_stop() or loop_ask_stop() was called. A long step calls this function, and returns
 * early when it is true. Any thread may call it. */
bool loop_is_stopping(const struct loop *l);
/* Sleeps for `ns`, or until loop_stop() is called. The step itself calls this between two parts of
 * its work. */
void loop_pause(struct loop *l, uint64_t ns);

static inline struct loop_sleep loop_again(void)
{
    return (struct loop_sleep){0};
}

static inline struct loop_sleep loop_until_woken(void)
{
    return (struct loop_sleep){.ns = UINT64_MAX};
}

static inline struct loop_sleep loop_sleep_ns(uint64_t ns)
{
    return (struct loop_sleep){.ns = ns};
}

static inline struct loop_sleep loop_sleep_ms(uint64_t ms)
{
    return (struct loop_sleep){.ns = ms * NS_PER_MS};
}

static inline struct loop_sleep loop_retry_ms(uint64_t ms)
{
    return (struct loop_sleep){.ns = ms * NS_PER_MS, .deaf = true};
}

#endif
