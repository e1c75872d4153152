/* The engine behind a store: for files in store/ only. */
#ifndef STORE_STORE_INT_H
#define STORE_STORE_INT_H

#include "store/store.h"

/* The commands of store_atomic() or store_pipeline(): at least one, and none is empty. */
struct batch {
    const struct store_args *commands;
    size_t count;
    bool atomic;
};

struct store_engine {
    const char *name; /* "embedded", "redis" */

    /* Runs one command; argc is at least 1. */
    int (*command)(struct store *s, struct arena *arena, struct reply **out, const struct str *argv,
                   size_t argc, struct err *err);
    int (*batch)(struct store *s, struct arena *arena, struct reply **out, const struct batch *b,
                 struct err *err);
    int (*eval)(struct store *s, struct arena *arena, struct reply **out,
                const struct script_run *run, struct err *err);
    int (*subscribe)(struct store_subscription **out, struct store *s, struct str channel,
                     store_message_fn *fn, void *ctx, struct err *err);
    void (*unsubscribe)(struct store_subscription *sub);
    /* Joins the stores as store_join() says; all of them are of this engine. */
    int (*join)(struct store *const *stores, size_t count, struct err *err);
    void (*close)(struct store *s); /* also frees the store */
};

/* Embedded as the first member of an engine's own struct. */
struct store {
    const struct store_engine *engine;
    int number;          /* the number of the database */
    uint64_t timeout_ns; /* how long a call may wait for the server; 0: there is no server */
    struct store_watch watch;
};

/* The first member of an engine's own subscription struct. */
struct store_subscription {
    struct store *store;
};

#endif
