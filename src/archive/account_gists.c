/* The gists of an account. */
#include "archive/account_int.h"

#include "base/clock.h"
#include "coord/lock.h"

/* The forge is asked for gists that have changed since one hour before the last sync, because the
 * clocks of weir and of the forge may differ. */
enum { GISTS_OVERLAP_MS = MS_PER_HOUR };

/* The state while the gists of an account are listed and synced. */
struct gists_run {
    struct account_work *work;
    struct arena arena;     /* memory for one gist; reset after each */
    struct large_hold hold; /* for the pages of the list, and for the gist that is synced */
};

static int gists_sync(void *ctx, const struct forge_gist *g, struct err *err)
{
    struct gists_run *run = ctx;
    struct account_work *w = run->work;
    struct repo_call call = {
        .scope = &w->scope, .arena = &run->arena, .keep = &w->plan.arena, .hold = &run->hold};
    struct repo_fault fault = {0};
    struct err own = {0};
    size_t used = run->hold.used;
    int code = repo_gist(&call, g->id, g->url, &fault, &own);

    large_back(&run->hold, used);

    if (code < 0 && code != ERR_CANCELED && lock_held(w->job->claim->lock)) {
        account_fail(w, fault.error.code, fault.error.stage, code, &own);
        if (fault.rests_until_ms > w->rests_until_ms)
            w->rests_until_ms = fault.rests_until_ms;
        /* The other gists are still synced, unless they would fail for the same reason. */
        if (!fault.rests_until_ms && !atomic_load(&w->scope.stop))
            code = 0;
    }
    arena_reset(&run->arena);
    if (code < 0)
        *err = own;
    return code;
}

int account_gists(struct account_work *w, struct err *err)
{
    struct gists_run run = {.work = w, .hold = account_hold(w)};
    struct forge_fault fault = {0};
    int64_t last = w->old.account.gists_ms;
    /* If the stored time is in the future, the clock was wrong when it was stored. Then weir asks
     * for all gists. */
    int64_t since = last && last <= w->job->claim->started_ms ? last - GISTS_OVERLAP_MS : 0;

    w->gists_ms = last;

    if (!w->scope.forge->wants.gists)
        return 0;
    forge_session_set_hold(w->session, &run.hold);
    int code =
        forge_gists(w->session, w->arena, w->account->login, since, gists_sync, &run, &fault, err);
    forge_session_set_hold(w->session, NULL);
    large_release(&run.hold);
    arena_release(&run.arena);
    if (code == ERR_CANCELED || (code < 0 && fault.code == ARCHIVE_OK))
        return code;
    if (fault.rests_until_ms > w->rests_until_ms)
        w->rests_until_ms = fault.rests_until_ms;
    if (code < 0)
        return account_fail(w, fault.code, "list", code, err);
    if (!w->has_error)
        w->gists_ms = w->job->claim->started_ms;
    return 0;
}
