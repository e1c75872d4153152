/* A view in memory of what the store holds, kept new: loaded when asked for, and by itself with
 * back-off for as long as the latest load failed. A published message tells of a change only once,
 * and a store may be unable to answer just then (a Redis that still loads its data takes
 * subscriptions before it takes reads). Any thread. */
#ifndef STORE_RELOAD_H
#define STORE_RELOAD_H

#include "base/err.h"
#include "base/log.h"
#include "os/timer.h"

/* Reads everything and installs it. Loads may come from several threads. */
typedef int reload_fn(void *ctx, struct err *err);

/* All borrowed. */
struct reload_options {
    reload_fn *load;
    void *ctx;
    const struct log *log;
    const char *failed, *done; /* events: "users.not_loaded", "users.loaded" */
};

struct reload {
    struct reload_options o;
    struct mutex lock; /* guards what follows; class "reload" */
    /* Of its own, as a load waits for the store; NULL until one failed. */
    struct timers *timers;
    struct timer timer;
    uint64_t delay_ns; /* before the next try; 0: the latest load succeeded */
};

void reload_init(struct reload *r, const struct reload_options *o);
/* No load runs or begins afterwards. Whoever calls reload_now() must have ended. */
void reload_release(struct reload *r);

/* Loads. When that fails it is tried again in the background, and the failure is returned. */
int reload_now(struct reload *r, struct err *err) MUST_CHECK;
/* The same for who has nobody to tell: a failure is logged. */
void reload_or_log(struct reload *r);

#endif
