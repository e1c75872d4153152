/* Between the files of the queue. */
#ifndef COORD_QUEUE_INT_H
#define COORD_QUEUE_INT_H

#include "coord/message.h"
#include "coord/queue.h"
#include "coord/scripts.h"
#include "coord/seen.h"

struct queue {
    struct store *store; /* borrowed */
    struct seen *seen;   /* likewise; NULL: steps have no numbers */
};

enum {
    QUEUE_ARENA_MAX = 64 * 1024 * 1024, /* of a call whose reply nobody keeps */
};

enum { QUEUE_COUNTER_LIFE_S = 90 * 86400 }; /* of a day's */

/* Queue, id and message of a task to add; what is not set gets its default. `unique_s`: it is to be
 * unique for that long. */
int queue_task_args(struct arena *a, const struct task *wanted, int64_t unique_s, struct str *args,
                    struct err *err) MUST_CHECK;
/* A number as text, in the arena. */
struct str queue_number(struct arena *a, int64_t v);
struct str queue_day(struct arena *a); /* "2006-01-02", UTC */
/* The reply's integer; an answer of another type is ERR_TYPE. */
int queue_integer(const struct reply *r, int64_t *out, struct err *err) MUST_CHECK;
#endif
