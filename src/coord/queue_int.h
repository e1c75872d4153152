/* Declarations that queue.c and queue_look.c share. */
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
    /* most bytes of the arena of a call whose results are not in the caller's arena */
    QUEUE_ARENA_MAX = 64 * 1024 * 1024,
};

enum { QUEUE_COUNTER_LIFE_S = 90 * S_PER_DAY }; /* how long the counters of one day are kept */

/* Fills args[0..2] with queue, id and message of a task to add; members that are not set get their
 * defaults. `unique_s`: seconds for which no other task of the same type and payload may be added;
 * 0: no such limit. */
int queue_task_args(struct arena *a, const struct task *wanted, int64_t unique_s, struct str *args,
                    struct err *err) MUST_CHECK;
/* Gives a number as text, in the arena. */
struct str queue_number(struct arena *a, int64_t v);
struct str queue_day(struct arena *a); /* today in UTC, as "2006-01-02" */
/* Gives the integer of a reply. ERR_TYPE: the reply has another type. */
int queue_integer(const struct reply *r, int64_t *out, struct err *err) MUST_CHECK;
#endif
