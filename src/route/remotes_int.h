/* Declarations that the files remotes*.c share. */
#ifndef ROUTE_REMOTES_INT_H
#define ROUTE_REMOTES_INT_H

#include "base/vec.h"
#include "os/thread.h"
#include "store/reload.h"
#include "route/remotes.h"
#include "route/seal.h"
#include "store/store.h"

enum { REMOTE_NAME_MAX = 64, REMOTE_URL_MAX = 512, REMOTE_REGION_MAX = 64 };

#define REMOTES_CHANNEL STR("weir:storages")
#define REMOTES_NAMES   STR("storages")
#define REMOTES_MAIN    STR("storages:main")
#define REMOTES_LIMITS  STR("storages:limits")

/* A storage that is open. It owns its strings, which are on the heap. */
struct opened {
    struct remote_entry entry; /* entry.users is not set: see the member `users` below */
    struct storage *storage;   /* owned by the routes */
    VEC(char *) users;         /* ids of the users with credentials */
};

struct remotes {
    struct routes *routes; /* borrowed, like the store and the log */
    struct store *store;
    const struct log *log;
    struct seal_key key;
    struct script add;
    struct reload reload;
    struct str local_main; /* name of the first storage, which is the main one when nobody chooses
                              another; owned by the routes */

    struct mutex lock; /* guards `busy` */
    struct cond idle;
    bool busy; /* a thread reads or changes the members below, and may ask the store meanwhile */
    VEC(struct opened *) opened;
    bool main_is_fixed;
};

/* Reads all storages from the store and changes the routes to match. To be called between
 * remotes_begin() and remotes_end(). */
int remotes_load(struct remotes *r, struct err *err) MUST_CHECK;

/* Only one thread at a time is between remotes_begin() and remotes_end(). The flag `busy` ensures
 * this. A lock is not held meanwhile, because the thread may wait for the store. */
void remotes_begin(struct remotes *r);
void remotes_end(struct remotes *r);
/* Runs the commands and publishes the message about them, in one step; then loads the result. To be
 * called between remotes_begin() and remotes_end(). */
int remotes_change(struct remotes *r, const struct store_args *commands, size_t count,
                   struct err *err) MUST_CHECK;

/* Reads the limits from the store and sets them in the storages. */
int remotes_load_limits(struct remotes *r, struct arena *a, struct err *err) MUST_CHECK;
void remotes_limit(struct storage *s, const struct remote_limits *limits);

/* Opens the storage and adds it to the routes. To be called between remotes_begin() and
 * remotes_end(). */
int opened_add(struct remotes *r, const struct remote_entry *e, struct opened **out,
               struct err *err) MUST_CHECK;
void opened_free(struct opened *o);
struct opened *opened_find(struct remotes *r, struct str name);
int opened_credential(struct opened *o, const struct remote_credential *c,
                      struct err *err) MUST_CHECK;

/* Appends "storage:<name>" or "storage_keys:<name>". `prefix` is the part up to and including the
 * colon. */
void remotes_key(struct buf *out, const char *prefix, struct str name);
/* Appends the owner for which a user's secret on a storage is sealed (route/seal.h says what an
 * owner is). */
void remotes_seal_owner(struct buf *out, struct str storage, struct str user, struct str access);

#endif
