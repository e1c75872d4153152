/* Replications: the seed's policies (configDB), their status, and the recording of changes.
 * docs/replication.md has the words, the keys and the invariants (R, V, P).
 *
 * All policies are held in memory as a view with an epoch, kept new by published messages; looking
 * never waits. Every change of a policy is one script over the databases, which must be of one
 * server; it raises `w:epoch`, and has been seen by this process when the call returns. Any thread.
 */
#ifndef COORD_REPLICATION_H
#define COORD_REPLICATION_H

#include "coord/queue.h"
#include "coord/version.h"

struct replications;

enum { PRIORITY_MAX = 5 };

struct replications_options {
    struct store *app, *queue, *config; /* borrowed; of one server, else ERR_INVALID */
    struct queue *tasks;                /* on `queue`; borrowed */
    const struct log *log;
};
/* A store that is down is no error: until it is back calls are ERR_UNAVAILABLE. */
int replications_open(struct replications **out, const struct replications_options *o,
                      struct err *err) MUST_CHECK;
void replications_close(struct replications *r);

/* Names one. `bucket` empty: the user's policy. `to_bucket` empty: the same name. */
struct replication_id {
    struct str user, bucket, from, to, to_bucket;
};

/* As in the hash `p:repl_st:…`; times ms since 1970, 0: not set. */
struct replication_status {
    int64_t created_ms, archived_ms, init_done_ms, emitted_ms, processed_ms;
    bool paused, archived, listing_started;
    int64_t listed, done, failed, bytes_listed, bytes_done, events, events_done;
    struct str agent_url;
};
bool replication_init_done(const struct replication_status *s);

struct replication {
    struct replication_id id;
    int priority;
    bool paused, archived;
};

/* --- the view --- */

/* A reference to all policies at one moment. ERR_UNAVAILABLE: none was ever loaded. */
struct replication_view;
int replications_view(struct replications *r, struct replication_view **out,
                      struct err *err) MUST_CHECK;
void replication_view_unref(struct replication_view *view);
int64_t replication_view_epoch(const struct replication_view *view);
/* Those with this source: of a bucket, whoever owns it; borrowed from the view. */
size_t replication_view_from(const struct replication_view *view, struct str storage,
                             struct str bucket, const struct replication *const **out);
/* Of a user's policy, for buckets to come. */
size_t replication_view_user(const struct replication_view *view, struct str user,
                             struct str storage, const struct replication *const **out);
/* All, by user, bucket and destination. */
size_t replication_view_all(const struct replication_view *view,
                            const struct replication *const **out);

/* --- policies --- */

struct replication_new {
    struct replication_id id;
    int priority;
    struct str agent_url; /* changes come by notifications, not by the tap; empty: by the tap */
    bool init_done;       /* nothing to copy first (a switch turned it round) */
    struct task first;    /* queued with it; no type: none */
};
/* P1, P2, P4. ERR_EXISTS: it is there. ERR_CONFLICT: the route leads elsewhere, the source is a
 * destination of another one, or the destination bucket is taken: the text says which.
 * `route` is the storage that the route leads to where the store has no policy for it (the main
 * one). */
int replication_add(struct replications *r, const struct replication_new *n, struct str route,
                    struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND. P5 but for vectors, progress and tasks, which the caller's task cleans.
 * ERR_CONFLICT: it has a switch. */
int replication_remove(struct replications *r, const struct replication_id *id,
                       struct err *err) MUST_CHECK;
int replication_pause(struct replications *r, const struct replication_id *id, bool paused,
                      struct err *err) MUST_CHECK;
/* No new events; the status stays. */
int replication_archive(struct replications *r, const struct replication_id *id,
                        struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND: it is gone. Reads the store. */
int replication_read(struct replications *r, struct arena *a, const struct replication_id *id,
                     struct replication_status *out, struct err *err) MUST_CHECK;

/* --- recording changes: R3 --- */

/* One task for each destination of the place that was written to, and for each thing a bump. */
struct change {
    struct thing thing;
    struct place place;
    struct str type;    /* of the task: "object:sync" */
    struct str payload; /* JSON fields beside those of the replication: "\"Object\":{…},…" */
    uint64_t size;
};

struct record {
    const struct change *changes;
    size_t count;                 /* at most QUEUE_BATCH_MAX */
    struct str intent;            /* id of the task in `intents` that ends with it; empty: none */
    struct str log;               /* storage whose outbox the changes are from; empty: none */
    uint64_t log_first, log_last; /* numbers of its rows */
    bool relaxed;                 /* embedded: on disk with the next durable step */
};
/* Destinations are those of the store at this moment, not of a view. Rows of an outbox up to the
 * last that was recorded are left out. */
int replication_record(struct replications *r, const struct record *rec,
                       struct err *err) MUST_CHECK;

/* --- progress of the initial copy and of events; each one script --- */

struct listed_page {
    struct replication_id id;
    struct str prefix;        /* of the listing */
    struct str last;          /* where to go on; empty: the prefix is done */
    const struct task *tasks; /* copies and listings of sub-prefixes */
    size_t count;
    uint64_t objects, bytes; /* to copy */
    bool root_done;          /* the listing of the whole bucket has come to its end */
};
/* Counts, queues and moves the cursor; a page that was there already counts nothing. */
int replication_page(struct replications *r, const struct listed_page *p,
                     struct err *err) MUST_CHECK;
/* Where the listing of a prefix goes on; empty: at its beginning. */
int replication_cursor(struct replications *r, struct arena *a, const struct replication_id *id,
                       struct str prefix, struct str *out, struct err *err) MUST_CHECK;

/* A task of it has ended, for the first and only time: in one script with queue_done(). */
struct replication_progress {
    int64_t done, failed, bytes, events_done;
};
int replication_task_done(struct replications *r, const struct replication_id *id,
                          const struct task *t, const struct replication_progress *p,
                          struct err *err) MUST_CHECK;

#endif
