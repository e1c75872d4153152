/* The schedule: which accounts are archived, which one is synced next, and which account is being
 * synced (docs/archive.md, "The schedule", T1 to T9).
 *
 * All data are in appDB. The sorted set `tracked` says which accounts are tracked and when each was
 * last synced in full; anybody may read and change it with redis-cli. The keys `w:archive:…` are
 * indexes of it. A tracked account is in exactly one of three places:
 * - a *ready set*, in which it waits for its turn; there is one set for each pair of a forge's host
 *   and a satellite;
 * - among the *leased* accounts, which a runner has claimed;
 * - among the *held* accounts, which failed and wait for their next try.
 *
 * A runner claims accounts. A claim is one script, which locks the accounts whose last sync is the
 * oldest, and skips accounts that are locked. Its cost does not depend on how many accounts are
 * locked. The caller names the ready sets from which to claim. So accounts of a host that rests, or
 * of a satellite that is down, cost nothing.
 *
 * All of this can be rebuilt from the storages (archive/rebuild.h). Times are ms since 1970 by the
 * store's clock. Any thread may call these functions; a claim is used by one thread at a time. The
 * calls fail with the store's codes (store/store.h), and with the codes that are named below. */
#ifndef ARCHIVE_SCHEDULE_H
#define ARCHIVE_SCHEDULE_H

#include "archive/names.h"
#include "archive/slots.h"
#include "coord/lock.h"
#include "store/store.h"

/* The channel for news: a message means that an account can be claimed that could not be claimed
 * before. */
#define SCHEDULE_NEWS STR("w:archive:news")

enum {
    SCHEDULE_NEVER = -1,      /* the score of an account that was never synced in full */
    SCHEDULE_BATCH_MAX = 500, /* most accounts in one call of schedule_add() or schedule_load() */
    SCHEDULE_CLAIM_MAX = 64,  /* most accounts in one claim */
    SCHEDULE_SETS_MAX = 1024, /* most ready sets in one claim */
    SCHEDULE_PAGE_MAX = 1000, /* most accounts in one page */
    SCHEDULE_LOCK_MS = 10 * 1000,
    SCHEDULE_RESYNC_MS = 24 * 60 * 60 * 1000, /* default of schedule_ask.resync_after_ms */
    /* Hold of an account that the forge does not have. */
    SCHEDULE_GONE_MS = 7 * 24 * 60 * 60 * 1000,
};

struct schedule;

struct schedule_options {
    struct store *app; /* appDB; borrowed */
    uint64_t lock_ms;  /* time to live of an account's lock; 0: SCHEDULE_LOCK_MS */
    const struct log *log;
};
/* Opens the schedule. Starts the thread that renews the locks of claims. */
int schedule_open(struct schedule **out, const struct schedule_options *o,
                  struct err *err) MUST_CHECK;
void schedule_close(struct schedule *s); /* no claim may be open; NULL is fine */

/* --- tracking --- */

/* Begins to track accounts, with the score -1. The caller must have written the `.new` object of
 * each account before (A6). `count` is at most SCHEDULE_BATCH_MAX. *added is the number of accounts
 * that were not tracked before; `added` may be NULL. */
int schedule_add(struct schedule *s, const struct archive_account *accounts, size_t count,
                 size_t *added, struct err *err) MUST_CHECK;
/* Ends the tracking of an account. If a sync of the account runs, it continues, but its end changes
 * nothing in the schedule. ERR_NOT_FOUND: the account is not tracked. */
int schedule_remove(struct schedule *s, const struct archive_account *c,
                    struct err *err) MUST_CHECK;
/* Puts an account in front of all others, even if it is held or was synced just now. If it is being
 * synced, it is synced once more afterwards. If a sync that was begun for this call is cut off,
 * because its process dies or stops, the account comes to the front again. ERR_NOT_FOUND: the
 * account is not tracked. */
int schedule_first(struct schedule *s, const struct archive_account *c, struct err *err) MUST_CHECK;
/* Writes the table of slots to the store, which says which satellite has each slot. If a slot now
 * belongs to another satellite, its ready accounts must change to the ready set of that satellite.
 * The next claim or schedule_mend() that finds such an account moves it. */
int schedule_map(struct schedule *s, const struct slots *table, struct err *err) MUST_CHECK;

/* --- claiming --- */

struct schedule_set {
    struct str host, satellite;
};

struct schedule_ask {
    const struct schedule_set *sets; /* the ready sets from which to claim */
    size_t set_count;                /* at most SCHEDULE_SETS_MAX */
    uint64_t resync_after_ms;        /* least time between two syncs of an account */
    size_t most;                     /* most accounts to claim, up to SCHEDULE_CLAIM_MAX; 0: one */
};

/* An account that the caller has claimed. The strings are in the arena of the call that claimed
 * it. */
struct schedule_claim {
    struct schedule *schedule;
    struct str member; /* `<host>/<login>`, as in `tracked` */
    struct archive_account account;
    int64_t score_ms;   /* the score in `tracked`: when the last full sync began; -1: never */
    int64_t started_ms; /* when the claim was made; becomes the score if the sync is full */
    uint64_t fence;     /* greater than the fence of every earlier claim of any account (T5) */
    bool is_tracked;    /* false only after schedule_take() */
    /* Set by schedule_take(): the hold that schedule_end_back() restores; 0: none. */
    int64_t held_until_ms;
    /* Renewed until the claim ends; check lock_held() before every write (T6). */
    struct lock *lock;
};

/* Claims up to ask->most accounts into out[]. If *count is 0, *wait_ms is the time after which
 * another call may find an account, or UINT64_MAX if none is due before there is news. Each claim
 * must be ended by one of the functions below.
 *
 * Every eighth claim, and each claim after one that found nothing, also puts accounts back into the
 * ready sets: leased accounts whose lock is gone, and held accounts whose hold has ended. */
int schedule_claim(struct schedule *s, struct arena *a, const struct schedule_ask *ask,
                   struct schedule_claim *out, size_t *count, uint64_t *wait_ms,
                   struct err *err) MUST_CHECK;
/* Claims this account whatever its score is, even if it is not tracked, for work on its objects
 * other than a sync. The caller ends the claim by schedule_end_back(). ERR_BUSY: the account is
 * locked. */
int schedule_take(struct schedule *s, struct arena *a, const struct archive_account *c,
                  struct schedule_claim *out, struct err *err) MUST_CHECK;

/* These functions end a claim. They put the account back and stop renewing its lock, which then
 * expires by itself. ERR_BUSY: the lock was lost, so nothing was changed; the claim has ended all
 * the same.
 * - schedule_end_full: the sync was full. The score becomes claim->started_ms.
 * - schedule_end_failed: the score stays, and the account is held for `hold_ms`. If `hold_ms` is 0,
 *   it is held for 60 s after the first failure in a row, twice as long after each further one, at
 *   most 24 h.
 * - schedule_end_back: the account becomes as it was before the claim. */
int schedule_end_full(struct schedule_claim *c, struct err *err) MUST_CHECK;
int schedule_end_failed(struct schedule_claim *c, uint64_t hold_ms, struct err *err) MUST_CHECK;
int schedule_end_back(struct schedule_claim *c, struct err *err) MUST_CHECK;
/* Ends a claim without a request to the store: the account returns to its ready set when its lock
 * has expired. */
void schedule_leave(struct schedule_claim *c);

/* The largest valid fence: the time in µs in the year 2112. A greater number in an object is
 * ignored, because the satellite's user can write any number there. The numbers of the store are
 * exact up to 2^53. So even after a fence was raised to this limit, there is room for all later
 * fences. */
#define SCHEDULE_FENCE_MAX (UINT64_C(1) << 52)

/* Makes later fences greater than `fence`. A sync calls it when a record or a bundle has a greater
 * fence than the sync's own, which means that the store was lost and its clock went back.
 * ERR_RANGE: `fence` is greater than SCHEDULE_FENCE_MAX, so no claim has had it. */
int schedule_raise_fence(struct schedule *s, uint64_t fence, struct err *err) MUST_CHECK;

/* --- looking --- */

enum schedule_state {
    SCHEDULE_READY,
    SCHEDULE_LEASED, /* a runner has claimed the account, or somebody has set its lock by hand */
    SCHEDULE_HELD,
    SCHEDULE_UNKNOWN, /* the account is only in `tracked`: schedule_mend() has not indexed it yet */
    SCHEDULE_STATES
};
extern const char *const schedule_state_names[SCHEDULE_STATES];

struct schedule_entry {
    struct str member;
    int64_t score_ms;
    enum schedule_state state;
    bool is_first;         /* schedule_first() was called and no sync has begun since */
    bool is_locked;        /* its lock exists */
    int64_t held_until_ms; /* end of its hold; 0: it is not held */
    unsigned fails;        /* failures in a row */
};
/* Finds one account. ERR_NOT_FOUND: the account is not tracked. */
int schedule_find(struct schedule *s, struct arena *a, const struct archive_account *c,
                  struct schedule_entry *out, struct err *err) MUST_CHECK;

/* A page of the list of accounts. With `by_score` the accounts that were not synced for the longest
 * time come first, and `at` is the number of accounts to skip. Otherwise the store decides the
 * order, and a page has about `limit` accounts. Then `at` is 0 for the first page, and for each
 * later page the `next` of the page before. An account that stays tracked meanwhile comes at least
 * once. */
struct schedule_page {
    bool by_score;
    uint64_t at;
    size_t limit; /* at most SCHEDULE_PAGE_MAX */
};
/* Lists a page of accounts. *next is the `at` of the next page; 0: this was the last page. Members
 * of `tracked` that are not names of accounts are left out. */
int schedule_list(struct schedule *s, struct arena *a, const struct schedule_page *page,
                  struct schedule_entry **out, size_t *count, uint64_t *next,
                  struct err *err) MUST_CHECK;

struct schedule_counts {
    uint64_t tracked, ready, leased, held, first;
    uint64_t odd;       /* members of `tracked` that are not names of accounts */
    uint64_t built;     /* slots that are marked as built; SLOT_COUNT: all of them */
    uint32_t map_epoch; /* epoch of the table that schedule_map() wrote; 0: there is none */
    /* Counted only with `deep`, whose cost grows with the number of accounts: */
    uint64_t due, never; /* ready accounts that may be claimed now; accounts with the score -1 */
};
int schedule_counts(struct schedule *s, bool deep, uint64_t resync_after_ms,
                    struct schedule_counts *out, struct err *err) MUST_CHECK;

/* --- mending: `tracked` may be changed by anybody --- */

/* Called for an account that somebody has added to `tracked` by hand; it writes the account's
 * `.new` object. If it fails, the account is tried again in the next pass. The other accounts are
 * mended all the same. */
typedef int schedule_found_fn(void *ctx, const struct archive_account *c, struct err *err);

struct schedule_mend {
    schedule_found_fn *found; /* may be NULL */
    void *ctx;
    bool whole;                  /* false: the pass ends as soon as the counts agree */
    const _Atomic(bool) *cancel; /* ends the pass early; may be NULL */
    /* Results: how many accounts were found (added by hand), dropped (removed by hand), or moved to
     * another index, and how many scores were in the future. */
    uint64_t found_count, dropped, moved, future;
};
/* Compares `tracked` with the indexes, in slices of 500 accounts, and corrects the indexes. Members
 * of `tracked` that are not in lower case are changed to lower case. */
int schedule_mend(struct schedule *s, struct schedule_mend *m, struct err *err) MUST_CHECK;
/* Whether this process should do a job that only one process does for all. `word` names the job.
 * *mine is true for the first caller, and false for all other callers during the next `ms`. */
int schedule_turn(struct schedule *s, struct str word, uint64_t ms, bool *mine,
                  struct err *err) MUST_CHECK;

/* --- rebuilding (archive/rebuild.h) --- */

struct schedule_loaded {
    struct archive_account account;
    int64_t score_ms;
};
/* Begins to load a slot. `mark` becomes a random word, which must be passed to schedule_built(). */
int schedule_build(struct schedule *s, struct arena *a, unsigned slot, struct str *mark,
                   struct err *err) MUST_CHECK;
/* Tracks accounts with these scores. If `tracked` already has a score for an account, that score
 * stays unless it is -1, because the score of a rebuild is less exact. `count` is at most
 * SCHEDULE_BATCH_MAX. */
int schedule_load(struct schedule *s, const struct schedule_loaded *batch, size_t count,
                  struct err *err) MUST_CHECK;
/* Marks a slot as built: all its accounts are loaded. ERR_AGAIN: the store was emptied since
 * schedule_build(), so the slot must be loaded once more. */
int schedule_built(struct schedule *s, unsigned slot, struct str mark, uint32_t epoch,
                   struct err *err) MUST_CHECK;
/* Sets lacks[i] for every slot i that is not marked as built. */
int schedule_lacks(struct schedule *s, bool lacks[SLOT_COUNT], struct err *err) MUST_CHECK;
/* Removes the marks of all slots, so that all are rebuilt. Nothing else changes. */
int schedule_unbuild(struct schedule *s, struct err *err) MUST_CHECK;

#endif
