/* The engine behind a store: for files in store/ only. */
#ifndef STORE_STORE_INT_H
#define STORE_STORE_INT_H

#include "store/store.h"

struct store_engine {
    const char *name; /* "embedded", "redis" */

    /* argc > 0 here and in every command of a batch */
    int (*command)(struct store *s, struct arena *arena, struct reply **out, const struct str *argv,
                   size_t argc, struct err *err);
    /* count > 0; atomic: store_atomic(), else store_pipeline() */
    int (*batch)(struct store *s, struct arena *arena, struct reply **out,
                 const struct store_args *commands, size_t count, bool atomic, struct err *err);
    int (*eval)(struct store *s, struct arena *arena, struct reply **out,
                const struct script *script, const struct store_args *keys,
                const struct store_args *args, struct err *err);
    int (*subscribe)(struct store_subscription **out, struct store *s, struct str channel,
                     store_message_fn *fn, void *ctx, struct err *err);
    void (*unsubscribe)(struct store_subscription *sub);
    void (*close)(struct store *s); /* frees */
};

/* Embedded as the first member of an engine's own struct. */
struct store {
    const struct store_engine *engine;
};

/* First member of an engine's own subscription. */
struct store_subscription {
    struct store *store;
};

#endif
