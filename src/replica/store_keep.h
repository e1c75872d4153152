/* The thread that follows what the store says of itself (coord/installation.h): keeps a sealed copy
 * of the configuration, begins copies anew when the store went back, and looks at a Redis's
 * settings. docs/store-redis.md, I4 and I7. */
#ifndef REPLICA_STORE_KEEP_H
#define REPLICA_STORE_KEEP_H

#include "coord/installation.h"
#include "replica/went_back.h"
#include "route/config_copy.h"

struct store_keep;

struct store_keep_options {
    struct installation *installation; /* borrowed, as all of these */
    struct store *config;
    struct went_back mend; /* its replications NULL: replication is off */
    const char *folder;    /* the data folder; its file `config.sealed` */
    const char *key_file;
    bool shared; /* the store is a Redis */
    const struct log *log;
};
int store_keep_start(struct store_keep **out, const struct store_keep_options *o,
                     struct err *err) MUST_CHECK;
void store_keep_stop(struct store_keep *k); /* NULL is fine */

/* The copy that is on disk, without its commands. ERR_NOT_FOUND: there is none. */
int store_keep_copy(struct store_keep *k, struct config_copy *out, struct err *err) MUST_CHECK;
/* Puts the configuration back from the folder's copy, or from another file. ERR_CONFLICT: the copy
 * is another installation's; and as installation_restore_begin(). */
int store_keep_restore(struct store_keep *k, const char *from, bool replace,
                       struct err *err) MUST_CHECK;

#endif
