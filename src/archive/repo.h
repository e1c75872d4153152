/* The sync of one repository: compares its refs with those of the bundle, fetches new objects, and
 * stores them (docs/archive.md, "The story of a sync"). weir learns the content of a bundle from
 * the bundle itself; the record only saves requests (A1).
 *
 * A failure never removes saved data, and never replaces them by less (A3). It is written as an
 * `.error` object beside the bundle, which the next success removes. */
#ifndef ARCHIVE_REPO_H
#define ARCHIVE_REPO_H

#include "archive/archive.h"
#include "archive/forge.h"
#include "archive/plan.h"
#include "archive/shelf.h"

struct schedule;

/* State that all repositories of one sync share. Several threads use a scope at once. */
struct sync_scope {
    struct archive *archive;
    const struct archive_account *account;
    struct str login; /* login of the account, as the forge spells it */
    struct shelf *shelf;
    struct forge_session *session;
    const struct forge *forge;
    struct mutex *lock; /* class "archive sync"; guards `asking` and the memory of the plan */
    struct cond *asked; /* signaled when `asking` has become false */
    bool asking;        /* a thread uses the session, which allows one request at a time */
    uint64_t fence;
    struct schedule *schedule; /* the schedule that gave the fence of this sync */
    int64_t now_ms;            /* when the sync began */
    const _Atomic(bool) *cancel;
    /* Set when the other repositories of the account must not be tried: the host asks weir to come
     * back later, or the lock is lost. */
    _Atomic(bool) stop;
    _Atomic(uint64_t) total, done, failed; /* numbers of repositories */
    _Atomic(uint64_t) bytes;               /* bytes that git servers sent */
    _Atomic(int64_t) noted_ms;             /* when progress.h last wrote these numbers */
};

/* An error of one repository, for the record and the account's own error. */
struct repo_fault {
    struct archive_error error; /* strings are in the arena of the call */
    int64_t rests_until_ms;     /* the host rests until then, ms since 1970; 0: it does not */
};

/* repo_sync() syncs a repository that the forge lists (PLAN_SYNC). It completes item->next, whose
 * strings are in `keep`. If item->failed is set, the repository must be tried again. When the
 * outcome has an `.error` object, *fault has the reason. An error is returned only if the sync of
 * the whole account must stop: ERR_CANCELED, or ERR_BUSY when the lock is lost. */
struct repo_call {
    struct sync_scope *scope;
    struct plan_item *item;
    struct arena *arena;     /* for this call */
    struct arena *keep;      /* memory of the plan; used under the scope's lock */
    struct large_hold *hold; /* pays for lists; NULL: the repository has a hold of its own */
};
int repo_sync(const struct repo_call *c, struct repo_fault *fault, struct err *err) MUST_CHECK;

/* Handles a repository that the forge's list lacks (PLAN_ASK): asks the forge whether the
 * repository is gone or has another owner. The results are those of repo_sync(). */
int repo_ask(const struct repo_call *c, struct repo_fault *fault, struct err *err) MUST_CHECK;

/* Syncs a gist of the account, whose clone URL is `url`. If the gist does not exist any more, this
 * is not an error. */
int repo_gist(const struct repo_call *c, struct str id, struct str url, struct repo_fault *fault,
              struct err *err) MUST_CHECK;

#endif
