/* Replications: the seed's policies (configDB), their status, and the recording of changes.
 * docs/replication.md has the words, the keys and the invariants (R, V, P).
 *
 * All policies are held in memory as a *view*, which has an epoch and is renewed when a message
 * says that a policy was changed. Looking at a view never waits. Every change of a policy is one
 * script over the databases, which must be on one server. The script raises `w:epoch`, and when the
 * call returns, the view of this process has the change. Any thread.
 *
 * Calls fail with the store's codes (store/store.h), and with those that are named below. After
 * ERR_UNAVAILABLE nothing was done. */
#ifndef COORD_REPLICATION_H
#define COORD_REPLICATION_H

#include "base/log.h"
#include "coord/queue.h"
#include "coord/version.h"

struct replications;

enum { PRIORITY_MAX = 5 };

#define REPLICATIONS_CHANNEL STR("weir:replications") /* a policy changed; on configDB */

struct replications_options {
    struct store *app, *queue, *config; /* borrowed; joined (store_join()) */
    struct seen *seen; /* numbers the records (coord/seen.h); borrowed; NULL: no numbers */
    const struct log *log;
};
/* A store that is down is no error: calls fail with ERR_UNAVAILABLE until it is back. */
int replications_open(struct replications **out, const struct replications_options *o,
                      struct err *err) MUST_CHECK;
void replications_close(struct replications *r); /* NULL is fine; views may outlive it */

/* Names a replication. `bucket` empty: the policy for all buckets of the user. `to_bucket` empty:
 * the bucket has the same name at the destination. */
struct replication_id {
    struct str user, bucket, from, to, to_bucket;
};

/* The hash `p:repl_st:…`. Times are ms since 1970; 0: not set. */
struct replication_status {
    int64_t created_ms, resynced_ms, archived_ms, init_done_ms, emitted_ms, processed_ms;
    bool paused, archived, listing_started;
    int64_t listings; /* listing tasks that have not ended, the first task among them */
    int64_t listed, done, failed, bytes_listed, bytes_done, events, events_done;
    struct str agent_url;
};
bool replication_init_done(const struct replication_status *s);

struct replication {
    struct replication_id id;
    int priority;
    bool paused;
    bool archived;
    /* A switch without downtime is in progress, or announced: changes of both sides are recorded,
     * and reads choose the side by the vectors (S4 to S6). Where writes go is said by the route
     * alone (route/route.h). */
    bool switching;
    bool announced; /* that switch has not begun: the route leads to `from`, nothing is archived */
    /* That switch was aborted and goes back: `from` is the storage that it was to lead to, which
     * has the uploads of `s:up`; the route leads to `to`. */
    bool aborted;
    bool blocked;         /* a switch with downtime is in progress (S1) */
    bool has_switch;      /* there is a switch that is not done */
    struct str agent_url; /* where the source sends notices of changes that are made past weir */
};

/* --- the view --- */

/* A reference to the newest view, which has every change up to its epoch; the caller unrefs it.
 * ERR_UNAVAILABLE: no view was loaded yet. */
struct replication_view;
int replications_view(struct replications *r, struct replication_view **out,
                      struct err *err) MUST_CHECK;
/* Asks the store. When it returns, the view has every change that was made before the call. */
int replications_refresh(struct replications *r, struct err *err) MUST_CHECK;
void replication_view_unref(struct replication_view *view); /* NULL is fine */
int64_t replication_view_epoch(const struct replication_view *view);
/* The replications for which a change of the bucket at this storage makes tasks, of any user. The
 * list is borrowed from the view. */
size_t replication_view_from(const struct replication_view *view, struct str storage,
                             struct str bucket, const struct replication *const **out);
/* Whether a change of the bucket at this storage must be recorded: for one of these replications,
 * or for one of the next two. */
bool replication_view_any(const struct replication_view *view, struct str storage,
                          struct str bucket);
/* The replication that is `switching` and has the bucket at this storage as its source or its
 * destination. Changes there are recorded even if they make no task, as reads go by the vectors.
 * NULL: there is none. */
const struct replication *replication_view_switch(const struct replication_view *view,
                                                  struct str storage, struct str bucket);
/* The replication that is `blocked` and has this destination. Changes there are recorded, as they
 * may be the first ones for a reverse replication that this view does not have yet (S3). NULL:
 * there is none. */
const struct replication *replication_view_blocked(const struct replication_view *view,
                                                   struct str storage, struct str bucket);
/* The user's policies from this storage, which new buckets get. */
size_t replication_view_user(const struct replication_view *view, struct str user,
                             struct str storage, const struct replication *const **out);
/* All replications, archived ones too, sorted by user, bucket and destination. Those without a
 * bucket are policies of users. */
size_t replication_view_all(const struct replication_view *view,
                            const struct replication *const **out);

/* --- policies --- */

struct replication_new {
    struct replication_id id;
    int priority;         /* 0 to PRIORITY_MAX */
    struct str agent_url; /* where the source sends notices of changes past weir; empty: nowhere */
    bool init_done; /* there is nothing to copy first: a switch has reversed the replication */
    bool later;     /* do not wait until the view has it: for many calls in a row */
    /* A task that is queued with the replication and counted as a listing; it ends with
     * replication_list(). Without a type: no task. */
    struct task first;
};
/* P1, P2, P4. `route` is the storage that the bucket's route leads to when the store has no routing
 * policy for it: the main storage. ERR_EXISTS. ERR_CONFLICT, with a text that says which: the route
 * leads elsewhere, the source is the destination of another replication, the destination bucket is
 * in use, or the bucket has a switch. */
int replication_add(struct replications *r, const struct replication_new *n, struct str route,
                    struct err *err) MUST_CHECK;
/* Removes the policy, its status and its block at once; its tasks then do nothing. The caller
 * removes what is large: replication_clean(), version_strip(). ERR_NOT_FOUND. ERR_CONFLICT: the
 * bucket has a switch. */
int replication_remove(struct replications *r, const struct replication_id *id,
                       struct err *err) MUST_CHECK;
/* P7: removes a replication whose bucket was deleted at the source and at the destination.
 * ERR_CONFLICT: it stays, because no policy of the user would make the same replication again, or
 * because a change of the bucket was recorded since. */
struct replication_end {
    struct replication_id id;
    int64_t number; /* the source's number in the bucket's vector, read before the bucket was looked
                       for there */
    /* Tasks that are queued with the removal: one cleans up, one looks whether the bucket was made
     * again meanwhile. */
    struct task then[2];
    struct str route; /* as in replication_add() */
};
int replication_end(struct replications *r, const struct replication_end *e,
                    struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND. ERR_INVALID: it is a user's policy, which has no status. */
int replication_pause(struct replications *r, const struct replication_id *id, bool paused,
                      struct err *err) MUST_CHECK;
/* From now on changes make no tasks for it. Its status stays, and its tasks go on. */
int replication_archive(struct replications *r, const struct replication_id *id,
                        struct err *err) MUST_CHECK;
/* Begins the initial copy again: the counters are set to 0, `first` is queued, and everything is
 * listed again on both sides. Tasks of the earlier copy count for nothing. ERR_NOT_FOUND.
 * ERR_CONFLICT: the replication is archived, or its bucket has a switch, so that the destination
 * may be newer than the source. `planned`: a switch that is not in progress is no obstacle; it
 * waits for the copy, or ends. */
int replication_resync(struct replications *r, const struct replication_id *id,
                       const struct task *first, bool planned, struct err *err) MUST_CHECK;
/* P3: whether every process that writes knows the replication as it is in the store now, which may
 * be newer than the view of this process. */
int replication_is_known(struct replications *r, const struct replication_id *id, bool *out,
                         struct err *err) MUST_CHECK;
/* Reads the status from the store. ERR_NOT_FOUND: the replication is gone. */
int replication_read(struct replications *r, struct arena *a, const struct replication_id *id,
                     struct replication_status *out, struct err *err) MUST_CHECK;
/* Removes the cursors of its listings, some at a time: call again with *at until it is 0. */
int replication_clean(struct replications *r, const struct replication_id *id, uint64_t *at,
                      struct err *err) MUST_CHECK;

/* --- vectors of buckets whose replications were removed: V3 --- */

/* Whether a replication of this bucket was removed and its vectors still exist: then the numbers of
 * a new destination may come from an earlier replication. */
int replication_any_removed(struct replications *r, struct str bucket, bool *out,
                            struct err *err) MUST_CHECK;
/* Removes the vectors of buckets whose last replication was removed a day ago: no task of it can
 * run any more. Stops when `ended` says so, which is asked now and then. *count: the number of
 * buckets. */
int replication_forget_unused(struct replications *r, bool (*ended)(void *ctx), void *ctx,
                              size_t *count, struct err *err) MUST_CHECK;

/* --- counters and tasks that do not agree: P8 --- */

/* A replication that has fewer tasks, or more, than its counters say. */
struct replication_gap {
    struct replication_id id;
    int64_t copies, listings, events; /* missing tasks; below 0: tasks too many */
    /* 0: mended. ERR_CONFLICT: its copy cannot begin again, as it is archived or its bucket has a
     * switch. ERR_NOT_FOUND: its counters have changed since; it is compared another time. */
    int outcome;
};
struct replication_recount {
    int64_t idle_ms; /* only replications whose tasks did nothing for this time are compared */
    /* The task that begins a copy again, as for replication_resync(). */
    struct task (*first)(struct arena *a, const struct replication_id *id);
    void (*told)(void *ctx, const struct replication_gap *gap); /* called for each gap */
    bool (*ended)(void *ctx); /* true: stop soon; asked now and then */
    void *ctx;
};
/* Compares the counters of replications that have open tasks with the tasks in the queue. The copy
 * of a replication whose tasks are missing begins again. *looked: how many replications were
 * compared. */
int replication_recount(struct replications *r, const struct replication_recount *o, size_t *looked,
                        struct err *err) MUST_CHECK;

/* --- recording changes: R3 --- */

/* A change raises the number of one thing at one place, and makes one task for each destination of
 * the bucket there. The task's payload says which thing has changed, never what happened to it
 * (R2). So a pending task of the same thing does for another change too. */
struct change {
    struct thing thing;
    struct place place;
    bool whole; /* of an object: raises its tags and its list too, where they have vectors (V5) */
    struct str type; /* of the task: "object:sync" */
    /* The change of an object may share a task of type RECORD_TOGETHER with others of its bucket
     * that are recorded at once. False: it has a task of its own. */
    bool together;
    uint64_t row; /* number of its row in the outbox (record.log); 0: none */
    /* The change was found long after it was made, by an intent (R4). If the object was written at
     * another place since then (a switch), that is newer, and must keep the higher number. */
    bool late;
};
#define RECORD_TOGETHER STR("objects:sync")
enum { RECORD_TOGETHER_MAX = 32 };

struct record {
    const struct change *changes;
    size_t count; /* at most QUEUE_BATCH_MAX; may be 0: only intents or `log_last` are written */
    const struct str
        *intents;        /* ids of the tasks in the queue `intents` that end with this record */
    size_t intent_count; /* at most QUEUE_BATCH_MAX */
    struct str log;      /* storage whose outbox has the changes; empty: none */
    uint64_t log_last;   /* the last row of the outbox that this record has */
    bool relaxed;        /* embedded store: on disk only with the next durable step */
};
/* The destinations are those that the store has at this moment, not those of a view. Changes of
 * rows that were recorded before are left out. ERR_BUSY: the replications of the bucket change
 * faster than they can be read. */
int replication_record(struct replications *r, const struct record *rec,
                       struct err *err) MUST_CHECK;
/* The number of the last row of a storage's outbox that was recorded; 0: none. */
int replication_recorded(struct replications *r, struct str log, uint64_t *out,
                         struct err *err) MUST_CHECK;

/* --- progress ---
 *
 * A task that is queued here carries in its hash which counters of which replication it belongs to.
 * Whatever ends it (queue_done(), the last failure, the recovery after a worker died, a deletion)
 * raises those counters in the same script. So a handler only returns 0. */

/* A task that a listing makes: the listing of a sub-prefix or of versions, or the copy of one or
 * more objects. */
struct listed {
    struct task task;  /* its id says what it is for, so that it is queued once */
    bool listing;      /* else a copy */
    struct str prefix; /* of a listing; as in struct listed_page */
    uint64_t bytes;    /* of a copy */
    size_t objects;    /* of a copy; 0: one */
};

struct listed_page {
    struct replication_id id;
    const struct task *task; /* the listing's own task, which the caller holds */
    struct str prefix;       /* that is listed: empty, or it ends with '/' */
    struct str after;        /* where the page began: the cursor of replication_cursor() */
    struct str last;         /* the next cursor; empty: this is the last page, and `task` ends */
    const struct listed *items;
    size_t count; /* at most QUEUE_BATCH_MAX */
};
/* Queues and counts the tasks of the page, and moves the cursor. The last page ends `task` in the
 * same script, so that no page is counted twice: the handler sets task_run.done. ERR_CONFLICT: the
 * caller does not hold the task any more, or the cursor is elsewhere. ERR_NOT_FOUND: the
 * replication is gone; nothing happened. */
int replication_page(struct replications *r, const struct listed_page *p,
                     struct err *err) MUST_CHECK;
/* The id of the task for a change of a thing. A second change while the task is pending has the
 * same id. */
int replication_event_id(struct arena *a, const struct replication_id *id, struct str type,
                         const struct thing *thing, struct str *out, struct err *err) MUST_CHECK;
/* Ends a task of several objects of which some failed: each of these gets a task of its own. The
 * handler sets task_run.done. ERR_CONFLICT: the caller does not hold the task any more. */
struct listed_split {
    struct replication_id id;
    const struct task *task;
    uint64_t bytes;              /* that were copied */
    size_t objects;              /* likewise */
    const struct listed *failed; /* at most QUEUE_BATCH_MAX */
    size_t count;
    int64_t delay_s; /* before those that failed are tried again */
};
int replication_split(struct replications *r, const struct listed_split *s,
                      struct err *err) MUST_CHECK;
/* Ends `task` (bucket:create) and queues the first listing, in one script. The handler sets
 * task_run.done. Errors as for replication_page(). */
int replication_list(struct replications *r, const struct replication_id *id,
                     const struct task *task, const struct task *listing,
                     struct err *err) MUST_CHECK;
/* The cursor of a listing; empty: it begins. */
int replication_cursor(struct replications *r, struct arena *a, const struct replication_id *id,
                       struct str prefix, struct str *out, struct err *err) MUST_CHECK;

#endif
