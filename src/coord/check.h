/* Checks: comparisons of buckets and what they found, in appDB (docs/diff.md: D1 to D9, keys).
 *
 * A check is of a user's buckets at two or more locations, which are always in the order of their
 * names; the same locations have the same id. What it does next is a task in the queue
 * `consistency_check`, queued in the script that begins it. Each beginning has a round, and
 * whatever is still at work for an older one changes nothing. Any thread.
 *
 * Calls fail with the store's codes (store/store.h), else as said. */
#ifndef COORD_CHECK_H
#define COORD_CHECK_H

#include "coord/queue.h"

enum {
    CHECK_KEPT = 10000, /* differences of a report; further ones are counted */
    CHECK_LOCATIONS_MAX = 8,
    CHECK_ID_LEN = 16,
    CHECK_TRIES = 10, /* of its tasks */
};

#define CHECK_QUEUE           STR("consistency_check")
#define CHECK_TYPE            "consistency"
#define CHECK_FIX_TYPE        "consistency:fix"
#define CHECK_FIX_OBJECT_TYPE "consistency:fix:object"

struct checks {
    struct store *app;   /* borrowed; joined with the queue's */
    struct queue *queue; /* borrowed */
};

struct check_location {
    struct str storage, bucket;
};

enum check_state {
    CHECK_CHECKING,
    CHECK_READY,
    CHECK_FIXING,
    CHECK_FAILED, /* it could not be done: `error` */
    CHECK_STATES
};
extern const char *const check_state_names[CHECK_STATES];

/* Times are ms since 1970, 0: not set. */
struct check {
    struct str id, user;
    struct check_location locations[CHECK_LOCATIONS_MAX];
    size_t count;
    bool ignore_sizes, ignore_etags, contents, last_only;
    bool versioned; /* as it was done: by versions */
    enum check_state state;
    struct str round, error;
    int64_t piece; /* of the walk, which its task is for (D9) */
    int64_t created_ms, started_ms, done_ms;
    int64_t keys, differences, kept, bytes; /* looked at, found, in the report; read */
    int64_t total;                          /* keys that there are, about; 0: not known */
    int64_t source;                         /* of the last fix; -1: none */
    int64_t fix_queued, fix_done, fix_failed;
    int64_t fixed_ms; /* when the last fix had ended */
};

/* --- managing --- */

/* Puts the locations in order and sets id; ERR_INVALID: too few, too many, one twice. */
int check_name(struct check *c, struct arena *a, struct err *err) MUST_CHECK;
/* Begins one that check_name() has named; an older report of it goes. ERR_EXISTS: it is at work. */
int check_start(const struct checks *cs, const struct check *c, struct err *err) MUST_CHECK;
/* Begins it again, whatever it is doing. ERR_NOT_FOUND. */
int check_restart(const struct checks *cs, struct str id, struct err *err) MUST_CHECK;
/* Makes all locations equal to the one with the index `source`, then checks again. ERR_NOT_FOUND;
 * ERR_EXISTS: it is at work. */
int check_fix(const struct checks *cs, struct str id, size_t source, struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND. In the arena. */
int check_read(const struct checks *cs, struct arena *a, struct str id, struct check *out,
               struct err *err) MUST_CHECK;
/* All, by id. */
int check_list(const struct checks *cs, struct arena *a, struct check **out, size_t *count,
               struct err *err) MUST_CHECK;
/* Differences as JSON (docs/diff.md), from `skip` on. */
int check_entries(const struct checks *cs, struct arena *a, struct str id, size_t skip,
                  size_t limit, struct store_args *out, struct err *err) MUST_CHECK;
/* Takes it away; what is at work for it ends by itself. ERR_NOT_FOUND. */
int check_remove(const struct checks *cs, struct str id, struct err *err) MUST_CHECK;

/* --- working: ERR_NOT_FOUND when the round, or of a walk the piece, is over, ERR_CONFLICT when the
 * cursor is elsewhere --- */

/* Where to go on; empty: at the beginning. */
int check_cursor(const struct checks *cs, struct arena *a, struct str id, struct str *out,
                 struct err *err) MUST_CHECK;

struct check_page {
    const struct check *check;
    struct str after; /* where it began: what check_cursor() gave */
    struct str last;  /* where to go on; empty: that was all */
    uint64_t keys, differences, bytes;
    const struct str *entries; /* JSON of the differences that may be kept */
    size_t count;
    bool hand_over; /* a task of its own goes on from `last`; the caller's ends (D9) */
};
/* One that begins at the beginning forgets what was found before. */
int check_page(const struct checks *cs, const struct check_page *p, struct err *err) MUST_CHECK;

struct check_fix_item {
    struct str member; /* names it: which key at which location */
    struct task task;
};
struct check_fix_page {
    const struct check *check;
    struct str after, last;
    const struct check_fix_item *items;
    size_t count;
    bool hand_over;
};
int check_fix_page(const struct checks *cs, const struct check_fix_page *p,
                   struct err *err) MUST_CHECK;
/* One of these has ended; `error` not empty: without success. The last one begins the check again.
 */
int check_fixed(const struct checks *cs, const struct check *c, struct str member, struct str error,
                struct err *err) MUST_CHECK;
/* What is wrong; `ends`: and it cannot go on. */
int check_note(const struct checks *cs, const struct check *c, struct str error, bool ends,
               struct err *err) MUST_CHECK;

#endif
