/* A copy of configDB in a file, sealed with the key file (route/seal.h; docs/store-redis.md, I7).
 * It holds users, storages, routes, replications, switches and webhooks, as commands that make them
 * again. Keys that processes write about themselves (most keys that begin with "w:") are left out.
 * Any thread may call these functions. */
#ifndef ROUTE_CONFIG_COPY_H
#define ROUTE_CONFIG_COPY_H

#include "base/arena.h"
#include "route/seal.h"
#include "store/store.h"

struct config_copy {
    struct str installation;
    uint64_t count;  /* how often the configuration had been changed when the copy was made */
    int64_t time_ms; /* when the copy was made, in ms since 1970 */
    struct store_args *commands;
    size_t command_count;
};

/* Reads configDB and writes the file, with mode 0600. The file is durable on return; after a crash
 * or an error it is either the new file or the one before. After reading, the function checks that
 * the store is still the known one (store_is_known()). The caller sets `installation` and `count`
 * of *head; this function sets `time_ms`, and leaves the commands alone. */
int config_copy_write(struct store *config, const struct seal_key *key, const char *path,
                      struct config_copy *head, struct err *err) MUST_CHECK;
/* Reads the file. The result is in the arena. ERR_NOT_FOUND: there is no such file. ERR_CORRUPT:
 * the file is no copy, or it is sealed with another key. */
int config_copy_read(struct config_copy *out, struct arena *a, const struct seal_key *key,
                     const char *path, struct err *err) MUST_CHECK;

#endif
