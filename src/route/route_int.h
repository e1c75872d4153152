/* Declarations that the files of the routes share. */
#ifndef ROUTE_ROUTE_INT_H
#define ROUTE_ROUTE_INT_H

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "os/thread.h"
#include "store/reload.h"
#include "route/route.h"
#include "route/space.h"
#include "store/store.h"

/* All policies at one moment. A view never changes once it is installed. The keys of the maps are
 * the store's keys without their prefixes. */
struct routes_view {
    size_t refs; /* number of references; guarded by routes.lock */
    struct arena arena;
    struct map policies; /* maps "<user>" and "<user>:<bucket>" to the storage's name (char *) */
    struct map blocks;   /* a set of "<storage>:<bucket>" */
    struct map switches; /* the subset of `blocks` that a switch with downtime has set */
    struct map pins;     /* a set of "<user>:<bucket>" whose policy was made by a replication */
    struct map reserved; /* a set of the bucket names that any bucket policy has */
    struct map named;  /* maps "<bucket>" to the storage that all its bucket policies name, or to ""
                          when they differ; policies in `pins` do not count */
    struct map copies; /* maps "<storage>:<bucket>", a place that holds a copy, to the id of the
                          user whose bucket was copied (char *); docs/forward.md, B1 */
    uint64_t serial;   /* unique among the views of this process */
};

/* A table of bucket names that no local storage had when weir last looked for them (copies do not
 * count). It saves requests for buckets on remote storages from reading the database each time.
 *
 * A name can be in one of ROUTES_ABSENT slots. The slot holds a hash of the name, made with a key
 * that depends on the view's serial and on the generations of the bucket on all local storages.
 * Each view has its own serial, and generations only grow. So when a local bucket of that name may
 * have been made, or the list of copies has changed, the hash differs from the one in the slot, and
 * weir looks for the bucket again. */
enum { ROUTES_ABSENT = 1024 };

struct routes {
    struct store *store; /* borrowed */
    struct reload reload;

    struct mutex lock;
    struct cond loaded;
    /* A thread is loading; only one thread loads at a time, so that an older view never replaces a
     * newer one. */
    bool loading;
    struct routes_view *view; /* NULL: the store could not be read yet */
    uint64_t views;           /* number of loads that were begun; gives views their serials */
    VEC(struct storage *) storages;
    VEC(struct storage *)
    retired;                        /* removed, but open: threads may still use them */
    _Atomic(struct storage *) main; /* changed under the lock; NULL: there is none */
    bool aborted;                   /* storages that are added from now on are aborted too */
    /* Overlay that every storage gets, also those that are added later; NULL: none. */
    struct overlay *overlay;
    const struct bucket_space *spaces[ROUTES_SPACES_MAX]; /* the first space_count are set */
    _Atomic(size_t) space_count;
    _Atomic(bool) storages_known, any_remote, main_is_remote;
    _Atomic(uint64_t) generation; /* raised when a bucket may now be found elsewhere */

    struct hash_key absent_key;
    _Atomic(uint64_t) absent[ROUTES_ABSENT];
};

#define ROUTES_CHANNEL STR("weir:routes")

/* Gets a reference to the newest view. ERR_UNAVAILABLE: no view was ever loaded. */
int routes_view_get(struct routes *r, struct routes_view **out, struct err *err) MUST_CHECK;
/* Returns the local storage that has a bucket of this name, and of this owner unless `owner` is
 * empty; NULL: none. Copies do not count. */
struct storage *routes_local_of(struct routes *r, const struct routes_view *view, struct str bucket,
                                struct str owner);
/* Returns a local storage that holds a copy of a bucket of this name; NULL: none. */
struct storage *routes_local_copy(struct routes *r, const struct routes_view *view,
                                  struct str bucket);
/* Returns the id of the user whose bucket was copied to this place; NULL: the place holds no
 * copy. */
const char *routes_copy_of(const struct routes_view *view, const struct storage *s,
                           struct str bucket);

/* Reads all policies and installs them as the new view. */
int routes_load(struct routes *r, struct err *err) MUST_CHECK;
void routes_view_put(struct routes *r, struct routes_view *view);
void routes_view_free(struct routes_view *view); /* NULL is fine */

/* Runs route_change.lua on the store of policies. ERR_CONFLICT: a replication or a switch relies on
 * the present policy (docs/replication.md, P6). */
int routes_change(struct store *config, struct store_args args, struct err *err) MUST_CHECK;
/* Runs route_pin.lua, which gives replications of older versions of weir their bucket policies and
 * entries in w:copies. */
int routes_pin(struct store *config, struct err *err) MUST_CHECK;

/* Appends `prefix`, the escaped `first` and, unless it is empty, ':' and the escaped `second`. */
void routes_key(struct buf *out, const char *prefix, struct str first, struct str second);

#endif
