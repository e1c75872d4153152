/* Declarations that the files of the switches' tasks share. */
#ifndef REPLICA_SWITCH_SWITCH_INT_H
#define REPLICA_SWITCH_SWITCH_INT_H

#include "replica/switch/switch.h"

/* One run of a task. */
struct switch_run {
    const struct switcher *o;
    struct task_run *run;
    struct lock *lock;
    struct bucket_switch s; /* the switch, as it was last read */
    struct replication_status status;
    int64_t now_ms; /* by the store's clock */
};

/* What a step returns: 0: the switch moved on, so look at it again. ERR_AGAIN: the step must wait,
 * and the error says why. ERR_END: there is nothing left to do. */

/* S2, S8: returns 0 when every change of the storage that the switch leaves is recorded, even if it
 * is not copied yet. */
int switch_settled(struct switch_run *x, struct err *err) MUST_CHECK;
/* *out: the uploads that are open on the storage that the switch leaves, as by switch_uploads(). */
int switch_uploads_left(struct switch_run *x, struct upload_list *out, struct err *err) MUST_CHECK;
/* The last step: marks the switch as done. */
int switch_finish(struct switch_run *x, struct err *err) MUST_CHECK;
/* Turns the result of a transition into that of a step. A transition that is no longer legal gives
 * ERR_AGAIN: a later run looks again. */
int switch_moved(int code);

/* --- switch_check.c --- */

/* S2: compares both buckets, and ends the switch as done or in error. */
int switch_check(struct switch_run *x, struct err *err) MUST_CHECK;
/* Whether the maximal duration is over. */
bool switch_is_late(const struct switch_run *x, int64_t now_ms);
/* Ends the switch in error, because its maximal duration is over. */
int switch_run_give_up(struct switch_run *x, struct err *err) MUST_CHECK;
int switch_clock(struct switch_run *x, int64_t *out, struct err *err) MUST_CHECK;

#endif
