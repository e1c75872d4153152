/* One thread that calls functions at their time: sweeps, refreshes, deadlines that nobody waits on.
 * A callback must be short (hand longer work to a pool). Any thread may call these. */
#ifndef OS_TIMER_H
#define OS_TIMER_H

#include "os/thread.h"

struct timers;

/* Begins as {0}; must live until it is cancelled or, set once, until its callback is called (which
 * may free it). */
struct timer {
    size_t heap_index; /* 0 when not set; owned by struct timers */
    uint64_t due_ns;
    uint64_t period_ns; /* 0: once */
    thread_fn *fn;
    void *ctx;
};

int timers_new(struct timers **out, struct err *err) MUST_CHECK;
/* No callback runs after it returns; timers that are still set are forgotten. */
void timers_free(struct timers *ts);

/* (Re)arm: first after `delay_ns`, then each period_ns if not 0 (periods that pass while a callback
 * is late are left out, not made up for). Also from inside a callback, its own too. */
void timer_set(struct timers *ts, struct timer *t, uint64_t delay_ns, uint64_t period_ns,
               thread_fn *fn, void *ctx);
/* Afterwards the callback is not running and will not run. Not from inside its own callback
 * (there, a one-shot timer is already off). */
void timer_cancel(struct timers *ts, struct timer *t);

#endif
