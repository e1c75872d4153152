/* A view in memory of what the store holds, kept new: loaded at the start, when a message on its
 * channel tells of a change, when asked for, and by itself with back-off for as long as the latest
 * load failed. A published message tells of a change only once,
 * and a store may be unable to answer just then (a Redis that still loads its data takes
 * subscriptions before it takes reads). Any thread. */
#ifndef STORE_RELOAD_H
#define STORE_RELOAD_H

#include "base/err.h"
#include "base/log.h"
#include "os/timer.h"
#include "store/store.h"

/* Reads everything and installs it. Loads may come from several threads. */
typedef int reload_fn(void *ctx, struct err *err);

/* What a message says, as store_message_fn has it. False: no load is needed for it. */
typedef bool reload_heard_fn(void *ctx, struct str channel, struct str message);

/* Which codes of the first load fail the opening: a view that cannot be read yet is read later. */
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
    /* Of its own, as a load waits for the store; NULL until one failed. */
    struct timers *timers;
    struct timer timer;
    uint64_t delay_ns; /* before the next try; 0: the latest load succeeded */
};

/* Subscribes, then loads: no change is missed. reload_close() is due after a failure too. */
int reload_open(struct reload *r, const struct reload_options *o, struct err *err) MUST_CHECK;
/* No load runs or begins afterwards. Whoever calls reload_now() must have ended. One that is all
 * zero was never opened, which is fine. */
void reload_close(struct reload *r);

/* Loads. When that fails it is tried again in the background, and the failure is returned. */
int reload_now(struct reload *r, struct err *err) MUST_CHECK;
/* The same for who has nobody to tell: a failure is logged. */
void reload_or_log(struct reload *r);

#endif
