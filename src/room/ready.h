/* Is every part ready to serve? Asked by /readyz, which anybody may call as often as they like: a
 * round of checks runs at most once a second, its parts beside each other, one round at a time, and
 * callers that come meanwhile get what the last round found, and what is known to have failed
 * since.
 */
#ifndef ROOM_READY_H
#define ROOM_READY_H

#include "base/err.h"
#include "os/thread.h"

enum { READY_MAX_PARTS = 80, READY_FRESH_MS = 1000 };

/* Any failure means not ready, its text says why. */
typedef int ready_check_fn(void *ctx, struct err *err);

struct ready_part {
    const char *name;      /* "db", "store.appDB" */
    ready_check_fn *check; /* called on a thread that may block */
    void *ctx;             /* borrowed */
    ready_check_fn *now;   /* never blocks: what is known to have failed since; may be NULL */
};

struct ready_state {
    int code; /* 0: ready */
    char text[sizeof(((struct err *)NULL)->text)];
};

struct ready {
    struct ready_part parts[READY_MAX_PARTS];
    size_t count;
    struct mutex lock; /* guards what follows; class "ready" */
    struct cond done;
    struct ready_state states[READY_MAX_PARTS];
    uint64_t checked_ms; /* when the last round ended, clock_mono_ms(); 0: never */
    bool running;
};

void ready_init(struct ready *r);
void ready_release(struct ready *r);
void ready_add(struct ready *r, struct ready_part part); /* before the first check */

/* Copies the states (count of them) out; ERR_AGAIN when they are stale and this thread may not
 * block. */
int ready_get(struct ready *r, struct ready_state *out, bool may_block) MUST_CHECK;
/* What the last round found, whatever its age. */
void ready_last(struct ready *r, struct ready_state *out);

#endif
