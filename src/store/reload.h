/* Keeps a copy in memory of something in the store up to date. The copy is loaded at the start,
 * when a message says that it has changed, and when it is asked for. After a load has failed,
 * loading is tried again, with a growing delay, until it succeeds: a message comes only once, and
 * the store may be unable to answer at that moment (a Redis that still loads its data accepts
 * subscriptions before reads). Any thread may call. */
#ifndef STORE_RELOAD_H
#define STORE_RELOAD_H

#include "base/err.h"
#include "base/log.h"
#include "os/timer.h"
#include "store/store.h"

/* Loads the copy: reads all of it from the store and installs it. Several threads may call it at
 * once. */
typedef int reload_fn(void *ctx, struct err *err);

/* Called with each message, with the arguments of a store_message_fn. Returns false if the message
 * needs no load. */
typedef bool reload_heard_fn(void *ctx, struct str channel, struct str message);

/* Failures of the first load with which reload_open() fails. After any other failure of that load
 * reload_open() succeeds, and the load is tried again. */
enum reload_fatal {
    RELOAD_EXPECTED = 1, /* errors of the kind ERR_KIND_EXPECTED */
    RELOAD_CORRUPT = 2   /* ERR_CORRUPT */
};

/* All pointers are borrowed. */
struct reload_options {
    struct store *store;
    struct str channel;
    reload_fn *load;
    reload_heard_fn *heard; /* NULL: each message asks for a load */
    void *ctx;
    const struct log *log;
    const char *failed, *done; /* names of log events: "users.not_loaded", "users.loaded" */
    unsigned fatal;            /* bits of enum reload_fatal */
};

struct reload {
    struct reload_options o;
    struct store_subscription *subscription;
    struct mutex lock; /* class "reload"; guards the members below */
    /* Timers with a thread of their own, because a load waits for the store; NULL until a load has
     * failed. */
    struct timers *timers;
    struct timer timer;
    uint64_t delay_ns; /* delay before the next try; 0: the latest load succeeded */
};

/* Subscribes, then loads, so that no change is missed. reload_close() is needed after a failure
 * too. */
int reload_open(struct reload *r, const struct reload_options *o, struct err *err) MUST_CHECK;
/* Ends the subscription and the retries. No load runs when it has returned. No reload_now() may be
 * running. A struct that is all zero (never opened) is fine. */
void reload_close(struct reload *r);

/* Loads the copy now. A failure is returned, and the load is tried again in the background. */
int reload_now(struct reload *r, struct err *err) MUST_CHECK;
/* Like reload_now(), but a failure is logged instead of returned. */
void reload_or_log(struct reload *r);

#endif
