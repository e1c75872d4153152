/* What the files of routes share among each other. */
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
 * the store's keys without their prefixes. A map "to something" is a set. */
struct routes_view {
    size_t refs; /* under routes.lock */
    struct arena arena;
    struct map policies; /* "<user>" and "<user>:<bucket>" to the storage's name (char *) */
    struct map blocks;   /* a set of "<storage>:<bucket>" */
    struct map switches; /* those of `blocks` that a switch with downtime has set */
    struct map pins;     /* a set of "<user>:<bucket>" whose policy a replication has made */
    struct map reserved; /* a set: "<bucket>" of every bucket policy */
    struct map named;    /* "<bucket>" to the storage that all its bucket policies name, or to ""
                            when they differ; pins do not count */
    struct map copies;   /* "<storage>:<bucket>", a place that holds a copy, to the id of the user
                            whose bucket was copied (char *); docs/forward.md, B1 */
    uint64_t serial;     /* no other view of this process has it */
};

/* Slots that remember names of buckets that were on no local storage when they were last looked
 * for, so that a request on its way to a remote storage reads no row. A slot holds a keyed hash of
 * the name, of the view's serial and of the generations of all local storages at that time.
 * Generations only grow and each view has a serial of its own: once a bucket may have been made, or
 * is no copy any more, the hash is another one and the slot does not match. */
enum { ROUTES_ABSENT = 1024 };

struct routes {
    struct store *store; /* borrowed */
    struct reload reload;

    struct mutex lock;
    struct cond loaded;
    bool loading;             /* one load at a time, so that an older view never follows a newer */
    struct routes_view *view; /* NULL: the store could not be asked yet */
    uint64_t views;           /* loads that were begun, which gives views their serials */
    VEC(struct storage *) storages;
    VEC(struct storage *) retired; /* taken out; open until the close, as others may use them */
    struct storage *main;
    bool aborted;            /* storages that are added from now on are aborted, too */
    struct overlay *overlay; /* of every storage, now and later; NULL: none */
    const struct bucket_space *spaces[ROUTES_SPACES_MAX]; /* the first space_count; never changed */
    _Atomic(size_t) space_count;
    _Atomic(bool) storages_known, any_remote, main_is_remote;
    _Atomic(uint64_t) generation; /* raised when what was found before may be found elsewhere */

    struct hash_key absent_key;
    _Atomic(uint64_t) absent[ROUTES_ABSENT];
};

#define ROUTES_CHANNEL STR("weir:routes")

/* A reference to the newest view. ERR_UNAVAILABLE: none was ever loaded. */
int routes_view_get(struct routes *r, struct routes_view **out, struct err *err) MUST_CHECK;
/* The local storage that has a bucket of this name, which must be this owner's unless `owner` is
 * empty; NULL: none. Copies do not count. */
struct storage *routes_local_of(struct routes *r, const struct routes_view *view, struct str bucket,
                                struct str owner);
/* A local storage that holds a copy of a bucket of this name; NULL: none. */
struct storage *routes_local_copy(struct routes *r, const struct routes_view *view,
                                  struct str bucket);
/* The user whose bucket was copied to this place; NULL: the place holds no copy. */
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

/* Appends `prefix`, `first` and, unless it is empty, ':' and `second`; the latter two escaped. */
void routes_key(struct buf *out, const char *prefix, struct str first, struct str second);

#endif
