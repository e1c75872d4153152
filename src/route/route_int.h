/* Between the files of routes. */
#ifndef ROUTE_ROUTE_INT_H
#define ROUTE_ROUTE_INT_H

#include "base/map.h"
#include "base/vec.h"
#include "os/thread.h"
#include "route/reload.h"
#include "route/route.h"
#include "store/store.h"

/* All policies at one moment; never changed once it is installed. The maps' keys are the store's
 * without what they begin with. */
struct routes_view {
    size_t refs; /* under routes.lock */
    struct arena arena;
    struct map policies; /* "<user>" and "<user>:<bucket>" to the storage's name (char *) */
    struct map blocks;   /* "<storage>:<bucket>" to something */
};

struct routes {
    struct store *store; /* borrowed */
    struct store_subscription *subscription;
    struct reload reload;

    struct mutex lock;
    struct cond loaded;
    bool loading;             /* one load at a time, so that an older view never follows a newer */
    struct routes_view *view; /* NULL: the store could not be asked yet */
    VEC(struct storage *) storages;
    struct storage *main;
};

#define ROUTES_CHANNEL STR("weir:routes")

/* Read all policies and install them. */
int routes_load(struct routes *r, struct err *err) MUST_CHECK;
void routes_view_put(struct routes *r, struct routes_view *view);
void routes_view_free(struct routes_view *view); /* NULL is fine */

/* `prefix`, `first` and, unless it is empty, ':' and `second`; both escaped. */
void routes_key(struct buf *out, const char *prefix, struct str first, struct str second);

#endif
