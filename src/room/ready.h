/* Finds out whether every part of weir is ready to serve, for /readyz. Anybody may call /readyz, as
 * often as they like. So a round of checks runs at most once a second, and only one round at a
 * time; its checks run in parallel. A caller that comes during a round gets the results of the last
 * round, and failures that became known since then. */
#ifndef ROOM_READY_H
#define ROOM_READY_H

#include "base/err.h"
#include "os/thread.h"

enum { READY_MAX_PARTS = 80, READY_FRESH_MS = 1000 };

/* A check of one part. Any error means that the part is not ready; its text says why. */
typedef int ready_check_fn(void *ctx, struct err *err);

struct ready_part {
    const char *name;      /* such as "db" or "store.appDB" */
    ready_check_fn *check; /* runs on a thread that may block */
    void *ctx;             /* borrowed */
    ready_check_fn *now;   /* reports failures since the last round; never blocks; may be NULL */
};

struct ready_state {
    int code; /* 0: ready */
    char text[sizeof(((struct err *)NULL)->text)];
};

struct ready {
    struct ready_part parts[READY_MAX_PARTS];
    size_t count;
    struct mutex lock; /* lock class "ready"; guards the members below */
    struct cond done;
    struct ready_state states[READY_MAX_PARTS];
    uint64_t checked_ms; /* when the last round ended, as clock_mono_ms(); 0: never */
    bool running;
};

void ready_init(struct ready *r);
void ready_release(struct ready *r);
void ready_add(struct ready *r, struct ready_part part); /* call it before the first check */

/* Copies the states of all parts to `out`. If they are older than READY_FRESH_MS, runs a new round
 * of checks first. ERR_AGAIN: a new round is needed, and `may_block` is false. */
int ready_get(struct ready *r, struct ready_state *out, bool may_block) MUST_CHECK;
/* Copies the results of the last round to `out`, however old they are. */
void ready_last(struct ready *r, struct ready_state *out);

#endif
