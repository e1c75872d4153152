/* Working on the repositories of an account, a few at once. */
#include "archive/account_int.h"

#include "archive/progress.h"
#include "archive/schedule.h"
#include "base/clock.h"

/* A thread that works on repositories of one account. */
struct repo_hand {
    struct account_work *work;
    struct thread thread;
};

/* Takes the next item that needs work, or NULL. */
static struct plan_item *repos_next(struct account_work *w)
{
    struct plan_item *item = NULL;

    mutex_lock(&w->lock);
    while (!item && w->next < w->plan.items.len && !w->stopped && !atomic_load(&w->scope.stop)) {
        struct plan_item *i = &w->plan.items.items[w->next++];
        if (i->step != PLAN_KEEP)
            item = i;
    }
    mutex_unlock(&w->lock);
    return item;
}

/* Notes the error of a repository. */
static void repos_note(struct account_work *w, const struct plan_item *item,
                       const struct repo_fault *f)
{
    struct record_error e = {f->error.at_ms, f->error.code, item->next.name, f->error.message};

    mutex_lock(&w->lock);
    archive_record_add_error(&w->errors, &e);
    if (item->failed && !w->has_error) {
        w->has_error = true;
        w->error = f->error;
        w->error.last_good_ms = w->old.account.last_full_sync_ms;
        w->error.message = arena_fmt(&w->errors.arena, STR_FMT ": " STR_FMT,
                                     STR_ARG(item->next.name), STR_ARG(f->error.message));
        w->error.request_id = arena_str(&w->errors.arena, f->error.request_id);
        w->error.block_reason = arena_str(&w->errors.arena, f->error.block_reason);
    }
    if (f->rests_until_ms > w->rests_until_ms)
        w->rests_until_ms = f->rests_until_ms;
    mutex_unlock(&w->lock);
}

static void repos_work(void *ctx)
{
    struct account_work *w = ((struct repo_hand *)ctx)->work;
    struct arena arena = {0};
    struct plan_item *item;

    while ((item = repos_next(w))) {
        struct repo_call call = {&w->scope, item, &arena, &w->plan.arena};
        struct repo_fault fault = {0};
        struct err err = {0};
        int code =
            item->step == PLAN_ASK ? repo_ask(&call, &fault, &err) : repo_sync(&call, &fault, &err);
        if (code == 0 && fault.error.stage)
            repos_note(w, item, &fault);
        if (code < 0) {
            mutex_lock(&w->lock);
            w->stopped = code;
            mutex_unlock(&w->lock);
        }
        progress_note(w->archive, w->job->claim, &w->scope);
        arena_reset(&arena);
    }
    arena_release(&arena);
}

static size_t repos_to_work_on(const struct account_work *w)
{
    size_t n = 0;

    vec_each (&w->plan.items, const struct plan_item *, i)
        n += i->step != PLAN_KEEP;
    return n;
}

static void repos_scope(struct account_work *w)
{
    w->scope.archive = w->archive;
    w->scope.account = w->account;
    w->scope.login = w->who.login;
    w->scope.shelf = &w->shelf;
    w->scope.session = w->session;
    w->scope.lock = &w->lock;
    w->scope.asked = &w->asked;
    w->scope.fence = w->job->claim->fence;
    w->scope.schedule = w->job->claim->schedule;
    w->scope.now_ms = w->job->claim->started_ms;
    w->scope.cancel = w->job->cancel;
}

/* Fails when repositories were not tried because the work ended early. */
static int repos_judge(struct account_work *w, struct err *err)
{
    size_t left = 0;

    if (w->stopped)
        return err_code(err, w->stopped);
    for (size_t i = w->next; i < w->plan.items.len; i++)
        left += w->plan.items.items[i].step != PLAN_KEEP;
    if (left && !w->has_error) {
        err_set(err, ERR_BUSY, "%zu repositories were not tried", left);
        return account_fail(w, ARCHIVE_RATE, "refs", ERR_BUSY, err);
    }
    return 0;
}

int account_repos(struct account_work *w, struct err *err)
{
    enum { HANDS_MAX = 16 };
    struct repo_hand hands[HANDS_MAX] = {0};
    size_t todo = repos_to_work_on(w);
    size_t count = size_min(size_min(todo, w->archive->repos_at_once), HANDS_MAX);
    int code = 0;

    repos_scope(w);
    atomic_store(&w->scope.done, w->plan.items.len - todo);
    atomic_store(&w->scope.total, w->plan.items.len);
    progress_begin(w->archive, w->job->claim, &w->scope);
    for (size_t i = 1; i < count && code == 0; i++) {
        hands[i].work = w;
        code = thread_start(&hands[i].thread, "archive-repo", 0, repos_work, &hands[i], err);
    }
    hands[0].work = w;
    /* The calling thread works too, so the work is done even if no other thread could be
     * started. */
    repos_work(&hands[0]);
    for (size_t i = 1; i < count; i++)
        thread_join(&hands[i].thread);
    return repos_judge(w, err);
}
