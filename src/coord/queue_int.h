/* Between the files of the queue. */
#ifndef COORD_QUEUE_INT_H
#define COORD_QUEUE_INT_H

#include "coord/message.h"
#include "coord/queue.h"
#include "coord/scripts.h"

struct queue {
    struct store *store; /* borrowed */
};

enum {
    QUEUE_ARENA_MAX = 64 * 1024 * 1024, /* of a call whose reply nobody keeps */
};

/* A number as text, in the arena. */
struct str queue_number(struct arena *a, int64_t v);
struct str queue_day(struct arena *a); /* "2006-01-02", UTC */
/* The reply's integer; an answer of another type is ERR_TYPE. */
int queue_integer(const struct reply *r, int64_t *out, struct err *err) MUST_CHECK;
#endif
