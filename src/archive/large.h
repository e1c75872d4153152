/* The memory for lists whose length strangers decide: refs, headers of bundles, tables of packs,
 * pages of a forge, LFS objects. All repositories that a process works on share a small budget for
 * such lists (LARGE_LISTS_MAX). Work that needs more than this budget has left becomes *large*.
 * Only one work at a time is large, and other work that would become large waits for its end. So
 * the memory of all lists together stays below the budget and the limits of one large work, however
 * many hostile servers there are (docs/archive.md, "Limits").
 *
 * Buffers that may be smaller, or may be replaced by a file, have a budget of their own
 * (LARGE_BUFFERS_MAX). Nobody waits for it.
 *
 * A *hold* is the share of one repository or one list. It takes memory step by step, and gives all
 * of it back at the end. Work that is large must not wait for other work, because that work may
 * wait for it. A hold belongs to one thread; a large_room is shared by all. */
#ifndef ARCHIVE_LARGE_H
#define ARCHIVE_LARGE_H

#include "base/budget.h"
#include "base/err.h"

enum {
    LARGE_LISTS_MAX = 12 * 1024 * 1024, /* bytes for the lists of all work that is not large */
    LARGE_BUFFERS_MAX = 8 * 1024 * 1024,
};

struct large_room {
    struct budget lists, buffers;
    _Atomic(bool) taken; /* some work is large */
};
void large_room_init(struct large_room *room);

struct large_hold {
    struct large_room *room;     /* NULL: nothing is counted, and no call waits */
    const _Atomic(bool) *cancel; /* may be NULL */
    uint64_t wait_ms;            /* how long a call may wait */
    size_t used, paid; /* bytes that were taken; bytes that the budget of lists has paid for */
    bool is_large;
};

/* Takes further bytes. If the budget of lists has too few left, waits until the work can become
 * large. ERR_CANCELED; ERR_TIMEOUT: other large work took too long. `h` may be NULL. */
int large_take(struct large_hold *h, size_t bytes, struct err *err) MUST_CHECK;
/* Like large_take() for memory that is used again and grows: takes the bytes beyond *reached, and
 * sets *reached to `bytes` if that is more. */
int large_reach(struct large_hold *h, size_t *reached, size_t bytes, struct err *err) MUST_CHECK;
/* Takes bytes for a buffer. Returns false when the budget of buffers has too few left. The caller
 * gives the bytes back by large_give(). `h` may be NULL. */
bool large_try(struct large_hold *h, size_t bytes);
void large_give(struct large_hold *h, size_t bytes);
/* Gives back what was taken since h->used had the value `used`. Work that fits into the budget
 * again is not large any more. */
void large_back(struct large_hold *h, size_t used);
/* Gives back everything but buffers. The hold can be used again. */
void large_release(struct large_hold *h);

#endif
