/* Keeps a copy in memory of something in the store up to date. The copy is loaded at the start,
 * when a message says that it has changed, and when it is asked for. After a load has failed, it is
 * tried again, with a growing delay, until it succeeds: a message comes only once, and the store
 * may be unable to answer at that moment (a Redis that still loads its data accepts subscriptions
 * before reads). Any thread. */
#ifndef STORE_RELOAD_H
#define STORE_RELOAD_H

#include "base/err.h"
#include "base/log.h"
#include "os/timer.h"
#include "store/store.h"

/* Reads everything from the store and installs it. Several threads may call it at once. */
typedef int reload_fn(void *ctx, struct err *err);

/* Looks at a message, as store_message_fn does. False: the message needs no load. */
typedef bool reload_heard_fn(void *ctx, struct str channel, struct str message);

/* Failures of the first load that reload_open() returns; after any other the load is tried again.
 */
enum reload_fatal {
    RELOAD_EXPECTED = 1, /* those of the kind ERR_KIND_EXPECTED */
    RELOAD_CORRUPT = 2   /* ERR_CORRUPT */
};

/* All borrowed. */
struct reload_options {
    struct store *store;
    struct str channel;
    reload_fn *load;
    reload_heard_fn *heard; /* NULL: each message asks for a load */
    void *ctx;
    const struct log *log;
    const char *failed, *done; /* events: "users.not_loaded", "users.loaded" */
    unsigned fatal;            /* of enum reload_fatal */
};

struct reload {
    struct reload_options o;
    struct store_subscription *subscription;
    struct mutex lock; /* guards what follows; class "reload" */
    /* A thread of timers for this alone, as a load waits for the store; NULL until a load failed.
     */
    struct timers *timers;
    struct timer timer;
    uint64_t delay_ns; /* before the next try; 0: the latest load succeeded */
};

/* Subscribes, then loads, so that no change is missed. reload_close() is needed after a failure
 * too. */
int reload_open(struct reload *r, const struct reload_options *o, struct err *err) MUST_CHECK;
/* No load runs when it has returned. No reload_now() may be running. A struct that is all zero was
 * never opened, which is fine. */
void reload_close(struct reload *r);

/* Loads. A failure is returned, and the load is tried again in the background. */
int reload_now(struct reload *r, struct err *err) MUST_CHECK;
/* As reload_now(), but a failure is logged instead of returned. */
void reload_or_log(struct reload *r);

#endif
