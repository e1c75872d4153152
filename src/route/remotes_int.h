/* Between the files of remotes. */
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

/* One that is open. Its strings are on the heap, its own. */
struct opened {
    struct remote_entry entry; /* users: as vec */
    struct storage *storage;   /* in routes */
    VEC(char *) users;         /* ids with credentials */
};

struct remotes {
    struct routes *routes; /* borrowed, as the store and the log */
    struct store *store;
    const struct log *log;
    struct seal_key key;
    struct script add;
    struct reload reload;
    struct str local_main; /* what is main when nobody says: the first storage; in routes */

    struct mutex lock; /* guards `busy` */
    struct cond idle;
    bool busy; /* somebody reads or changes what follows, asking the store in between */
    VEC(struct opened *) opened;
    bool main_is_fixed;
};

/* Read all from the store and make routes agree. The caller is the one that is busy. */
int remotes_load(struct remotes *r, struct err *err) MUST_CHECK;

/* One at a time, without a lock held: the store is asked in between. */
void remotes_begin(struct remotes *r);
void remotes_end(struct remotes *r);
/* Commands and the message that tells of them as one step, then what they made is loaded. The
 * caller is the one that is busy. */
int remotes_change(struct remotes *r, const struct store_args *commands, size_t count,
                   struct err *err) MUST_CHECK;

/* Limits as the store has them, into the storages. */
int remotes_load_limits(struct remotes *r, struct arena *a, struct err *err) MUST_CHECK;
void remotes_limit(struct storage *s, const struct remote_limits *limits);

/* Put into routes. The caller is the one that is busy. */
int opened_add(struct remotes *r, const struct remote_entry *e, struct opened **out,
               struct err *err) MUST_CHECK;
void opened_free(struct opened *o);
struct opened *opened_find(struct remotes *r, struct str name);
int opened_credential(struct opened *o, const struct remote_credential *c,
                      struct err *err) MUST_CHECK;

/* "storage:<name>", "storage_keys:<name>" */
void remotes_key(struct buf *out, const char *prefix, struct str name);
/* What a secret is sealed for. */
void remotes_seal_owner(struct buf *out, struct str storage, struct str user, struct str access);

#endif
