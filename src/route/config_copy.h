/* A copy of configDB in a file, sealed with the key file (docs/store-redis.md, I7): users,
 * storages, routes, replications, switches, webhooks, as commands that make them again. What
 * processes tell of themselves (most keys that begin with "w:") is not in it. Any thread. */
#ifndef ROUTE_CONFIG_COPY_H
#define ROUTE_CONFIG_COPY_H

#include "base/arena.h"
#include "route/seal.h"
#include "store/store.h"

struct config_copy {
    struct str installation;
    uint64_t count;  /* of changes of the configuration, when it was read */
    int64_t time_ms; /* since 1970 */
    struct store_args *commands;
    size_t command_count;
};

/* Reads the database and writes the file (0600, durable, whole or not at all). The store is asked
 * whether it is the known one when all has been read. `head` says the installation and the count,
 * the rest is filled. */
int config_copy_write(struct store *config, const struct seal_key *key, const char *path,
                      struct config_copy *head, struct err *err) MUST_CHECK;
/* Into the arena. ERR_NOT_FOUND; ERR_CORRUPT: it is no copy, or not sealed with this key. */
int config_copy_read(struct config_copy *out, struct arena *a, const struct seal_key *key,
                     const char *path, struct err *err) MUST_CHECK;

#endif
