/* Switches: moving the clients of a bucket from one storage to another. docs/replication.md,
 * "Switch", has the states and the invariants (S1 to S12). A switch is stored in the hash
 * `p:switch:<user>:<bucket>`.
 *
 * Every transition is one script over the databases, and times are taken from the store's clock.
 * When the call returns, the view of this process has the change. ERR_CONFLICT: the switch is in a
 * state that does not allow the transition; nothing was changed. ERR_NOT_FOUND: the switch does not
 * exist any more, or was planned again meanwhile. Other failures have the store's codes. Any thread
 * may call these functions. */
#ifndef COORD_SWITCH_H
#define COORD_SWITCH_H

#include "coord/replication.h"

enum switch_status {
    SWITCH_NOT_STARTED,
    SWITCH_IN_PROGRESS,
    SWITCH_CHECK, /* check_in_progress: both sides are compared */
    SWITCH_DONE,
    SWITCH_ERROR,
    /* The switch could not begin at its time: too many events were open, or the copy was not
     * done. */
    SWITCH_SKIPPED,
    SWITCH_STATUSES
};
extern const char *const switch_status_names[SWITCH_STATUSES];

struct switch_options {
    /* More than 0: a switch without downtime. The switch waits this long (ns) for uploads that were
     * begun on the old storage. 0: a switch with downtime. */
    int64_t multipart_ttl_ns;

    /* For a switch with downtime. If uploads are open on the old storage when its check has ended,
     * the switch goes on as one without downtime, and waits this long (ns) for them (S11). 0: it
     * does not wait. */
    int64_t uploads_ttl_ns;
    bool on_init_done;   /* the switch begins when the initial copy is done */
    struct str cron;     /* cron line: when the switch may begin; empty: none; not checked here */
    int64_t start_at_ms; /* when the switch begins, ms since 1970; 0: not set */
    int64_t max_duration_ns; /* longest downtime; 0: no limit */
    int64_t max_event_lag;   /* most open events with which the switch may begin; 0: any number */
    bool skip_check;         /* the two sides are not compared */

    /* For both kinds: after the switch the replication goes on in the other direction. */
    bool continue_replication;
};

struct bucket_switch {
    /* The replication that copies the bucket to the new storage; after an abort, the replication
     * that copies it back. */
    struct replication_id id;
    struct str name; /* the id as text, escaped: <user>:<bucket>:<from>:<to> */
    /* Text of the time as it is stored. It distinguishes this switch from other switches of the
     * bucket. */
    struct str created_at;
    int64_t created_ms, started_ms, done_ms, aborted_ms; /* ms since 1970; 0: not set */
    enum switch_status status;
    /* A switch with downtime goes on without downtime, to wait for uploads (uploads_ttl_ns), and
     * not every gateway knows that yet. Until then the bucket stays blocked. */
    bool blocked;
    int priority;
    struct switch_options o;
    int64_t epoch; /* epoch of the switch's last change; 0: that was more than a day ago */
};
bool switch_is_live(const struct bucket_switch *s); /* a switch without downtime */
bool switch_is_open(const struct bucket_switch *s); /* in progress, or being checked */

/* Plans a switch, or changes the options of a switch of the same kind that is not in progress. A
 * switch that is done is replaced; its history stays. `task` is queued with the switch. `route` is
 * the main storage, as for replication_add(). ERR_NOT_FOUND: there is no such replication.
 * ERR_INVALID: the options contradict each other. ERR_CONFLICT: the bucket cannot be switched; the
 * text says why. */
int switch_plan(struct replications *r, const struct replication_id *id,
                const struct switch_options *o, const struct task *task, struct str route,
                struct err *err) MUST_CHECK;
/* Begins a switch. A switch without downtime goes from not_started to in_progress; a switch with
 * downtime also from error or skipped. ERR_CONFLICT: also when the bucket cannot be switched any
 * more. ERR_AGAIN: the store may have lost changes, and the copies are being compared. */
int switch_begin(struct replications *r, const struct bucket_switch *s, struct str route,
                 struct err *err) MUST_CHECK;
/* Moves a switch to check_in_progress, error or skipped. If the switch was in progress, the move to
 * error also ends the block of its bucket. `text` is written to the history. ERR_AGAIN: the check
 * cannot begin, because events are open: some changes are not copied yet. */
int switch_step(struct replications *r, const struct bucket_switch *s, enum switch_status to,
                struct str text, struct err *err) MUST_CHECK;
/* Ends a switch: without downtime it goes from in_progress to done, with downtime from
 * check_in_progress to done. An aborted switch is removed instead, together with the replication
 * s->id. A switch without downtime and without continue_replication removes the replication in the
 * reverse direction of s->id. In all other cases no replication is removed. `clean` is the task
 * that cleans up after the replication that is removed; it is queued only in these two cases.
 * ERR_AGAIN: events are open. */
int switch_done(struct replications *r, const struct bucket_switch *s, const struct task *clean,
                struct err *err) MUST_CHECK;
/* Moves a switch with downtime from check_in_progress to in_progress. The switch goes on as a
 * switch without downtime, to wait for uploads that are open on the old storage. The bucket stays
 * blocked until switch_unblock(). `task` is the task of a switch without downtime. ERR_AGAIN:
 * events are open. */
int switch_follow(struct replications *r, const struct bucket_switch *s, const struct task *task,
                  struct str text, struct err *err) MUST_CHECK;
/* Ends the block that switch_follow() began (bucket_switch.blocked). */
int switch_unblock(struct replications *r, const struct bucket_switch *s,
                   struct err *err) MUST_CHECK;
/* Aborts a switch. If a switch without downtime is in progress, the route leads to the old storage
 * again, and the changes are copied back. Any other switch is removed, and its block ends. */
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
