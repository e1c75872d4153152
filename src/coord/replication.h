/* Replications: the seed's policies (configDB), their status, and the recording of changes.
 * docs/replication.md has the words, the keys and the invariants (R, V, P).
 *
 * All policies are held in memory as a view with an epoch, kept new by published messages; looking
 * never waits. Every change of a policy is one script over the databases, which must be of one
 * server; it raises `w:epoch`, and has been seen by this process when the call returns. Any thread.
 *
 * Calls fail with the store's codes (store/store.h), else as said; ERR_UNAVAILABLE: nothing was
 * done.
 */
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
    struct seen *seen; /* records are acknowledged with a number (coord/seen.h); borrowed; NULL:
                          without */
    const struct log *log;
};
/* A store that is down is no error: until it is back calls are ERR_UNAVAILABLE. */
int replications_open(struct replications **out, const struct replications_options *o,
                      struct err *err) MUST_CHECK;
void replications_close(struct replications *r); /* NULL is fine; views may outlive it */

/* Names one. `bucket` empty: the user's policy. `to_bucket` empty: the same name. */
struct replication_id {
    struct str user, bucket, from, to, to_bucket;
};

/* As in the hash `p:repl_st:…`; times ms since 1970, 0: not set. */
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
    /* A switch without downtime is at work on it: changes of both sides are recorded, reads go by
     * the vectors (S4 to S6). Where writes go the route alone says (route/route.h). */
    bool switching;
    bool announced; /* it is about to begin: the route leads to `from`, nothing is archived */
    /* It was given up, and goes back: `from` is the storage that it was to lead to, where uploads
     * in `s:up` are; the route leads to `to`. */
    bool aborted;
    bool blocked;         /* a switch with downtime is at work on it (S1) */
    bool has_switch;      /* one that is not done */
    struct str agent_url; /* where the source was told to tell of changes that go past weir, too */
};

/* --- the view --- */

/* A reference to all policies: every change up to its epoch is in it. ERR_UNAVAILABLE: none was
 * ever loaded. */
struct replication_view;
int replications_view(struct replications *r, struct replication_view **out,
                      struct err *err) MUST_CHECK;
/* Afterwards the view has every change that was made before the call: asks the store. */
int replications_refresh(struct replications *r, struct err *err) MUST_CHECK;
void replication_view_unref(struct replication_view *view); /* NULL is fine */
int64_t replication_view_epoch(const struct replication_view *view);
/* Those that a change of the bucket at this storage makes tasks for, whoever owns it; borrowed from
 * the view. */
size_t replication_view_from(const struct replication_view *view, struct str storage,
                             struct str bucket, const struct replication *const **out);
/* Whether any of these, or of those below, has to do with the bucket at this storage. */
bool replication_view_any(const struct replication_view *view, struct str storage,
                          struct str bucket);
/* The one that is `switching` with the bucket at this storage on either side: changes there are
 * recorded, whether they make a task or not, as reads go by vectors. NULL: none. */
const struct replication *replication_view_switch(const struct replication_view *view,
                                                  struct str storage, struct str bucket);
/* The one that is `blocked` with this destination: changes there are recorded, as they may be the
 * first of a replication in reverse that this view does not have yet (S3). NULL: none. */
const struct replication *replication_view_blocked(const struct replication_view *view,
                                                   struct str storage, struct str bucket);
/* Of a user's policy, for buckets to come. */
size_t replication_view_user(const struct replication_view *view, struct str user,
                             struct str storage, const struct replication *const **out);
/* All, archived ones too, by user, bucket and destination; those without a bucket are users'. */
size_t replication_view_all(const struct replication_view *view,
                            const struct replication *const **out);

/* --- policies --- */

struct replication_new {
    struct replication_id id;
    int priority;         /* 0 to PRIORITY_MAX */
    struct str agent_url; /* where the source tells of changes that go past weir; empty: nowhere */
    bool init_done;       /* nothing to copy first (a switch turned it round) */
    bool later;           /* the view has it a moment after the call: for many in a row */
    /* Queued with it, and counted as a listing until it ends, which it does with
     * replication_list(); no type: none. */
    struct task first;
};
/* P1, P2, P4. ERR_EXISTS: it is there. ERR_CONFLICT: the route leads elsewhere, the source is a
 * destination of another one, the destination bucket is taken, or the bucket has a switch: the text
 * says which. `route` is the storage that
 * the route leads to where the store has no policy for it (the main one). */
int replication_add(struct replications *r, const struct replication_new *n, struct str route,
                    struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND. Member, status and block go at once; tasks of it then do nothing. The caller
 * cleans what is large: replication_clean(), version_strip(). ERR_CONFLICT: it has a switch. */
int replication_remove(struct replications *r, const struct replication_id *id,
                       struct err *err) MUST_CHECK;
/* P7: neither source nor destination have the bucket. ERR_CONFLICT: it stays, as no policy of the
 * user would make it again just as it is, or a change of the bucket was recorded since. */
struct replication_end {
    struct replication_id id;
    int64_t number; /* of the source in the bucket's vector, before it was looked for there */
    /* Queued with it: the task that cleans up, and the one that looks whether the bucket was made
     * again meanwhile. */
    struct task then[2];
    struct str route; /* as in replication_add() */
};
int replication_end(struct replications *r, const struct replication_end *e,
                    struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND; ERR_INVALID for a user's policy, which has no status. */
int replication_pause(struct replications *r, const struct replication_id *id, bool paused,
                      struct err *err) MUST_CHECK;
/* No new events; the status stays, and tasks go on. */
int replication_archive(struct replications *r, const struct replication_id *id,
                        struct err *err) MUST_CHECK;
/* Begins the initial copy anew: its counters are 0, `first` is queued as at the beginning, and
 * everything is listed again, on both sides; what is still at work of the last time counts for
 * nothing. ERR_NOT_FOUND; ERR_CONFLICT: it is archived, or its bucket has a switch, so that the
 * destination may be ahead. `planned`: one that is not in progress is no hindrance, as nothing has
 * happened yet; it waits for the copy, or ends. */
int replication_resync(struct replications *r, const struct replication_id *id,
                       const struct task *first, bool planned, struct err *err) MUST_CHECK;
/* P3: whether every process that writes knows of it as it is now. Not by the view: that may be
 * older. */
int replication_is_known(struct replications *r, const struct replication_id *id, bool *out,
                         struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND: it is gone. Reads the store. */
int replication_read(struct replications *r, struct arena *a, const struct replication_id *id,
                     struct replication_status *out, struct err *err) MUST_CHECK;
/* Takes away where its listings were, a part at a time: call again with *at until it is 0. */
int replication_clean(struct replications *r, const struct replication_id *id, uint64_t *at,
                      struct err *err) MUST_CHECK;

/* --- what is left of those that were removed: V3 --- */

/* Whether one of this bucket was removed since its vectors were forgotten: numbers of a destination
 * that is new may be of before. */
int replication_any_removed(struct replications *r, struct str bucket, bool *out,
                            struct err *err) MUST_CHECK;
/* Forgets the vectors of buckets whose last replication was removed a day ago, so that no task of
 * it can be alive. `ended` is asked now and then; *count: buckets. */
int replication_forget_unused(struct replications *r, bool (*ended)(void *ctx), void *ctx,
                              size_t *count, struct err *err) MUST_CHECK;

/* --- counters and tasks that do not agree: P8 --- */

/* A replication of which tasks are missing, or which has more than it counts. */
struct replication_gap {
    struct replication_id id;
    int64_t copies, listings, events; /* that are missing; below 0: too many */
    /* 0: mended. ERR_CONFLICT: it cannot be begun anew, as it is archived or its bucket has a
     * switch. ERR_NOT_FOUND: it has moved since, and is looked at another time. */
    int outcome;
};
struct replication_recount {
    int64_t idle_ms; /* those that nothing was heard of for so long */
    /* What begins one anew, as for replication_resync(). */
    struct task (*first)(struct arena *a, const struct replication_id *id);
    void (*told)(void *ctx, const struct replication_gap *gap);
    bool (*ended)(void *ctx); /* asked now and then */
    void *ctx;
};
/* Compares the counters of replications that have something open with the tasks that there are. One
 * whose tasks are missing begins anew. *looked: how many were compared. */
int replication_recount(struct replications *r, const struct replication_recount *o, size_t *looked,
                        struct err *err) MUST_CHECK;

/* --- recording changes: R3 --- */

/* One bump for each thing at a place, and one task for each destination of the bucket there. The
 * task's payload says which thing, never what happened to it (R2): so a change is left to a task of
 * the same thing that waits to be run. */
struct change {
    struct thing thing;
    struct place place;
    bool whole;      /* of an object: bumps its tags and its list too, where those are known (V5) */
    struct str type; /* of the task: "object:sync" */
    /* The change of an object may share a task of type RECORD_TOGETHER with others of its bucket
     * that are recorded at once. False: it has a task of its own. */
    bool together;
    uint64_t row; /* of the outbox that it is from; 0: none */
    /* Found long after, by an intent (R4): what was written elsewhere since (a switch) is newer,
     * and is not outranked. */
    bool late;
};
#define RECORD_TOGETHER STR("objects:sync")
enum { RECORD_TOGETHER_MAX = 32 };

struct record {
    const struct change *changes;
    size_t count; /* at most QUEUE_BATCH_MAX; may be 0: only the intent or the log's number */
    const struct str *intents; /* ids of the tasks in `intents` that end with it */
    size_t intent_count;       /* at most QUEUE_BATCH_MAX */
    struct str log;            /* storage whose outbox the changes are from; empty: none */
    uint64_t log_last;         /* the last of its rows that is recorded with this */
    bool relaxed;              /* embedded: on disk with the next durable step */
};
/* Destinations are those of the store at this moment, not of a view. Changes of rows up to the last
 * that was recorded are left out. ERR_BUSY: replications of that bucket
 * change faster than they can be read. */
int replication_record(struct replications *r, const struct record *rec,
                       struct err *err) MUST_CHECK;
/* The last row of a storage's outbox that was recorded; 0: none. */
int replication_recorded(struct replications *r, struct str log, uint64_t *out,
                         struct err *err) MUST_CHECK;

/* --- progress ---
 *
 * Counts itself: a task that was queued here carries in its hash what it counts for, and whatever
 * ends it (queue_done(), the last failure, the recovery of a dead worker's, a deletion) counts it
 * in that same script. So a handler returns 0 and no more. */

/* What was listed. `listing`: of a sub-prefix or of versions; else a copy of `bytes`, of several
 * objects at once when it says so. */
struct listed {
    struct task task; /* with an id that says which, so that it is there once */
    bool listing;
    struct str prefix; /* of a listing; as in struct listed_page */
    uint64_t bytes;
    size_t objects; /* 0: one */
};

struct listed_page {
    struct replication_id id;
    const struct task *task; /* the listing, active with its token */
    struct str prefix;       /* of the listing: empty, or it ends with '/' */
    struct str after;        /* where the page began: what replication_cursor() gave */
    struct str last;         /* where to go on; empty: the prefix is done and `task` has ended */
    const struct listed *items;
    size_t count; /* at most QUEUE_BATCH_MAX */
};
/* Counts, queues and moves the cursor; with the last page `task` is done, so that no page is
 * counted twice: set task_run.done. ERR_CONFLICT: the task is not held any more, or the cursor is
 * elsewhere. ERR_NOT_FOUND: the replication is gone; nothing happened. */
int replication_page(struct replications *r, const struct listed_page *p,
                     struct err *err) MUST_CHECK;
/* The id of the task for a change of a thing: one that waits takes a second change on. */
int replication_event_id(struct arena *a, const struct replication_id *id, struct str type,
                         const struct thing *thing, struct str *out, struct err *err) MUST_CHECK;
/* Ends `task`, for several objects, as done but for some that failed: those get tasks of
 * their own. Set task_run.done. ERR_CONFLICT: the task is not held any more. */
struct listed_split {
    struct replication_id id;
    const struct task *task;
    uint64_t bytes; /* copied */
    size_t objects;
    const struct listed *failed; /* at most QUEUE_BATCH_MAX */
    size_t count;
    int64_t delay_s; /* before they are tried */
};
int replication_split(struct replications *r, const struct listed_split *s,
                      struct err *err) MUST_CHECK;
/* Ends `task` and queues the first listing in its place, in one script (bucket:create); set
 * task_run.done. Errors as replication_page(). */
int replication_list(struct replications *r, const struct replication_id *id,
                     const struct task *task, const struct task *listing,
                     struct err *err) MUST_CHECK;
/* Where the listing of a prefix goes on; empty: at its beginning. */
int replication_cursor(struct replications *r, struct arena *a, const struct replication_id *id,
                       struct str prefix, struct str *out, struct err *err) MUST_CHECK;

#endif
