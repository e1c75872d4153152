/* Switches: the storage that a bucket's clients use becomes another one. docs/replication.md,
 * "Switch", has the states and the invariants (S1 to S10); the hash is `p:switch:<user>:<bucket>`.
 *
 * Every transition is one script over the databases, of which the store's clock counts; it has been
 * seen by this process when the call returns. A transition that is not legal from where the switch
 * is by then is ERR_CONFLICT and changes nothing; one of a switch that is gone or was planned anew
 * is ERR_NOT_FOUND. Else calls fail with the store's codes. Any thread. */
#ifndef COORD_SWITCH_H
#define COORD_SWITCH_H

#include "coord/replication.h"

enum switch_status {
    SWITCH_NOT_STARTED,
    SWITCH_IN_PROGRESS,
    SWITCH_CHECK, /* check_in_progress: both sides are compared */
    SWITCH_DONE,
    SWITCH_ERROR,
    SWITCH_SKIPPED, /* it was not the time: too far behind, or not everything was there */
    SWITCH_STATUSES
};
extern const char *const switch_status_names[SWITCH_STATUSES];

struct switch_options {
    /* More than 0: without downtime; uploads that were begun on the old storage are waited for that
     * long. The others are for one with downtime. */
    int64_t multipart_ttl_ns;
    /* With downtime: uploads that are open on the old storage at its end are waited for that long,
     * while it goes on as one without (S11); 0: they are left. */
    int64_t uploads_ttl_ns;
    bool on_init_done;       /* waits for the initial copy */
    struct str cron;         /* when it may begin, again and again; empty: none. Not checked here */
    int64_t start_at_ms;     /* 0: none */
    int64_t max_duration_ns; /* 0: none */
    int64_t max_event_lag;   /* events that have not gone over when it begins; 0: any number */
    bool skip_check;
    bool continue_replication; /* in reverse afterwards; also of one without downtime */
};

struct bucket_switch {
    struct replication_id id; /* of one that was given up: the one that goes back */
    struct str name;          /* that id, escaped: <user>:<bucket>:<from>:<to> */
    struct str created_at;    /* as it is stored; tells it from another of the bucket */
    int64_t created_ms, started_ms, done_ms, aborted_ms; /* 0: not set */
    enum switch_status status;
    bool blocked; /* one of uploads_ttl_ns, which goes on once every gateway knows */
    int priority;
    struct switch_options o;
    int64_t epoch; /* of its last change; 0: longer ago than a day */
};
bool switch_is_live(const struct bucket_switch *s); /* without downtime */
bool switch_is_open(const struct bucket_switch *s); /* in progress, or being checked */

/* Makes one, or changes the options of one of the same kind that is not in progress; a done one is
 * replaced, its history stays. `task` is queued with it. `route` as in replication_add().
 * ERR_NOT_FOUND: there is no such replication. ERR_INVALID: the options contradict each other.
 * ERR_CONFLICT: it cannot be switched, the text says why. */
int switch_plan(struct replications *r, const struct replication_id *id,
                const struct switch_options *o, const struct task *task, struct str route,
                struct err *err) MUST_CHECK;
/* not_started (with downtime also error, skipped) -> in_progress. ERR_CONFLICT also when it cannot
 * be switched any more. */
int switch_begin(struct replications *r, const struct bucket_switch *s, struct str route,
                 struct err *err) MUST_CHECK;
/* To check, error or skipped; `text` is for the history. ERR_AGAIN: not all events are done. */
int switch_step(struct replications *r, const struct bucket_switch *s, enum switch_status to,
                struct str text, struct err *err) MUST_CHECK;
/* in_progress without downtime, else check_in_progress -> done. One that was given up is gone
 * afterwards. `clean`: the task that cleans up behind the replication that is removed, which is
 * s->id when it was given up, else the reverse of it. ERR_AGAIN: not all events are done. */
int switch_done(struct replications *r, const struct bucket_switch *s, const struct task *clean,
                struct err *err) MUST_CHECK;
/* check_in_progress -> in_progress, without downtime from now on, but blocked: for the uploads that
 * are open on the old storage. `task` is the one of that kind. ERR_AGAIN: not all events are done.
 */
int switch_follow(struct replications *r, const struct bucket_switch *s, const struct task *task,
                  struct str text, struct err *err) MUST_CHECK;
/* It is not blocked any more. */
int switch_unblock(struct replications *r, const struct bucket_switch *s,
                   struct err *err) MUST_CHECK;
/* One without downtime that is in progress turns round; of all others what is written down goes,
 * and a block is taken away. */
int switch_abort(struct replications *r, struct str user, struct str bucket,
                 struct err *err) MUST_CHECK;
/* Changes how long uploads that are open on the storage that is left are waited for, also while
 * they are (0: not at all); a line of the history says so. ERR_CONFLICT: it is done. */
int switch_set_ttl(struct replications *r, struct str user, struct str bucket, int64_t ttl_ns,
                   struct err *err) MUST_CHECK;

/* Reads the store. ERR_NOT_FOUND. Strings in the arena. */
int switch_read(struct replications *r, struct arena *a, struct str user, struct str bucket,
                struct bucket_switch *out, struct err *err) MUST_CHECK;
/* All, by user and bucket. */
int switch_list(struct replications *r, struct arena *a, struct bucket_switch **out, size_t *count,
                struct err *err) MUST_CHECK;
/* Lines "<RFC 3339>|<old> -> <new>: <text>", oldest first; also of switches that are gone. */
int switch_history(struct replications *r, struct arena *a, struct str user, struct str bucket,
                   struct str **out, size_t *count, struct err *err) MUST_CHECK;

#endif
