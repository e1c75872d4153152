/* One bucket swept by its lifecycle configuration, a page at a time, and what of that is kept
 * between pages and starts. docs/lifecycle.md has the invariants (C1 to C6).
 *
 * A sweep belongs to one thread. Time comes from the caller. */
#ifndef S3_LIFECYCLE_LIFECYCLE_SWEEP_H
#define S3_LIFECYCLE_LIFECYCLE_SWEEP_H

#include "object/bucket.h"
#include "s3/lifecycle/lifecycle.h"
#include "s3/notify/notify.h"

#include <stdatomic.h>

#define LIFECYCLE_PROGRESS "lifecycleProgress" /* the bucket's document */

enum { LIFECYCLE_PAGE = 500 };

/*      name, what it counts */
#define LIFECYCLE_COUNTS(X)                                                                        \
    X(examined, "Versions and uploads looked at.")                                                 \
    X(expired, "Current versions removed, or covered by a delete marker.")                         \
    X(removed, "Noncurrent versions removed.")                                                     \
    X(markers, "Delete markers removed that had nothing behind them.")                             \
    X(transitions, "Versions given another storage class.")                                        \
    X(uploads, "Incomplete uploads aborted.")                                                      \
    X(refused, "Changes given up because the version was changed meanwhile, or is locked.")

struct lifecycle_counts {
#define X(name, help) uint64_t name;
    LIFECYCLE_COUNTS(X)
#undef X
};

void lifecycle_counts_add(struct lifecycle_counts *to, const struct lifecycle_counts *from);

/* What is known of a bucket's sweeps; all zero: there was none. */
struct lifecycle_progress {
    int64_t slot_ms;                /* the interval of the last sweep that was begun */
    bool done;                      /* it came to its end */
    bool uploads;                   /* not done: it is at the uploads */
    struct str cursor;              /* not done: the last key that was judged whole (C5) */
    struct lifecycle_counts counts; /* of it */
    int64_t finished_ms;            /* when the last whole one ended; 0: never */
    struct lifecycle_counts last;   /* of that one */
};

/* Strings live in the arena. None kept, or one that cannot be read: all zero. */
int lifecycle_progress_read(struct lifecycle_progress *out, struct bucket *b, struct arena *a,
                            struct err *err) MUST_CHECK;
int lifecycle_progress_keep(const struct lifecycle_progress *p, struct bucket *b,
                            struct err *err) MUST_CHECK;

struct lifecycle_sweep {
    struct bucket *b; /* borrowed */
    int64_t day_ms;
    struct notify *notify;     /* told of what is done; borrowed; may be NULL */
    const _Atomic(bool) *stop; /* when it becomes true a page ends early; may be NULL */
    size_t page;               /* entries; 0: LIFECYCLE_PAGE */
    struct lifecycle_counts counts;
    bool uploads, done;
    struct buf key, version; /* the last version that was judged, or the last upload */
    struct buf whole;        /* the last key that was judged whole */
    /* Of `key`: */
    int64_t newer_ms;    /* when its version that was judged last was made */
    uint64_t noncurrent; /* how many of its noncurrent versions were judged */
};

/* Goes on where `from` ended; a new one when that is done, or NULL. */
void lifecycle_sweep_init(struct lifecycle_sweep *s, struct bucket *b, int64_t day_ms,
                          const struct lifecycle_progress *from);
void lifecycle_sweep_release(struct lifecycle_sweep *s);

/* Judges the next page and does what is due by now. s->done: there is nothing left, or no rule. An
 * error leaves the sweep where the page failed. */
int lifecycle_sweep_page(struct lifecycle_sweep *s, int64_t now_ms, struct err *err) MUST_CHECK;

#endif
