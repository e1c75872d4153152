/* Between the files of the queue. */
#ifndef COORD_QUEUE_INT_H
#define COORD_QUEUE_INT_H

#include "base/clock.h"
#include "coord/message.h"
#include "coord/queue.h"
#include "coord/scripts.h"
#include "coord/seen.h"

struct queue {
    struct store *store; /* borrowed */
    struct seen *seen;   /* borrowed; NULL: steps have no numbers */
};

enum {
    QUEUE_ARENA_MAX = 64 * 1024 * 1024, /* bytes; for calls that do not return their reply */
};

enum { QUEUE_COUNTER_LIFE_S = 90 * S_PER_DAY }; /* how long the counters of one day are kept */

/* Fills args[0..2] with queue, id and message of a task to add; members that are not set get their
 * defaults. `unique_s`: for how long no other task of the same type and payload may be added; 0:
 * any may. */
int queue_task_args(struct arena *a, const struct task *wanted, int64_t unique_s, struct str *args,
                    struct err *err) MUST_CHECK;
/* A number as text, in the arena. */
struct str queue_number(struct arena *a, int64_t v);
struct str queue_day(struct arena *a); /* "2006-01-02", UTC */
/* The reply's integer; an answer of another type is ERR_TYPE. */
int queue_integer(const struct reply *r, int64_t *out, struct err *err) MUST_CHECK;
#endif
