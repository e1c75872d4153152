/* Timers: one thread calls functions when they are due. A callback must be short; it passes longer
 * work to a pool. For a thread that repeats one step, use a loop (os/loop.h). Any thread may call
 * these functions. */
#ifndef OS_TIMER_H
#define OS_TIMER_H

#include "os/thread.h"

struct timers;

/* Initialise a timer with {0}. A periodic timer must live until it is cancelled. A timer that fires
 * once must live until it is cancelled or its callback is called. That callback may free the
 * timer. */
struct timer {
    /* The timer's place in the heap; 0: the timer is not set. Only struct timers uses this. */
    size_t heap_index;
    uint64_t due_ns;
    uint64_t period_ns; /* 0: the timer fires once */
    thread_fn *fn;
    void *ctx;
};

int timers_new(struct timers **out, struct err *err) MUST_CHECK;
/* Ends the thread. When this returns, no callback runs any more, and timers still set never fire.
 */
void timers_free(struct timers *ts);

/* Sets a timer, or changes a timer that is set. The timer fires after `delay_ns`, and then every
 * `period_ns` if that is not 0. Periods that pass while the thread is late are left out. A callback
 * may call this, also for its own timer. */
void timer_set(struct timers *ts, struct timer *t, uint64_t delay_ns, uint64_t period_ns,
               thread_fn *fn, void *ctx);
/* Cancels the timer. When this returns, its callback is not running and will not run. The timer's
 * own callback must not call this. (Inside the callback of a timer that fires once, the timer is
 * not set any more.) */
void timer_cancel(struct timers *ts, struct timer *t);

#endif
