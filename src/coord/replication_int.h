/* Declarations that the files of replications, switches and claims share. */
#ifndef COORD_REPLICATION_INT_H
#define COORD_REPLICATION_INT_H

#include "base/map.h"
#include "coord/queue_int.h"
#include "coord/replication.h"
#include "os/thread.h"
#include "store/reload.h"

struct replications {
    struct replications_options o;
    struct reload reload;

    struct mutex lock;
    struct cond loaded;
    /* True while a thread loads a view. Only one thread may load at a time, so that no older view
     * replaces a newer one. */
    bool loading;
    struct replication_view *view; /* NULL: no view was loaded yet */
    _Atomic(bool) doubt; /* the next load reads everything, even if the epoch is the same */
};

/* One policy in a view. */
struct policy {
    struct replication r;
    struct str name; /* <user>:<bucket>:<from>:<to>[:<to bucket>], escaped */
    /* Text of the time as it is stored; distinguishes policies of the same name. */
    struct str created_at;
    bool member; /* the policy is in the sorted set of its bucket or user, so it is not archived */
};

static inline const struct policy *policy_of(const struct replication *r)
{
    return container_of(r, const struct policy, r);
}

/* The policies of one source or one user: a part of a sorted array. */
struct policies {
    const struct replication **list;
    size_t count;
};

/* All policies. A view is never changed once it is installed. It has every change up to its epoch.
 * Changes that were made while the view was read may be in the view or not; `w:epochs` has them. */
struct replication_view {
    _Atomic(size_t) refs;
    int64_t epoch;
    struct arena arena;
    struct map names;    /* maps policy.name to struct policy */
    struct map sources;  /* maps <storage>:<bucket> to struct policies */
    struct map users;    /* maps <user>:<storage> to struct policies */
    struct map switches; /* maps <storage>:<bucket>, either side of a switch, to struct policy */
    /* Maps the destinations of switches with downtime, as <storage>:<bucket>, to struct policy. */
    struct map blocked;
    struct policies all;
};

struct replication_view *replication_view_new(int64_t epoch);
/* Gives the policy with this name, and makes it if the view does not have it. NULL: the name is
 * malformed, or the arena is full. */
struct policy *replication_view_named(struct replication_view *view, struct str name);
/* Copies all policies of `from` to `view`, except the policies whose names are in `but`. */
void replication_view_copy(struct replication_view *view, const struct replication_view *from,
                           const struct store_args *but);
/* Sorts and indexes the policies of the view. Called when the view has all policies. */
int replication_view_order(struct replication_view *view, struct err *err) MUST_CHECK;

/* Reads the policies and installs them as the new view, unless the present view has the newest
 * epoch. */
int replications_load(struct replications *r, struct err *err) MUST_CHECK;

/* Runs a script that changes policies, and reads the view again. A refusal of the script becomes an
 * error with a code and a text. ERR_TIMEOUT: the change may or may not have been made, or it was
 * made and the view could not be read. */
int replications_change(struct replications *r, struct arena *a, enum coord_script script,
                        const struct store_args *args, struct err *err) MUST_CHECK;
/* Like replications_change(), but does not read the view again. */
int replications_run(struct replications *r, struct arena *a, enum coord_script script,
                     const struct store_args *args, struct err *err) MUST_CHECK;
/* Wakes idle workers. They listen on queueDB, but scripts that change policies run on configDB. */
void replications_wake(struct replications *r, struct arena *a);

/* Appends `<storage>:<bucket>`, escaped. Also used for other pairs of names, such as
 * `<user>:<storage>`. */
void replication_source(struct buf *out, struct str storage, struct str bucket);

/* The parts of an id, escaped for keys. */
struct id_parts {
    struct str user, bucket, from, to, to_bucket; /* in the arena */
};
/* Checks an id and escapes its parts. A to_bucket that equals the bucket is left out. ERR_INVALID:
 * a name is missing or too long, or source and destination are the same. */
int replication_parts(struct arena *a, const struct replication_id *id, struct id_parts *out,
                      struct err *err) MUST_CHECK;
struct str replication_status_key(struct arena *a, const struct id_parts *p);
struct str replication_escaped(struct arena *a, struct str part);

#endif
