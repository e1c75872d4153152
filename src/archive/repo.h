/* One repository of an account: compare its refs with those of the bundle, fetch what is new, and
 * store it (docs/archive.md, "The story of a sync"). What is in a bundle is read from the bundle;
 * the record only saves questions (A1).
 *
 * Nothing that was saved is removed or replaced by less because of a failure (A3). A failure
 * becomes an `.error` object beside the bundle, and the next success removes it. */
#ifndef ARCHIVE_REPO_H
#define ARCHIVE_REPO_H

#include "archive/archive.h"
#include "archive/forge.h"
#include "archive/plan.h"
#include "archive/shelf.h"

struct schedule;

/* State that the repositories of one sync share. Several threads use a scope at once. */
struct sync_scope {
    struct archive *archive;
    const struct archive_account *account;
    struct str login; /* as the forge spells it */
    struct shelf *shelf;
    struct forge_session *session;
    const struct forge *forge;
    struct mutex *lock; /* class "archive sync"; guards `asking` and the memory of the plan */
    struct cond *asked; /* signaled when `asking` has become false */
    bool asking;        /* a thread uses the session, which handles one request at a time */
    uint64_t fence;
    struct schedule *schedule; /* the schedule that has given the fence */
    int64_t now_ms;            /* when the sync began */
    const _Atomic(bool) *cancel;
    /* Set when the other repositories of the account need not be tried: the host asks to come back
     * later, or the lock is lost. */
    _Atomic(bool) stop;
    _Atomic(uint64_t) total, done, failed; /* repositories */
    _Atomic(uint64_t) bytes;               /* from git servers */
    _Atomic(int64_t) noted_ms;             /* when progress.h last wrote these numbers */
};

/* An error of one repository, for the record and the account's own error. */
struct repo_fault {
    struct archive_error error; /* strings are in the arena of the call */
    int64_t rests_until_ms;     /* the host rests until then, ms since 1970; 0: it does not */
};

/* Syncs a repository that the forge lists (PLAN_SYNC), and completes item->next, whose strings are
 * in `keep`. item->failed means that the repository must be tried again. When the outcome has an
 * `.error` object, *fault has the reason. Returns an error only if the sync of the account must
 * stop: ERR_CANCELED, or ERR_BUSY when the lock is lost. */
struct repo_call {
    struct sync_scope *scope;
    struct plan_item *item;
    struct arena *arena; /* for this call */
    struct arena *keep;  /* memory of the plan; used under the scope's lock */
};
int repo_sync(const struct repo_call *c, struct repo_fault *fault, struct err *err) MUST_CHECK;

/* Asks the forge what became of a repository that its list lacks (PLAN_ASK): it is gone, it has
 * another owner, or the forge does not answer now. The results are those of repo_sync(). */
int repo_ask(const struct repo_call *c, struct repo_fault *fault, struct err *err) MUST_CHECK;

/* Syncs a gist of the account, whose clone URL is `url`. A gist that is not there is no error. */
int repo_gist(const struct repo_call *c, struct str id, struct str url, struct repo_fault *fault,
              struct err *err) MUST_CHECK;

#endif
