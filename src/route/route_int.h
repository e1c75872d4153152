/* Between the files of routes. */
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

/* All policies at one moment; never changed once it is installed. The maps' keys are the store's
 * without what they begin with. */
struct routes_view {
    size_t refs; /* under routes.lock */
    struct arena arena;
    struct map policies; /* "<user>" and "<user>:<bucket>" to the storage's name (char *) */
    struct map blocks;   /* "<storage>:<bucket>" to something */
    struct map switches; /* those that a switch with downtime has blocked; as blocks */
    struct map pins;     /* "<user>:<bucket>" whose policy a replication has made, to something */
    struct map reserved; /* "<bucket>" of all bucket policies, to something */
    struct map named;    /* "<bucket>" to the storage that all bucket policies of it name, but for
                            pins, or to "" when they differ */
    struct map copies;   /* "<storage>:<bucket>", a place that holds a copy, to the id of the user
                            whose bucket was copied (char *); docs/forward.md, B1 */
    uint64_t serial;     /* no other view of this process has it */
};

/* Bucket names that were on no local storage when they were last looked for, so that a request on
 * its way to a remote one reads no row. A slot is a keyed hash of the name, of the view's serial,
 * and of the generations of all local storages then. Generations only grow, and each view has a
 * serial of its own, so that once a bucket may have been made, or is no copy any more, the slot
 * says nothing. */
enum { ROUTES_ABSENT = 1024 };

struct routes {
    struct store *store; /* borrowed */
    struct reload reload;

    struct mutex lock;
    struct cond loaded;
    bool loading;             /* one load at a time, so that an older view never follows a newer */
    struct routes_view *view; /* NULL: the store could not be asked yet */
    uint64_t views;           /* loads that were begun; gives views their serials */
    VEC(struct storage *) storages;
    VEC(struct storage *) retired; /* taken out; open until the close, as others may use them */
    struct storage *main;
    bool aborted;            /* those that are added from now on, too */
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
/* The value under "<first>" or "<first>:<second>", as the store's keys are written; NULL: none. */
const char *routes_look_up(const struct map *map, struct str first, struct str second);
/* Bucket policy, else user policy, else main; where that is a copy, the same of the copy's owner
 * (docs/forward.md, B1); and blocks. */
int routes_storage_by(struct routes *r, const struct routes_view *view, struct str user,
                      struct str bucket, struct storage **out, struct err *err) MUST_CHECK;
/* ERR_OFFLINE: a policy names a storage, or one is the main storage, that this process has not. */
int routes_no_storage(const char *name, struct err *err);
int routes_no_main(struct err *err);
/* B1, B2: a place that holds a copy is replaced by where the route of the copy's owner leads. */
int routes_leave_copy(struct routes *r, const struct routes_view *view, struct str bucket,
                      struct storage **at, struct err *err) MUST_CHECK;
/* The local storage that has a bucket of this name, of this owner unless that is empty; or NULL.
 * Copies are passed over. */
struct storage *routes_local_of(struct routes *r, const struct routes_view *view, struct str bucket,
                                struct str owner);
/* A local storage that holds a copy of a bucket of this name; NULL: none. */
struct storage *routes_local_copy(struct routes *r, const struct routes_view *view,
                                  struct str bucket);
/* The user whose bucket was copied to this place; NULL: the place holds no copy. */
const char *routes_copy_of(const struct routes_view *view, const struct storage *s,
                           struct str bucket);
int routes_check_block(const struct routes_view *view, const struct storage *s, struct str bucket,
                       struct err *err) MUST_CHECK;

/* Read all policies and install them. */
int routes_load(struct routes *r, struct err *err) MUST_CHECK;
void routes_view_put(struct routes *r, struct routes_view *view);
void routes_view_free(struct routes_view *view); /* NULL is fine */

/* Runs route_change.lua, on the store of policies. ERR_CONFLICT: a replication or a switch counts
 * on what is there (docs/replication.md, P6). */
int routes_change(struct store *config, struct store_args args, struct err *err) MUST_CHECK;
/* Runs route_pin.lua: gives replications from before there were copies their routes and copies. */
int routes_pin(struct store *config, struct err *err) MUST_CHECK;

/* `prefix`, `first` and, unless it is empty, ':' and `second`; both escaped. */
void routes_key(struct buf *out, const char *prefix, struct str first, struct str second);

#endif
