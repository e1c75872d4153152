/* The schedule: which accounts are archived, which one is synced next, and which account is being
 * synced (docs/archive.md, "The schedule", T1 to T9).
 *
 * Everything here is in appDB. The sorted set `tracked` says which accounts are tracked and when
 * each was last synced in full; anybody may read and change it with redis-cli. The keys
 * `w:archive:…` are indexes of it. An account that is tracked is in exactly one place: in a *ready
 * set*, of which there is one for each pair of a forge's host and a satellite; among the *leased*
 * accounts, which a runner has claimed; or among the *held* accounts, which failed and wait for
 * their next try.
 *
 * A runner claims accounts. A claim is one script: it takes the accounts whose last sync is the
 * oldest, skips locked ones, and locks those that it takes. Its cost does not depend on how many
 * accounts are locked. The claimer names the ready sets to look at, so accounts of a host that
 * rests, or of a satellite that is down, cost nothing.
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

/* The channel for news: an account can be claimed that could not be claimed before. */
#define SCHEDULE_NEWS STR("w:archive:news")

enum {
    SCHEDULE_NEVER = -1,      /* the score of an account that was never synced in full */
    SCHEDULE_BATCH_MAX = 500, /* accounts in one call of schedule_add() or schedule_load() */
    SCHEDULE_CLAIM_MAX = 64,  /* accounts in one claim */
    SCHEDULE_SETS_MAX = 1024, /* ready sets in one claim */
    SCHEDULE_PAGE_MAX = 1000, /* accounts in one page */
    SCHEDULE_LOCK_MS = 10 * 1000,
    SCHEDULE_RESYNC_MS = 24 * 60 * 60 * 1000,   /* default of schedule_ask.resync_after_ms */
    SCHEDULE_GONE_MS = 7 * 24 * 60 * 60 * 1000, /* hold of an account that the forge lacks */
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

/* Begins to track accounts, with the score -1. *added is the number of those that were not tracked
 * before; `added` may be NULL. `count` is at most SCHEDULE_BATCH_MAX. The caller has written each
 * account's `.new` object before (A6). */
int schedule_add(struct schedule *s, const struct archive_account *accounts, size_t count,
                 size_t *added, struct err *err) MUST_CHECK;
/* Ends the tracking of an account. A running sync of it goes on; its end changes nothing in the
 * schedule. ERR_NOT_FOUND: the account is not tracked. */
int schedule_remove(struct schedule *s, const struct archive_account *c,
                    struct err *err) MUST_CHECK;
/* Puts an account in front of all others, even if it is held or was synced just now. If it is being
 * synced, it is synced once more afterwards. ERR_NOT_FOUND: the account is not tracked. */
int schedule_first(struct schedule *s, const struct archive_account *c, struct err *err) MUST_CHECK;
/* Tells the store which satellite has each slot. When a slot goes to another satellite, its ready
 * accounts are moved to that satellite's set by the claim, or the schedule_mend(), that meets
 * them. */
int schedule_map(struct schedule *s, const struct slots *table, struct err *err) MUST_CHECK;

/* --- claiming --- */

struct schedule_set {
    struct str host, satellite;
};

struct schedule_ask {
    const struct schedule_set *sets; /* the ready sets to look at */
    size_t set_count;                /* at most SCHEDULE_SETS_MAX */
    uint64_t resync_after_ms;        /* least time from one sync of an account to the next */
    size_t most;                     /* accounts to claim, at most SCHEDULE_CLAIM_MAX; 0: one */
};

/* An account that the caller works on. The strings are in the arena of the call that claimed it. */
struct schedule_claim {
    struct schedule *schedule;
    struct str member; /* `<host>/<login>`, as in `tracked` */
    struct archive_account account;
    int64_t score_ms;      /* the score in `tracked`: when the last full sync began; -1: never */
    int64_t started_ms;    /* when the claim was made; the score of a full sync that begins now */
    uint64_t fence;        /* greater than that of every earlier claim of any account (T5) */
    bool is_tracked;       /* false only after schedule_take() */
    int64_t held_until_ms; /* set by schedule_take(): the hold that schedule_end_back() restores */
    struct lock *lock;     /* renewed until the claim ends; lock_held() before every write (T6) */
};

/* Claims up to ask->most accounts into out[]. *count may be 0; then *wait_ms is the time after
 * which another call may find an account, or UINT64_MAX when only news can change that. Every
 * eighth claim, and each claim after one that found nothing, puts accounts back into the ready
 * sets: leased accounts whose lock is gone, and held accounts whose time is over. Each claim must
 * be ended by one of the functions below. */
int schedule_claim(struct schedule *s, struct arena *a, const struct schedule_ask *ask,
                   struct schedule_claim *out, size_t *count, uint64_t *wait_ms,
                   struct err *err) MUST_CHECK;
/* Claims this account whatever its score is, even if it is not tracked: for work on its objects
 * other than a sync. The claim is ended by schedule_end_back(). ERR_BUSY: its lock is taken. */
int schedule_take(struct schedule *s, struct arena *a, const struct archive_account *c,
                  struct schedule_claim *out, struct err *err) MUST_CHECK;

/* These end a claim: they put the account back and stop renewing its lock, which expires by itself.
 * ERR_BUSY: the lock was lost, so nothing was changed; the claim has ended all the same.
 * schedule_end_full: the sync was a full one. The score becomes claim->started_ms.
 * schedule_end_failed: the score stays, and the account is held for `hold_ms`; 0: for 60 s after
 * the first failure in a row, twice as long after each further one, at most 24 h.
 * schedule_end_back: the account is as it was before the claim. */
int schedule_end_full(struct schedule_claim *c, struct err *err) MUST_CHECK;
int schedule_end_failed(struct schedule_claim *c, uint64_t hold_ms, struct err *err) MUST_CHECK;
int schedule_end_back(struct schedule_claim *c, struct err *err) MUST_CHECK;
/* Ends a claim without asking the store: the account comes back when its lock has expired. */
void schedule_leave(struct schedule_claim *c);

/* The largest fence that is believed when it is read from an object: the time in µs in the year
 * 2112. The satellite's user can write any number there. Claims count on from a raised fence, and
 * the numbers of the store are exact up to 2^53. */
#define SCHEDULE_FENCE_MAX (UINT64_C(1) << 52)

/* Makes later fences greater than `fence`. Called by a sync that finds a greater fence than its own
 * in a record or a bundle: the store was lost and its clock went back. ERR_RANGE: the fence is
 * greater than SCHEDULE_FENCE_MAX, so no claim has had it. */
int schedule_raise_fence(struct schedule *s, uint64_t fence, struct err *err) MUST_CHECK;

/* --- looking --- */

enum schedule_state {
    SCHEDULE_READY,
    SCHEDULE_LEASED, /* a runner has claimed it, or somebody has set its lock by hand */
    SCHEDULE_HELD,
    SCHEDULE_UNKNOWN, /* it is only in `tracked`: schedule_mend() has not indexed it yet */
    SCHEDULE_STATES
};
extern const char *const schedule_state_names[SCHEDULE_STATES];

struct schedule_entry {
    struct str member;
    int64_t score_ms;
    enum schedule_state state;
    bool is_first;         /* schedule_first() was called and no sync has begun since */
    bool is_locked;        /* its lock is there */
    int64_t held_until_ms; /* 0: it is not held */
    unsigned fails;        /* failures in a row */
};
/* ERR_NOT_FOUND: the account is not tracked. */
int schedule_find(struct schedule *s, struct arena *a, const struct archive_account *c,
                  struct schedule_entry *out, struct err *err) MUST_CHECK;

/* Which accounts to list. By score: the accounts that were not synced for the longest time come
 * first, and `at` accounts are skipped. Otherwise the store decides the order, and a page has about
 * `limit` accounts; `at` is 0 for the first page, then the `next` of the page before. An account
 * that is tracked all the time comes at least once. */
struct schedule_page {
    bool by_score;
    uint64_t at;
    size_t limit; /* at most SCHEDULE_PAGE_MAX */
};
/* *next is the `at` of the next page; 0: this was the last page. Members that are not names of
 * accounts are left out. */
int schedule_list(struct schedule *s, struct arena *a, const struct schedule_page *page,
                  struct schedule_entry **out, size_t *count, uint64_t *next,
                  struct err *err) MUST_CHECK;

struct schedule_counts {
    uint64_t tracked, ready, leased, held, first;
    uint64_t odd;       /* members of `tracked` that are not names of accounts */
    uint64_t built;     /* slots whose accounts are known; SLOT_COUNT: all of them */
    uint32_t map_epoch; /* of the table that schedule_map() gave; 0: there is none */
    /* Only counted with `deep`, whose cost grows with the number of accounts: */
    uint64_t due, never; /* ready accounts that may be claimed now; accounts with the score -1 */
};
int schedule_counts(struct schedule *s, bool deep, uint64_t resync_after_ms,
                    struct schedule_counts *out, struct err *err) MUST_CHECK;

/* --- mending: `tracked` may be changed by anybody --- */

/* Called for an account that somebody has added to `tracked` by hand. It writes the account's
 * `.new` object. If it fails, the account is left for the next pass, and the other accounts are
 * mended all the same. */
typedef int schedule_found_fn(void *ctx, const struct archive_account *c, struct err *err);

struct schedule_mend {
    schedule_found_fn *found; /* may be NULL */
    void *ctx;
    bool whole;                  /* false: the pass ends as soon as the counts agree */
    const _Atomic(bool) *cancel; /* ends the pass early; may be NULL */
    /* Results: how many accounts were found, dropped, or moved to another index; how many scores
     * were in the future. */
    uint64_t found_count, dropped, moved, future;
};
/* Compares `tracked` with the indexes, in slices of 500, and corrects the indexes. Members of
 * `tracked` that are not in lower case are folded. */
int schedule_mend(struct schedule *s, struct schedule_mend *m, struct err *err) MUST_CHECK;
/* Whether this process may do some work that one process does for all. *mine is true for the first
 * caller with this word, and false for all others during the next `ms`. */
int schedule_turn(struct schedule *s, struct str word, uint64_t ms, bool *mine,
                  struct err *err) MUST_CHECK;

/* --- rebuilding (archive/rebuild.h) --- */

struct schedule_loaded {
    struct archive_account account;
    int64_t score_ms;
};
/* Begins to load a slot. `mark` is set to a word that schedule_built() must be given. */
int schedule_build(struct schedule *s, struct arena *a, unsigned slot, struct str *mark,
                   struct err *err) MUST_CHECK;
/* Tracks accounts with these scores. If `tracked` has a score for the account already, it stays
 * unless it is -1: the rebuild's score is less exact. `count` is at most SCHEDULE_BATCH_MAX. */
int schedule_load(struct schedule *s, const struct schedule_loaded *batch, size_t count,
                  struct err *err) MUST_CHECK;
/* Says that all accounts of the slot are loaded. ERR_AGAIN: the store was emptied since
 * schedule_build(), so the slot must be loaded once more. */
int schedule_built(struct schedule *s, unsigned slot, struct str mark, uint32_t epoch,
                   struct err *err) MUST_CHECK;
/* Sets lacks[i] to whether slot i is not built. */
int schedule_lacks(struct schedule *s, bool lacks[SLOT_COUNT], struct err *err) MUST_CHECK;
/* Forgets which slots are built, so that all are rebuilt. Nothing else changes. */
int schedule_unbuild(struct schedule *s, struct err *err) MUST_CHECK;

#endif
