/* Declarations that the files of the switches' tasks share. The codes S2 and S8 are those of
 * docs/replication.md. */
#ifndef REPLICA_SWITCH_SWITCH_INT_H
#define REPLICA_SWITCH_SWITCH_INT_H

#include "replica/switch/switch.h"

/* One run of a switch's task. */
struct switch_run {
    const struct switcher *o;
    struct task_run *run;
    struct lock *lock;
    struct bucket_switch s; /* the switch, as it was last read */
    struct replication_status status;
    int64_t now_ms; /* the present time by the store's clock, ms since 1970 */
};

/* A step of a switch returns one of these codes. 0: the switch moved on, so the caller looks at it
 * again. ERR_AGAIN: the step must wait, and the error says why. ERR_END: there is nothing left to
 * do. */

/* Returns 0 when every change of the storage that the switch leaves is recorded, even if the change
 * is not copied yet (S2, S8). ERR_AGAIN: the step must wait. */
int switch_settled(struct switch_run *x, struct err *err) MUST_CHECK;
/* Sets *out to the uploads that are open on the storage that the switch leaves, as switch_uploads()
 * does. */
int switch_uploads_left(struct switch_run *x, struct upload_list *out, struct err *err) MUST_CHECK;
/* Does the last step, which marks the switch as done. */
int switch_finish(struct switch_run *x, struct err *err) MUST_CHECK;
/* Turns the result of a transition (coord/switch.h) into the result of a step. If the switch's
 * state no longer allows the transition, the result is ERR_AGAIN, so that a later run decides
 * anew. */
int switch_moved(int code);

/* --- switch_check.c --- */

/* Compares both buckets (S2). Ends the switch in error if they differ, else as done. If uploads are
 * open on the old storage, the switch goes on without downtime instead (S11). */
int switch_check(struct switch_run *x, struct err *err) MUST_CHECK;
/* Returns whether the switch's maximal duration has passed at `now_ms`. */
bool switch_is_late(const struct switch_run *x, int64_t now_ms);
/* Ends the switch in error, because its maximal duration has passed. */
int switch_run_give_up(struct switch_run *x, struct err *err) MUST_CHECK;
int switch_clock(struct switch_run *x, int64_t *out, struct err *err) MUST_CHECK;

#endif
