/* A thread that follows the state of the store (coord/installation.h). It keeps a sealed copy of
 * the configuration, and checks the settings of a store that is a Redis. It begins the copies of
 * all replications again when the store *went back in time*: it has lost changes that it had
 * acknowledged. docs/store-redis.md, I4 and I7, has the rules. */
#ifndef REPLICA_STORE_KEEP_H
#define REPLICA_STORE_KEEP_H

#include "coord/installation.h"
#include "replica/went_back.h"
#include "route/config_copy.h"

struct store_keep;

struct store_keep_options {
    struct installation *installation; /* borrowed, like the other pointers */
    struct store *config;
    struct went_back mend; /* mend.replications NULL: replication is off */
    const char *folder;    /* the data folder, which holds the copy: `config.sealed` */
    const char *key_file;
    bool shared; /* the store is a Redis */
    const struct log *log;
};
int store_keep_start(struct store_keep **out, const struct store_keep_options *o,
                     struct err *err) MUST_CHECK;
void store_keep_stop(struct store_keep *k); /* NULL is fine */

/* Describes the copy that is on disk, without its commands. ERR_NOT_FOUND: there is no copy. */
int store_keep_copy(struct store_keep *k, struct config_copy *out, struct err *err) MUST_CHECK;
/* Restores the configuration from the file `from`; NULL: from the copy in the data folder.
 * ERR_CONFLICT: the copy belongs to another installation. Other errors are those of
 * installation_restore_begin(). */
int store_keep_restore(struct store_keep *k, const char *from, bool replace,
                       struct err *err) MUST_CHECK;

#endif
