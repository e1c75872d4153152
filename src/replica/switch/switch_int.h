/* Between the files of the switches' tasks. */
#ifndef REPLICA_SWITCH_SWITCH_INT_H
#define REPLICA_SWITCH_SWITCH_INT_H

#include "replica/switch/switch.h"

/* One run. */
struct switch_run {
    const struct switcher *o;
    struct task_run *run;
    struct lock *lock;
    struct bucket_switch s; /* as it was read last */
    struct replication_status status;
    int64_t now_ms; /* the store's clock */
};

/* Steps return 0: the switch moved, look again. ERR_AGAIN: not now, the text says why. ERR_END:
 * there is nothing left to do. */

/* S2, S8: all that went to the storage that is left is known and has gone over, but for events. */
int switch_settled(struct switch_run *x, struct err *err) MUST_CHECK;
/* The uploads that are open on the storage that is left, as switch_uploads(). */
int switch_uploads_left(struct switch_run *x, struct upload_list *out, struct err *err) MUST_CHECK;
/* The last step. */
int switch_finish(struct switch_run *x, struct err *err) MUST_CHECK;
/* A transition as a step: one that is not legal any more is looked at again. */
int switch_moved(int code);

/* --- switch_check.c --- */

/* S2: both buckets are compared. Ends in done or error. */
int switch_check(struct switch_run *x, struct err *err) MUST_CHECK;
/* Whether the maximal duration is over. */
bool switch_is_late(const struct switch_run *x, int64_t now_ms);
/* To error, because of its duration. */
int switch_give_up(struct switch_run *x, struct err *err) MUST_CHECK;
int switch_clock(struct switch_run *x, int64_t *out, struct err *err) MUST_CHECK;

#endif
