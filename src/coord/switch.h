/* Switches: moving the clients of a bucket from one storage to another. docs/replication.md,
 * "Switch", has the states and the invariants (S1 to S12). The hash is `p:switch:<user>:<bucket>`.
 *
 * Every transition is one script over the databases; times are the store's. When the call returns,
 * the view of this process has the change. ERR_CONFLICT: the switch is in a state that does not
 * allow the transition; nothing was changed. ERR_NOT_FOUND: the switch does not exist any more, or
 * was planned again meanwhile. Other failures have the store's codes. Any thread. */
#ifndef COORD_SWITCH_H
#define COORD_SWITCH_H

#include "coord/replication.h"

enum switch_status {
    SWITCH_NOT_STARTED,
    SWITCH_IN_PROGRESS,
    SWITCH_CHECK, /* check_in_progress: both sides are compared */
    SWITCH_DONE,
    SWITCH_ERROR,
    SWITCH_SKIPPED, /* it could not begin at its time: too many events were open, or the copy was
                       not done */
    SWITCH_STATUSES
};
extern const char *const switch_status_names[SWITCH_STATUSES];

struct switch_options {
    /* More than 0: a switch without downtime, which waits this long for uploads that were begun on
     * the old storage. 0: a switch with downtime. */
    int64_t multipart_ttl_ns;

    /* For a switch with downtime: how long it waits for uploads that are open on the old storage
     * when its check is over, as a switch without downtime (S11); 0: it does not wait. */
    int64_t uploads_ttl_ns;
    bool on_init_done;       /* it begins when the initial copy is done */
    struct str cron;         /* cron line: when it may begin; empty: none; not checked here */
    int64_t start_at_ms;     /* when it begins, ms since 1970; 0: not set */
    int64_t max_duration_ns; /* limit of the downtime; 0: none */
    int64_t max_event_lag;   /* most open events with which it may begin; 0: any number */
    bool skip_check;         /* the two sides are not compared */

    bool continue_replication; /* for both kinds: afterwards the replication goes on in reverse */
};

struct bucket_switch {
    struct replication_id id; /* the replication; after an abort, the one that leads back */
    struct str name;          /* the id as text, escaped: <user>:<bucket>:<from>:<to> */
    struct str created_at; /* as it is stored; distinguishes it from other switches of the bucket */
    int64_t created_ms, started_ms, done_ms, aborted_ms; /* ms since 1970; 0: not set */
    enum switch_status status;
    bool blocked; /* it waits for uploads (uploads_ttl_ns), and not every gateway knows that yet */
    int priority;
    struct switch_options o;
    int64_t epoch; /* epoch of its last change; 0: that was more than a day ago */
};
bool switch_is_live(const struct bucket_switch *s); /* it is without downtime */
bool switch_is_open(const struct bucket_switch *s); /* in progress, or being checked */

/* Plans a switch, or changes the options of a switch of the same kind that is not in progress. A
 * switch that is done is replaced; its history stays. `task` is queued with the switch. `route` is
 * as in replication_add(). ERR_NOT_FOUND: there is no such replication. ERR_INVALID: the options
 * contradict each other. ERR_CONFLICT: the bucket cannot be switched; the text says why. */
int switch_plan(struct replications *r, const struct replication_id *id,
                const struct switch_options *o, const struct task *task, struct str route,
                struct err *err) MUST_CHECK;
/* Begins a switch: not_started -> in_progress; with downtime also error or skipped -> in_progress.
 * ERR_CONFLICT also when the bucket cannot be switched any more. */
int switch_begin(struct replications *r, const struct bucket_switch *s, struct str route,
                 struct err *err) MUST_CHECK;
/* Moves a switch to check_in_progress, error or skipped. `text` is written to the history.
 * ERR_AGAIN: events are open, so changes are not copied yet. */
int switch_step(struct replications *r, const struct bucket_switch *s, enum switch_status to,
                struct str text, struct err *err) MUST_CHECK;
/* Ends a switch: without downtime in_progress -> done, with downtime check_in_progress -> done. An
 * aborted switch is removed. `clean` is the task that cleans up after the replication that is
 * removed: s->id for an aborted switch, else the reverse of it. ERR_AGAIN: events are open. */
int switch_done(struct replications *r, const struct bucket_switch *s, const struct task *clean,
                struct err *err) MUST_CHECK;
/* Moves a switch from check_in_progress to in_progress. It goes on as a switch without downtime, to
 * wait for uploads that are open on the old storage, and is blocked at first. `task` is the task of
 * a switch without downtime. ERR_AGAIN: events are open. */
int switch_follow(struct replications *r, const struct bucket_switch *s, const struct task *task,
                  struct str text, struct err *err) MUST_CHECK;
/* Ends the block that switch_follow() began (bucket_switch.blocked). */
int switch_unblock(struct replications *r, const struct bucket_switch *s,
                   struct err *err) MUST_CHECK;
/* Aborts a switch. A switch without downtime that is in progress goes back. Any other switch is
 * removed, and its block ends. */
int switch_abort(struct replications *r, struct str user, struct str bucket,
                 struct err *err) MUST_CHECK;
/* Changes how long the switch waits for uploads that are open on the old storage, also while it
 * waits; 0: it does not wait. The change is written to the history. ERR_CONFLICT: the switch is
 * done. */
int switch_set_ttl(struct replications *r, struct str user, struct str bucket, int64_t ttl_ns,
                   struct err *err) MUST_CHECK;

/* Reads a switch from the store; its strings are in the arena. ERR_NOT_FOUND: there is no such
 * switch. */
int switch_read(struct replications *r, struct arena *a, struct str user, struct str bucket,
                struct bucket_switch *out, struct err *err) MUST_CHECK;
/* Lists all switches, sorted by user and bucket. */
int switch_list(struct replications *r, struct arena *a, struct bucket_switch **out, size_t *count,
                struct err *err) MUST_CHECK;
/* Reads the bucket's history: lines "<RFC 3339>|<old> -> <new>: <text>", the oldest first,
 * including those of earlier switches. */
int switch_history(struct replications *r, struct arena *a, struct str user, struct str bucket,
                   struct str **out, size_t *count, struct err *err) MUST_CHECK;

#endif
