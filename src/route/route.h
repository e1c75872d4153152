/* Which bucket is where: storages by name, and the seed's routing policies (configDB, keys
 * p:route:<user>, p:route:<user>:<bucket>, set p:route_block:<storage>), variable parts escaped by
 * store_key_part(). Order: bucket policy, else user policy, else the main storage; a blocked bucket
 * is refused. The hash w:copies names the places that replication fills; no route leads there. Held
 * in memory and refreshed by published messages; finding never waits. Any thread.
 *
 * A `user` is a user's id, as in bucket_info.owner; empty: nobody. Until the store was reached once
 * finding is ERR_UNAVAILABLE. */
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
/* Before it: whoever waits for a remote storage, now or later, fails within a moment. */
void routes_abort(struct routes *r);

/* Takes the storage, also when it fails: then it is closed. Storages stay until the close. The
 * first one added is the main storage unless routes_set_main() says otherwise. */
int routes_add_storage(struct routes *r, struct storage *s, struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND: then there is none, and what has no policy is ERR_OFFLINE. */
int routes_set_main(struct routes *r, struct str name, struct err *err) MUST_CHECK;
struct storage *routes_storage(struct routes *r, struct str name); /* borrowed; NULL when unknown */
struct storage *routes_main(struct routes *r);                     /* NULL when there is none */
struct str routes_main_name(struct routes *r);                     /* empty then */
size_t routes_storages(struct routes *r, struct storage **out, size_t max);

/* Takes one out; it is closed at the close. When it was the main one the first is. */
void routes_retire_storage(struct routes *r, struct str name);
/* False: finding is ERR_UNAVAILABLE, as there may be storages that could not be read yet. */
void routes_know_storages(struct routes *r, bool known);
bool routes_any_remote(struct routes *r);
bool routes_main_is_remote(struct routes *r);

/* Gives all storages, those that are added later too, this overlay (object/overlay.h), which is
 * borrowed until the close. */
void routes_set_overlay(struct routes *r, struct overlay *overlay);

/* Opens `main` (its id is chosen here) and the local storages that were added to this database
 * before; name, folder and id of those come from its family "server". One of those whose folder is
 * not there is missing (object/local.h), and no error. */
int routes_open_local(struct routes *r, const struct local_options *main,
                      struct err *err) MUST_CHECK;
/* Adds one more, for ever; its id is chosen here. ERR_EXISTS: the name. ERR_INVALID: the name, or
 * the folder is not an absolute path or not empty. */
int routes_add_local(struct routes *r, const struct local_options *wanted,
                     struct err *err) MUST_CHECK;

/* Forgets one that was added; it is closed at the close. Its folder and its rows stay, and nothing
 * leads to them any more: a folder that is not empty is not added. ERR_IN_USE: it is the main one.
 * ERR_INVALID: it was not added. */
int routes_remove_local(struct routes *r, struct db *db, struct str name,
                        struct err *err) MUST_CHECK;
/* Those errors alone. */
int routes_check_removal(struct routes *r, struct db *db, struct str name,
                         struct err *err) MUST_CHECK;

/* The storage that a user's bucket is on, or would be made on. ERR_DENIED: blocked there. ERR_BUSY:
 * blocked by a switch, for a while (docs/replication.md, S1). ERR_UNAVAILABLE: led to nothing but
 * copies (docs/forward.md, B2). ERR_OFFLINE: a policy names a
 * storage that is not there. */
int route_storage(struct routes *r, struct str user, struct str bucket, struct storage **out,
                  struct err *err) MUST_CHECK;

/* Whether the place holds a copy of a bucket that is elsewhere (docs/forward.md, B1), of this user
 * unless that is empty. Never waits. False also until the store was reached once. */
bool route_is_copy(struct routes *r, struct str storage, struct str bucket, struct str user);

/* Reads the policies again: all that was changed before is seen by the calls here when it returns.
 */
int routes_reload(struct routes *r, struct err *err) MUST_CHECK;

/* Another number when what the calls here have found may be found elsewhere now. Read before them;
 * what is told of after that has another when it is seen. */
uint64_t routes_generation(const struct routes *r);

/* Whether there are policies at all: when not, every bucket is on the main storage or where it was
 * made. */
bool routes_any(struct routes *r);

/* Policies; durable, and seen by the calls above, when they return. An empty bucket: the user's
 * policy. An empty storage removes it. ERR_NOT_FOUND: no such storage. ERR_CONFLICT: the storage is
 * a remote one, and the user has a bucket of that name on a local one, which would be hidden; or a
 * replication or a switch counts on the policy that is there (docs/replication.md, P6). */
int route_set(struct routes *r, struct str user, struct str bucket, struct str storage,
              struct err *err) MUST_CHECK;
int route_block(struct routes *r, struct str storage, struct str bucket, bool blocked,
                struct err *err) MUST_CHECK;

/* One that is set; strings in the arena of the call. */
struct route_policy {
    struct str user;   /* empty in a block: it is for all */
    struct str bucket; /* empty: of all buckets of the user that have none of their own */
    struct str storage;
    bool blocked; /* the bucket is refused there */
};

/* All of them, by user, bucket and storage; blocks are first. Never waits. */
int route_list(struct routes *r, struct arena *a, struct route_policy **out, size_t *count,
               struct err *err) MUST_CHECK;

#endif
