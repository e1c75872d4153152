/* Checks: comparisons of buckets, stored in appDB with the differences that were found.
 * docs/diff.md has the invariants (D1 to D9) and the keys.
 *
 * A check compares buckets of one user at two or more locations. The locations are sorted by name,
 * and the same locations always have the same id. The work of a check is done by tasks in the queue
 * `consistency_check`; the script that begins a check also queues its first task. Each start of a
 * check is a new round, and a task of an older round changes nothing. The walk of a check over all
 * keys is cut into numbered pieces, and each piece is one task (D9).
 *
 * Calls fail with the store's codes (store/store.h), and with the codes that are named below. Any
 * thread may call these functions. */
#ifndef COORD_CHECK_H
#define COORD_CHECK_H

#include "coord/queue.h"

enum {
    /* Most differences that a report keeps; further differences are only counted. */
    CHECK_KEPT = 10000,
    CHECK_LOCATIONS_MAX = 8,
    CHECK_ID_LEN = 16,
    CHECK_TRIES = 10, /* further tries of each task of a check, after its first try */
};

#define CHECK_QUEUE           STR("consistency_check")
#define CHECK_TYPE            "consistency"
#define CHECK_FIX_TYPE        "consistency:fix"
#define CHECK_FIX_OBJECT_TYPE "consistency:fix:object"

struct checks {
    struct store *app;   /* appDB; borrowed; joined (store_join()) with the queue's store */
    struct queue *queue; /* borrowed */
};

struct check_location {
    struct str storage, bucket;
};

enum check_state {
    CHECK_CHECKING,
    CHECK_READY,
    CHECK_FIXING,
    CHECK_FAILED, /* the check could not be done; check.error says why */
    CHECK_STATES
};
extern const char *const check_state_names[CHECK_STATES];

/* A check and its progress. Times are ms since 1970; 0: not set. */
struct check {
    struct str id, user;
    struct check_location locations[CHECK_LOCATIONS_MAX];
    size_t count;
    bool ignore_sizes, ignore_etags, contents, last_only;
    bool versioned; /* the last run compared all versions of each object */
    enum check_state state;
    struct str round, error;
    /* Number of the piece of the walk that the present task does (docs/diff.md, D9). */
    int64_t piece;
    int64_t created_ms, started_ms, done_ms;
    int64_t keys, differences; /* keys compared and differences found so far */
    int64_t kept;              /* number of differences that the report keeps */
    int64_t bytes;             /* bytes read to compare contents */
    int64_t total;             /* estimate of the keys to compare; 0: not known */
    int64_t source;            /* index of the location that the last fix copied from; -1: no fix */
    int64_t fix_queued, fix_done, fix_failed;
    int64_t fixed_ms; /* when the last fix ended */
};

/* --- managing --- */

/* Sorts c->locations and sets c->id, whose text is in the arena. ERR_INVALID: there are too few or
 * too many locations, or the same location is given twice. */
int check_name(struct check *c, struct arena *a, struct err *err) MUST_CHECK;
/* Begins the check `c`, whose id check_name() has set. The report of an earlier run is removed.
 * ERR_EXISTS: the check is running. */
int check_start(const struct checks *cs, const struct check *c, struct err *err) MUST_CHECK;
/* Begins a check again, even if it is running. ERR_NOT_FOUND: there is no such check. */
int check_restart(const struct checks *cs, struct str id, struct err *err) MUST_CHECK;
/* Begins a fix, which makes all locations equal to the location with the index `source`. The check
 * runs again after the fix. ERR_NOT_FOUND: there is no such check. ERR_EXISTS: the check is
 * running. */
int check_fix(const struct checks *cs, struct str id, size_t source, struct err *err) MUST_CHECK;
/* Reads a check; its strings are in the arena. ERR_NOT_FOUND: there is no such check. */
int check_read(const struct checks *cs, struct arena *a, struct str id, struct check *out,
               struct err *err) MUST_CHECK;
/* Lists all checks, sorted by id. */
int check_list(const struct checks *cs, struct arena *a, struct check **out, size_t *count,
               struct err *err) MUST_CHECK;
/* Lists up to `limit` differences of a check as JSON (docs/diff.md). The first `skip` differences
 * are left out. */
int check_entries(const struct checks *cs, struct arena *a, struct str id, size_t skip,
                  size_t limit, struct store_args *out, struct err *err) MUST_CHECK;
/* Removes a check. Its tasks then end by themselves. ERR_NOT_FOUND: there is no such check. */
int check_remove(const struct checks *cs, struct str id, struct err *err) MUST_CHECK;

/* --- for the tasks ---
 *
 * A task walks through the keys of the locations in pages. Calls that change a check fail with
 * ERR_NOT_FOUND when a newer round has begun or this piece of the walk is done, and with
 * ERR_CONFLICT when the cursor is not where the caller's page begins. */

/* Reads the cursor: the key behind which the walk goes on. Empty: the walk goes on at the
 * beginning. */
int check_cursor(const struct checks *cs, struct arena *a, struct str id, struct str *out,
                 struct err *err) MUST_CHECK;

struct check_page {
    const struct check *check;
    struct str after; /* where the page begins: the result of check_cursor() */
    struct str last;  /* the next cursor; empty: this was the last page */
    uint64_t keys, differences, bytes;
    const struct str *entries; /* differences as JSON; the report keeps the first CHECK_KEPT */
    size_t count;
    bool hand_over; /* a new task goes on from `last`, and the caller's task ends (D9) */
};
/* Stores the results of a page and moves the cursor to `last`. The first page of a walk removes the
 * differences that an earlier walk found. */
int check_page(const struct checks *cs, const struct check_page *p, struct err *err) MUST_CHECK;

struct check_fix_item {
    struct str member; /* name of the repair, which says which key is repaired at which location */
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
/* Records that the repair `member` has ended. `error` is empty when it succeeded. The end of a
 * fix's last repair begins the check again. */
int check_fixed(const struct checks *cs, const struct check *c, struct str member, struct str error,
                struct err *err) MUST_CHECK;
/* Stores `error` as the check's error, which readers of the check see. `ends` true: the check has
 * failed for good. */
int check_note(const struct checks *cs, const struct check *c, struct str error, bool ends,
               struct err *err) MUST_CHECK;

#endif
