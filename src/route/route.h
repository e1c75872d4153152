/* The routes: storages by name, and the policies that lead users and buckets to storages.
 *
 * Policies are in configDB, a database that all weirs of an installation share (store/store.h).
 * p:route:<user> (a *user policy*) and p:route:<user>:<bucket> (a *bucket policy*) name a storage,
 * and the set p:route_block:<storage> names buckets that are refused there. store_key_part()
 * escapes the variable parts of keys. A bucket policy comes before a user policy, and a user policy
 * before the *main storage*, which is for everybody without a policy. The hash w:copies names the
 * places that replication fills, and no route leads there. route/resolve.h finds a bucket by these
 * policies. A *switch* moves the clients of a replicated bucket to another storage
 * (docs/replication.md).
 *
 * All policies are held in memory, and published messages refresh them, so looking them up never
 * waits. Until the store was reached once, looking up fails with ERR_UNAVAILABLE. A `user` is a
 * user's id, as in bucket_info.owner; empty: an anonymous request. Any thread may call these
 * functions. */
#ifndef ROUTE_ROUTE_H
#define ROUTE_ROUTE_H

#include "base/log.h"
#include "object/bucket.h"

struct routes;
struct store;
struct local_options;
struct db;

enum { ROUTES_STORAGES_MAX = 64 };

int routes_open(struct routes **out, struct store *config, const struct log *log,
                struct err *err) MUST_CHECK;
void routes_close(struct routes *r); /* closes the storages too */
/* To be called before routes_close(): makes calls that wait for a remote storage, now or later,
 * fail within a moment. */
void routes_abort(struct routes *r);

/* Takes ownership of the storage, and closes it at once on failure. Storages stay open until the
 * routes are closed. The first storage that is added is the main one, unless routes_set_main()
 * chooses another. */
int routes_add_storage(struct routes *r, struct storage *s, struct err *err) MUST_CHECK;
/* Chooses the main storage. ERR_NOT_FOUND: there is no such storage. Then there is no main storage,
 * and requests that no policy leads elsewhere fail with ERR_OFFLINE. */
int routes_set_main(struct routes *r, struct str name, struct err *err) MUST_CHECK;
struct storage *routes_storage(struct routes *r, struct str name); /* borrowed; NULL: unknown */
struct storage *routes_main(struct routes *r); /* NULL: there is no main storage */
struct str routes_main_name(struct routes *r); /* empty: there is no main storage */
size_t routes_storages(struct routes *r, struct storage **out, size_t max);

/* Removes a storage from the routes; it is closed with the routes. If it was the main storage, the
 * first remaining one becomes the main storage. */
void routes_retire_storage(struct routes *r, struct str name);
/* Tells the routes whether all storages could be read from the store. While `known` is false,
 * looking up a bucket fails with ERR_UNAVAILABLE, because the bucket may be on a storage that was
 * not read yet. */
void routes_know_storages(struct routes *r, bool known);
bool routes_any_remote(struct routes *r); /* whether any storage has STORAGE_FORWARDS */
bool routes_main_is_remote(struct routes *r);

/* Gives this overlay (object/overlay.h) to all storages, including those that are added later. The
 * overlay is borrowed until the routes are closed. */
void routes_set_overlay(struct routes *r, struct overlay *overlay);

/* Opens `main`, whose id is chosen here, and the local storages that were added to this database
 * before. Their names, folders and ids are in the database's family "server". A storage whose
 * folder is not there is opened as missing (object/local/local.h), which is no error. */
int routes_open_local(struct routes *r, const struct local_options *main,
                      struct err *err) MUST_CHECK;
/* Adds a local storage permanently; its id is chosen here. ERR_EXISTS: the name is in use.
 * ERR_INVALID: the name is not allowed, or the folder is not an absolute path or not empty. */
int routes_add_local(struct routes *r, const struct local_options *wanted,
                     struct err *err) MUST_CHECK;

/* Forgets a local storage that was added; it is closed with the routes. Its folder and its rows
 * stay but cannot be used again, because a folder that is not empty cannot be added. ERR_IN_USE: it
 * is the main storage. ERR_INVALID: it is the data folder's own storage. */
int routes_remove_local(struct routes *r, struct db *db, struct str name,
                        struct err *err) MUST_CHECK;
/* Returns the errors that routes_remove_local() would return, and removes nothing. */
int routes_check_removal(struct routes *r, struct db *db, struct str name,
                         struct err *err) MUST_CHECK;

/* Finds the storage that the policies lead the user's bucket to, whether the bucket is there or
 * not. ERR_DENIED: the bucket is blocked there. ERR_BUSY: a switch blocks it for a while
 * (docs/replication.md, S1). ERR_UNAVAILABLE: the policies lead to nothing but copies
 * (docs/forward.md, B2). ERR_OFFLINE: a policy names a storage that is not there. */
int route_storage(struct routes *r, struct str user, struct str bucket, struct storage **out,
                  struct err *err) MUST_CHECK;

/* Returns whether this storage holds, under this name, a copy of a bucket that is elsewhere
 * (docs/forward.md, B1). Only copies of this user's bucket count, unless `user` is empty. Never
 * waits. Returns false before the store was reached for the first time. */
bool route_is_copy(struct routes *r, struct str storage, struct str bucket, struct str user);

/* Reads the policies again. When it returns, the calls here see every change that was made before
 * the call. */
int routes_reload(struct routes *r, struct err *err) MUST_CHECK;

/* Returns a number that changes whenever the functions here may give another answer than before. A
 * caller reads the number first and then asks; the answer holds as long as the number stays the
 * same. */
uint64_t routes_generation(const struct routes *r);

/* route_set() sets a policy, and route_block() sets or removes a block. When they return, the
 * change is durable, and the functions above see it. If `bucket` is empty, route_set() sets the
 * user's policy for all buckets; if `storage` is empty, it removes the policy. ERR_NOT_FOUND: there
 * is no such storage. ERR_INVALID: the bucket's name is reserved for sharding. ERR_CONFLICT: the
 * storage is remote and would hide a bucket of that name that the user has on a local storage, or a
 * replication or a switch relies on the present policy (docs/replication.md, P6). */
int route_set(struct routes *r, struct str user, struct str bucket, struct str storage,
              struct err *err) MUST_CHECK;
int route_block(struct routes *r, struct str storage, struct str bucket, bool blocked,
                struct err *err) MUST_CHECK;

/* A policy or a block. Its strings are in the arena that was passed to route_list(). */
struct route_policy {
    struct str user;   /* empty: this is a block, which is for all users */
    struct str bucket; /* empty: the policy is for all buckets of the user that have no policy of
                          their own */
    struct str storage;
    bool blocked; /* this is a block: `storage` refuses requests for the bucket */
};

/* Lists all policies and blocks, sorted by user, bucket and storage. Blocks have no user, so they
 * come first. Never waits. */
int route_list(struct routes *r, struct arena *a, struct route_policy **out, size_t *count,
               struct err *err) MUST_CHECK;

#endif
