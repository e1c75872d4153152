/* Sweeps one bucket by its lifecycle configuration: examines all versions and uploads, page by
 * page, and performs the actions that are due. The progress is stored, so that a sweep can continue
 * after a restart. docs/lifecycle.md has the invariants (C1 to C6).
 *
 * A sweep belongs to one thread. The caller gives the time. */
#ifndef S3_LIFECYCLE_LIFECYCLE_SWEEP_H
#define S3_LIFECYCLE_LIFECYCLE_SWEEP_H

#include "object/bucket.h"
#include "s3/lifecycle/lifecycle.h"
#include "s3/notify/notify.h"

#include <stdatomic.h>

/* The name of the bucket's document that holds the progress. */
#define LIFECYCLE_PROGRESS "lifecycleProgress"

enum { LIFECYCLE_PAGE = 500 };

/*     Columns: name of the counter; help text */
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

/* The progress of a bucket's sweeps. All members are zero when there was no sweep yet. */
struct lifecycle_progress {
    /* The beginning of the interval in which the last sweep began, from lifecycle_slot(). */
    int64_t slot_ms;
    bool done;    /* the last sweep is complete */
    bool uploads; /* the last sweep has examined all versions, but not all uploads */
    /* The last key of which all versions were examined (docs/lifecycle.md, C5). Valid while `done`
     * is false. */
    struct str cursor;
    struct lifecycle_counts counts; /* counts of the last sweep */
    int64_t finished_ms;            /* when the last complete sweep ended; 0: never */
    struct lifecycle_counts last;   /* counts of the last complete sweep */
};

/* Reads the stored progress; strings live in the arena. *out is all zero when no progress is stored
 * or it cannot be read. */
int lifecycle_progress_read(struct lifecycle_progress *out, struct bucket *b, struct arena *a,
                            struct err *err) MUST_CHECK;
int lifecycle_progress_keep(const struct lifecycle_progress *p, struct bucket *b,
                            struct err *err) MUST_CHECK;

struct lifecycle_sweep {
    struct bucket *b; /* borrowed */
    int64_t day_ms;
    struct notify *notify;     /* announces every removal and transition; borrowed; may be NULL */
    const _Atomic(bool) *stop; /* when true, the page ends early; may be NULL */
    size_t page;               /* entries on a page; 0: LIFECYCLE_PAGE */
    struct lifecycle_counts counts;
    bool uploads, done;
    struct buf key, version; /* the last version, or upload, that was examined */
    struct buf whole;        /* the last key of which all versions were examined */
    /* About the versions of `key` that were examined so far: */
    /* When the version that was examined last was made. The next version, which is older, has been
     * noncurrent since then. */
    int64_t newer_ms;
    uint64_t noncurrent; /* how many of them are noncurrent */
};

/* Continues the sweep whose progress is `from`, or begins a new sweep when `from` is done or
 * NULL. */
void lifecycle_sweep_init(struct lifecycle_sweep *s, struct bucket *b, int64_t day_ms,
                          const struct lifecycle_progress *from);
void lifecycle_sweep_release(struct lifecycle_sweep *s);

/* Examines the next page of versions or uploads and performs the actions that are due at `now_ms`.
 * Sets s->done when nothing is left or there is no rule. After an error the next call begins where
 * the page failed. */
int lifecycle_sweep_page(struct lifecycle_sweep *s, int64_t now_ms, struct err *err) MUST_CHECK;

#endif
