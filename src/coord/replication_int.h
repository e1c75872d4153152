/* Between the files of replications. */
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
    bool loading; /* one load at a time, so that an older view never follows a newer */
    struct replication_view *view; /* NULL: the store could not be asked yet */
    _Atomic(bool) doubt;           /* it is read again though its epoch is the newest */
};

/* One of the view. */
struct policy {
    struct replication r;
    struct str name;       /* <user>:<bucket>:<from>:<to>[:<to bucket>], escaped */
    struct str created_at; /* as it is stored; tells it from one of the same name */
    bool member;           /* of its sorted set */
};

static inline const struct policy *policy_of(const struct replication *r)
{
    return container_of(r, const struct policy, r);
}

/* Those with one source or one user, a run of an array. */
struct policies {
    const struct replication **list;
    size_t count;
};

/* All policies; never changed once it is installed. It has every change up to its epoch; what was
 * changed while it was read may be in it or not, and is known by `w:epochs`. */
struct replication_view {
    _Atomic(size_t) refs;
    int64_t epoch;
    struct arena arena;
    struct map names;    /* policy.name to struct policy */
    struct map sources;  /* <storage>:<bucket> to struct policies */
    struct map users;    /* <user>:<storage> to struct policies */
    struct map switches; /* <storage>:<bucket> to struct policy */
    struct map blocked;  /* the same, of destinations of switches with downtime */
    struct policies all;
};

struct replication_view *replication_view_new(int64_t epoch);
/* The policy of that name, made if need be; NULL: it is no name. */
struct policy *replication_view_named(struct replication_view *view, struct str name);
/* All of `from`, but for those named. */
void replication_view_copy(struct replication_view *view, const struct replication_view *from,
                           const struct store_args *but);
/* Once all are there. */
int replication_view_order(struct replication_view *view, struct err *err) MUST_CHECK;

/* Reads all policies, unless those at hand are of the newest epoch, and installs them. */
int replications_load(struct replications *r, struct err *err) MUST_CHECK;

/* Runs a script that changes policies: what it answers as a code and a text; what it has changed is
 * seen here. ERR_TIMEOUT: the view could not be read, and the change may or may not have been made.
 */
int replications_change(struct replications *r, struct arena *a, enum coord_script script,
                        const struct store_args *args, struct err *err) MUST_CHECK;
/* The same of one that changes nothing that views have. */
int replications_run(struct replications *r, struct arena *a, enum coord_script script,
                     const struct store_args *args, struct err *err) MUST_CHECK;
/* Workers listen on the queue's database, such scripts run on another. */
void replications_wake(struct replications *r, struct arena *a);

/* <storage>:<bucket>, escaped; or any two names. */
void replication_source(struct buf *out, struct str storage, struct str bucket);

/* The parts of an id as they stand in keys. */
struct id_parts {
    struct str user, bucket, from, to, to_bucket; /* in the arena */
};
/* ERR_INVALID: it names nothing that can be. A to_bucket that is the bucket's name is left out. */
int replication_parts(struct arena *a, const struct replication_id *id, struct id_parts *out,
                      struct err *err) MUST_CHECK;
struct str replication_status_key(struct arena *a, const struct id_parts *p);
struct str replication_escaped(struct arena *a, struct str part);

#endif
