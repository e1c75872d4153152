/* One thread that calls functions at their time. A callback must be short and hands longer work to
 * a pool. (A thread that repeats one step is a loop: os/loop.h.) Any thread may call these. */
#ifndef OS_TIMER_H
#define OS_TIMER_H

#include "os/thread.h"

struct timers;

/* Begins as {0}. It must live until it is cancelled, or, if it fires only once, until its callback
 * is called; the callback may free it. */
struct timer {
    size_t heap_index; /* place in the heap; 0: not set; owned by struct timers */
    uint64_t due_ns;
    uint64_t period_ns; /* 0: once */
    thread_fn *fn;
    void *ctx;
};

int timers_new(struct timers **out, struct err *err) MUST_CHECK;
/* When it has returned, no callback runs any more; timers that are still set never fire. */
void timers_free(struct timers *ts);

/* Sets the timer, or sets it anew: it fires after `delay_ns`, and then every period_ns if that is
 * not 0. Periods that pass while a callback is late are left out. A callback may call this, also
 * for its own timer. */
void timer_set(struct timers *ts, struct timer *t, uint64_t delay_ns, uint64_t period_ns,
               thread_fn *fn, void *ctx);
/* Afterwards the callback is not running and will not run. Not from inside its own callback
 * (there, a one-shot timer is already off). */
void timer_cancel(struct timers *ts, struct timer *t);

#endif
