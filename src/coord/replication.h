/* Replications: their policies and status, in configDB with the keys of Chorus (a replication proxy
 * for S3), and the recording of changes. docs/replication.md has the terms, the keys and the
 * invariants, which comments here cite by codes such as R3 and S12.
 *
 * All policies are held in memory as a *view*, which has an epoch (a number that grows with each
 * change of a policy). The view is renewed when a message says that a policy was changed. Looking
 * at a view never waits. Every change of a policy is one script that may use appDB, queueDB and
 * configDB, so these must be on one server (store_join()). The script raises `w:epoch`, and when
 * the call returns, the view of this process has the change. Any thread may call these functions.
 *
 * Calls fail with the store's codes (store/store.h), and with the codes that are named below. After
 * ERR_UNAVAILABLE nothing was done. */
#ifndef COORD_REPLICATION_H
#define COORD_REPLICATION_H

#include "base/log.h"
#include "coord/queue.h"
#include "coord/version.h"

struct replications;

enum { PRIORITY_MAX = 5 };

/* Channel of configDB. A message on it says that a policy was changed. */
#define REPLICATIONS_CHANNEL STR("weir:replications")

struct replications_options {
    struct store *app, *queue, *config; /* borrowed; joined by store_join() */
    struct seen *seen; /* numbers the records (coord/seen.h); borrowed; NULL: no numbers */
    const struct log *log;
};
/* Opens the replications. A store that is down is no error: calls fail with ERR_UNAVAILABLE until
 * it is back. */
int replications_open(struct replications **out, const struct replications_options *o,
                      struct err *err) MUST_CHECK;
void replications_close(struct replications *r); /* NULL is fine; views may outlive `r` */

/* The name of a replication. `bucket` empty: the policy for all buckets of the user. `to_bucket`
 * empty: the bucket has the same name at the destination. */
struct replication_id {
    struct str user, bucket, from, to, to_bucket;
};

/* The status of a replication: the hash `p:repl_st:…`. Times are ms since 1970; 0: not set. */
struct replication_status {
    int64_t created_ms, resynced_ms, archived_ms, init_done_ms, emitted_ms, processed_ms;
    bool paused, archived, listing_started;
    /* Number of listing tasks that have not ended, including the copy's first task. */
    int64_t listings;
    int64_t listed, done, failed, bytes_listed, bytes_done, events, events_done;
    struct str agent_url;
};
bool replication_init_done(const struct replication_status *s);

struct replication {
    struct replication_id id;
    int priority;
    bool paused;
    bool archived;
    /* A switch without downtime is in progress or announced. Changes of both sides are recorded,
     * and reads choose the side by the version vectors (S4 to S6). Only the route (route/route.h)
     * says where writes go. */
    bool switching;
    /* The switch is only announced: the route still leads to `from`, and nothing is archived. */
    bool announced;
    /* The switch was aborted, and this replication copies the changes back. `from` is the storage
     * that the switch was to lead to, and `to` is where the route leads again. Uploads whose ids
     * are in the set `s:up` are at `from`. */
    bool aborted;
    bool blocked;    /* a switch with downtime is in progress (S1) */
    bool has_switch; /* this replication has a switch that is not done */
    /* URL to which the source sends notices of changes that bypass weir; empty: none. */
    struct str agent_url;
};

/* --- the view --- */

/* Gives a reference to the newest view, which has every change up to its epoch. The caller unrefs
 * it. ERR_UNAVAILABLE: no view was loaded yet. */
struct replication_view;
int replications_view(struct replications *r, struct replication_view **out,
                      struct err *err) MUST_CHECK;
/* Reads new changes from the store. When it returns, the view has every change that was made before
 * the call. */
int replications_refresh(struct replications *r, struct err *err) MUST_CHECK;
void replication_view_unref(struct replication_view *view); /* NULL is fine */
int64_t replication_view_epoch(const struct replication_view *view);
/* Gives the replications whose source is this bucket at this storage, whoever owns them: a change
 * of the bucket makes tasks for each. An archived replication is left out unless it is `switching`.
 * Returns their number. The list is borrowed from the view. */
size_t replication_view_from(const struct replication_view *view, struct str storage,
                             struct str bucket, const struct replication *const **out);
/* Returns whether a change of the bucket at this storage must be recorded: replication_view_from(),
 * replication_view_switch() or replication_view_blocked() finds a replication for it. */
bool replication_view_any(const struct replication_view *view, struct str storage,
                          struct str bucket);
/* Returns the replication that is `switching` and has the bucket at this storage as its source or
 * its destination. Changes there are recorded even if they make no task, because reads choose the
 * side by the version vectors. NULL: there is no such replication. */
const struct replication *replication_view_switch(const struct replication_view *view,
                                                  struct str storage, struct str bucket);
/* Returns the replication that is `blocked` and has this destination. Changes there are recorded,
 * because they may be the first changes for a reverse replication that this view does not have yet
 * (S3). NULL: there is no such replication. */
const struct replication *replication_view_blocked(const struct replication_view *view,
                                                   struct str storage, struct str bucket);
/* Gives the user's policies that have this storage as their source. New buckets get replications by
 * these policies. */
size_t replication_view_user(const struct replication_view *view, struct str user,
                             struct str storage, const struct replication *const **out);
/* Gives all replications, archived ones too, sorted by user, bucket and destination. Replications
 * without a bucket are policies of users. */
size_t replication_view_all(const struct replication_view *view,
                            const struct replication *const **out);

/* --- policies --- */

struct replication_new {
    struct replication_id id;
    int priority;         /* 0 to PRIORITY_MAX */
    struct str agent_url; /* where the source reports changes that bypass weir; empty: nowhere */
    bool init_done;       /* no initial copy is needed: a switch has reversed the replication */
    /* The call returns before the view has the change, which saves time in many calls in a row. */
    bool later;
    /* A task that is queued with the replication and counted as a listing; replication_list() ends
     * it. Without a type: no task. */
    struct task first;
};
/* Adds a replication (P1, P2, P4). `route` is the storage that the bucket's route leads to when the
 * store has no routing policy for the bucket: the main storage. ERR_EXISTS: the replication exists
 * already. ERR_CONFLICT, with a text that says which of these holds: the route leads elsewhere, the
 * source is the destination of another replication, the destination bucket is in use, or the bucket
 * has a switch. */
int replication_add(struct replications *r, const struct replication_new *n, struct str route,
                    struct err *err) MUST_CHECK;
/* Removes the policy and its status at once. If the destination bucket has another name, it may
 * then be used directly again. The replication's tasks do nothing from now on. The caller then
 * removes the larger data by replication_clean() and version_strip(). ERR_NOT_FOUND: there is no
 * such replication. ERR_CONFLICT: the bucket has a switch. */
int replication_remove(struct replications *r, const struct replication_id *id,
                       struct err *err) MUST_CHECK;
/* The arguments of replication_end(), which removes a replication whose bucket was deleted at the
 * source and at the destination (P7). ERR_CONFLICT: the replication stays, because no policy of the
 * user would make the same replication again, or because a change of the bucket was recorded after
 * `number` was read. */
struct replication_end {
    struct replication_id id;
    /* The source's number in the bucket's version vector, read before the caller looked for the
     * bucket at the source. */
    int64_t number;
    /* Tasks that are queued with the removal. One task cleans up; the other task finds out whether
     * the bucket was made again meanwhile. */
    struct task then[2];
    struct str route; /* the main storage, as for replication_add() */
};
int replication_end(struct replications *r, const struct replication_end *e,
                    struct err *err) MUST_CHECK;
/* Pauses or resumes a replication. ERR_NOT_FOUND: there is no such replication. ERR_INVALID: the
 * replication is a user's policy, which has no status. */
int replication_pause(struct replications *r, const struct replication_id *id, bool paused,
                      struct err *err) MUST_CHECK;
/* Archives a replication: from now on changes make no tasks for it. Its status stays, and the tasks
 * that it already has still run. */
int replication_archive(struct replications *r, const struct replication_id *id,
                        struct err *err) MUST_CHECK;
/* Begins the initial copy again: the counters are set to 0, `first` is queued, and everything is
 * listed again on both sides. Tasks of the earlier copy are not counted any more. ERR_NOT_FOUND:
 * there is no such replication. ERR_CONFLICT: the replication is archived, or its bucket has a
 * switch, so that the destination may be newer than the source. `planned` true: a switch that is
 * not in progress yet does not cause ERR_CONFLICT. Such a switch waits for the copy, or ends. */
int replication_resync(struct replications *r, const struct replication_id *id,
                       const struct task *first, bool planned, struct err *err) MUST_CHECK;
/* Sets *out to whether every process that writes knows the replication as it is in the store now
 * (P3). The store may be newer than the view of this process. */
int replication_is_known(struct replications *r, const struct replication_id *id, bool *out,
                         struct err *err) MUST_CHECK;
/* Reads the status from the store. ERR_NOT_FOUND: there is no such replication. */
int replication_read(struct replications *r, struct arena *a, const struct replication_id *id,
                     struct replication_status *out, struct err *err) MUST_CHECK;
/* Removes the cursors of the replication's listings (how far each listing has come). Each call
 * removes some of them; the caller calls again with the same `at` until *at is 0. */
int replication_clean(struct replications *r, const struct replication_id *id, uint64_t *at,
                      struct err *err) MUST_CHECK;

/* --- version vectors of buckets whose replications were removed (V3) --- */

/* Sets *out to whether a replication of this bucket was removed and the bucket's version vectors
 * still exist. In that case the numbers of a new destination may come from an earlier
 * replication. */
int replication_any_removed(struct replications *r, struct str bucket, bool *out,
                            struct err *err) MUST_CHECK;
/* Removes the version vectors of buckets whose last replication was removed at least a day ago, so
 * that none of its tasks can still run. `ended` is called now and then, and the function stops when
 * `ended` returns true. *count is the number of buckets whose vectors were removed. */
int replication_forget_unused(struct replications *r, bool (*ended)(void *ctx), void *ctx,
                              size_t *count, struct err *err) MUST_CHECK;

/* --- counters that do not agree with the tasks (P8) --- */

/* A replication that has fewer tasks, or more, than its counters say. */
struct replication_gap {
    struct replication_id id;
    int64_t copies, listings, events; /* number of missing tasks; below 0: of surplus tasks */
    /* 0: the gap was mended. ERR_CONFLICT: the copy cannot begin again, because the replication is
     * archived or its bucket has a switch. ERR_NOT_FOUND: the counters have changed meanwhile, so a
     * later call compares this replication again. */
    int outcome;
};
struct replication_recount {
    int64_t idle_ms; /* only replications whose tasks did nothing for this time are compared */
    /* Makes the task that begins a copy again: the `first` of replication_resync(). */
    struct task (*first)(struct arena *a, const struct replication_id *id);
    void (*told)(void *ctx, const struct replication_gap *gap); /* called for each gap */
    bool (*ended)(void *ctx); /* called now and then; returns true to stop the comparison soon */
    void *ctx;
};
/* Compares the counters of replications that have open tasks with the tasks in the queue. If a
 * replication only has too many copies, its counters are corrected. After any other difference its
 * copy begins again. *looked is the number of replications that were compared. */
int replication_recount(struct replications *r, const struct replication_recount *o, size_t *looked,
                        struct err *err) MUST_CHECK;

/* --- recording changes (R3) --- */

/* A change of one thing at one place. Recording it raises the place's number in the thing's version
 * vector (coord/version.h), and makes one task for each destination of the bucket. The task's
 * payload says which thing has changed, never what happened to it (R2). So a pending task for the
 * same thing also covers another change of it. */
struct change {
    struct thing thing;
    struct place place;
    /* For an object: recording the change also raises the numbers of the object's tags and of its
     * access list, if they have version vectors (V5). */
    bool whole;
    struct str type; /* type of the task, such as "object:sync" */
    /* True: the change of an object may share a task of type RECORD_TOGETHER with other changes of
     * its bucket in the same record. False: the change has a task of its own. */
    bool together;
    /* Number of the change's row in the outbox (log of changes) of the storage record.log; 0: the
     * change has no row. */
    uint64_t row;
    /* The change was found long after it was made, by an intent, which is a note that was written
     * before the change (R4). If the object was since written at another place, after a switch,
     * that write is newer and must keep the higher number. */
    bool late;
};
#define RECORD_TOGETHER STR("objects:sync")
enum { RECORD_TOGETHER_MAX = 32 };

struct record {
    const struct change *changes;
    size_t count; /* at most QUEUE_BATCH_MAX; 0: only intents or `log_last` are written */
    /* Ids of the tasks in the queue `intents` that end with this record. */
    const struct str *intents;
    size_t intent_count; /* at most QUEUE_BATCH_MAX */
    struct str log;      /* storage whose outbox (log of changes) has the changes; empty: none */
    uint64_t log_last;   /* number of the outbox's last row that is in this record */
    /* The record need not be on disk when the call returns. The embedded store writes it to disk
     * with the next durable step. */
    bool relaxed;
};
/* Records changes and queues their tasks. The destinations are those that the store has at this
 * moment, even if the view is older. Changes whose rows were recorded before are left out.
 * ERR_BUSY: the replications of the bucket change faster than they can be read. */
int replication_record(struct replications *r, const struct record *rec,
                       struct err *err) MUST_CHECK;
/* Gives the number of the last recorded row of a storage's outbox; 0: no row was recorded. */
int replication_recorded(struct replications *r, struct str log, uint64_t *out,
                         struct err *err) MUST_CHECK;

/* --- progress ---
 *
 * The hash of each task that these functions queue says which counters of which replication count
 * the task. Every step that ends the task (queue_done(), the last failure, the recovery after a
 * worker died, a deletion) raises these counters in the same script. So the handler of such a task
 * only needs to return 0. */

/* A task that a listing makes: the listing of a sub-prefix or of versions, or the copy of one or
 * more objects. */
struct listed {
    struct task task;  /* the id says what the task lists or copies, so that it is queued once */
    bool listing;      /* true: the task is a listing; false: it is a copy */
    struct str prefix; /* for a listing: the prefix to list; empty, or ends with '/' */
    uint64_t bytes;    /* for a copy: bytes to copy */
    size_t objects;    /* for a copy: number of objects; 0: one */
};

struct listed_page {
    struct replication_id id;
    const struct task *task; /* the listing's own task, which the caller holds */
    struct str prefix;       /* prefix that is listed; empty, or ends with '/' */
    struct str after;        /* where the page begins: the result of replication_cursor() */
    struct str last;         /* the next cursor; empty: this is the last page, and `task` ends */
    const struct listed *items;
    size_t count; /* at most QUEUE_BATCH_MAX */
};
/* Queues and counts the tasks of the page, and moves the cursor. The last page ends `task` in the
 * same script, so that no page is counted twice; the task's handler, which calls this, then sets
 * task_run.done. ERR_CONFLICT: the caller does not hold the task any more, or the cursor is not at
 * `after`. ERR_NOT_FOUND: the replication does not exist any more; nothing was done. */
int replication_page(struct replications *r, const struct listed_page *p,
                     struct err *err) MUST_CHECK;
/* Gives the id of the task for a change of a thing. All changes of one thing have the same id, so
 * that a second change finds the pending task. */
int replication_event_id(struct arena *a, const struct replication_id *id, struct str type,
                         const struct thing *thing, struct str *out, struct err *err) MUST_CHECK;
/* The arguments of replication_split(), which ends a task for several objects when some of them
 * failed. Each failed object gets a task of its own. The task's handler, which calls this, then
 * sets task_run.done. ERR_CONFLICT: the caller does not hold the task any more. */
struct listed_split {
    struct replication_id id;
    const struct task *task;
    uint64_t bytes;              /* bytes that were copied */
    size_t objects;              /* number of objects that were copied */
    const struct listed *failed; /* tasks for the failed objects; at most QUEUE_BATCH_MAX */
    size_t count;
    int64_t delay_s; /* seconds until the failed objects are tried again */
};
int replication_split(struct replications *r, const struct listed_split *s,
                      struct err *err) MUST_CHECK;
/* Ends `task`, whose type is bucket:create, and queues the first listing, in one script. The task's
 * handler, which calls this, then sets task_run.done. Errors are those of replication_page(). */
int replication_list(struct replications *r, const struct replication_id *id,
                     const struct task *task, const struct task *listing,
                     struct err *err) MUST_CHECK;
/* Gives the cursor of a listing, the key behind which the listing goes on; empty: the listing goes
 * on at the beginning. */
int replication_cursor(struct replications *r, struct arena *a, const struct replication_id *id,
                       struct str prefix, struct str *out, struct err *err) MUST_CHECK;

#endif
