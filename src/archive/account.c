/* The steps of an account's sync. */
#include "archive/account_int.h"

#include "archive/account_options.h"
#include "archive/error_object.h"
#include "archive/forges.h"
#include "archive/progress.h"
#include "archive/satellites.h"
#include "archive/schedule.h"
#include "base/clock.h"
#include "coord/lock.h"

enum { ADDED_TEXT_MAX = 256 };

/* --- one sync --- */

int account_fail(struct account_work *w, enum archive_code outcome, const char *stage, int code,
                 const struct err *err)
{
    if (w->has_error)
        return code;
    w->has_error = true;
    w->error = (struct archive_error){
        .at_ms = clock_wall_ms(),
        .code = outcome,
        .stage = stage,
        .message = arena_str(w->arena, str_z(err->text)),
        .worker = str_z(w->archive->worker),
        .last_good_ms = w->old.account.last_full_sync_ms,
    };
    return code;
}

static struct str account_key(const struct account_work *w, enum archive_kind kind)
{
    return archive_key(w->account, w->arena, kind, STR_EMPTY);
}

/* Reads the record. This sync replaces a damaged record; it then has no old list to compare the
 * forge's list with. */
static int account_read_record(struct account_work *w, struct err *err)
{
    struct shelf_body body = {0};
    int code = shelf_get(&w->shelf, w->arena, account_key(w, ARCHIVE_RECORD), NULL, &body, err);

    if (code == ERR_NOT_FOUND)
        return 0;
    if (code < 0)
        return code;
    w->record_etag = body.info.etag;
    code = archive_record_read(&w->old, body.body, err);
    shelf_body_close(&body);
    w->has_record = code == 0;
    if (code == ERR_CORRUPT) {
        log_warn(w->archive->log, "archive.record_damaged", log_s("account", w->job->claim->member),
                 log_z("why", err->text));
        archive_record_release(&w->old);
        archive_record_init(&w->old);
        code = 0;
    }
    w->added_ms = w->old.account.added_ms;
    return code;
}

/* A record that was written under a later fence belongs to a later claim, so this sync ends
 * (A5). */
static int account_check_fence(struct account_work *w, struct err *err)
{
    struct schedule_claim *c = w->job->claim;
    struct err ignored = {0};

    if (w->old.account.fence <= c->fence)
        return 0;
    /* No claim can have had a fence this large, so this fence is ignored. If another sync writes
     * the record meanwhile, the record's ETag still stops this sync. */
    if (w->old.account.fence > SCHEDULE_FENCE_MAX) {
        log_warn(w->archive->log, "archive.fence_ignored", log_s("account", c->member),
                 log_u("fence", w->old.account.fence));
        return 0;
    }
    if (schedule_raise_fence(c->schedule, w->old.account.fence, &ignored) < 0)
        log_warn(w->archive->log, "archive.fence", log_z("why", ignored.text));
    return err_set(err, ERR_BUSY, "the record was written under a later fence");
}

/* Reads the time at which the account was added from the `.new` object. */
static int account_read_added(struct account_work *w, struct err *err)
{
    struct buf text = BUF_INIT(ADDED_TEXT_MAX);
    struct object_info info;
    int code;

    if (w->has_record)
        return 0;
    code = shelf_read(&w->shelf, w->arena, account_key(w, ARCHIVE_ADDED), ADDED_TEXT_MAX, &text,
                      &info, err);
    if (code == 0 && clock_parse_iso(str_head(buf_str(&text), CLOCK_ISO_LEN), &w->added_ms) < 0)
        w->added_ms = info.modified_ms;
    buf_release(&text);
    return code == ERR_NOT_FOUND || code == ERR_TOO_LARGE ? 0 : code;
}

static int account_open(struct account_work *w, struct err *err)
{
    struct schedule_claim *c = w->job->claim;
    int code =
        shelf_open_claimed(&w->shelf, w->archive->satellites, w->arena, w->account, c->lock, err);

    if (code < 0)
        return account_fail(w, archive_code_of_storage(code), "upload", code, err);
    w->shelf.fence = c->fence;
    code = account_read_record(w, err);
    if (code == 0)
        code = account_check_fence(w, err);
    if (code == 0)
        code = account_read_added(w, err);
    /* This sync has the account's lock and has begun no upload. So every unfinished upload in the
     * account's folder was left by a worker that died or lost the lock. */
    if (code == 0)
        code = shelf_abort_uploads(&w->shelf, 0, NULL, err);
    return code < 0 ? account_fail(w, archive_code_of_storage(code), "upload", code, err) : 0;
}

/* Ends the sync and returns its outcome (archive/runner.h). A failure is logged and counted, unless
 * the sync was canceled or has lost the account's lock. */
static enum runner_outcome account_end(struct account_work *w, int code, struct err *err)
{
    const struct log *log = w->archive->log;
    struct str member = w->job->claim->member;
    struct err said = {0};

    if (code == 0 && !w->has_error) {
        atomic_fetch_add(&w->archive->numbers.accounts[ARCHIVE_OK], 1);
        return RUNNER_FULL;
    }
    if (code == ERR_CANCELED || !lock_held(w->job->claim->lock) ||
        (w->job->cancel && atomic_load(w->job->cancel)))
        return RUNNER_BACK;
    if (!w->has_error)
        account_fail(w, archive_code_of_storage(code), "upload", code, err);
    log_info(log, "archive.sync_failed", log_s("account", member),
             log_z("code", archive_codes[w->error.code].name), log_z("stage", w->error.stage),
             log_s("why", w->error.message));
    atomic_fetch_add(&w->archive->numbers.accounts[w->error.code], 1);
    if (w->shelf.satellites && account_say_error(w, &said) < 0)
        log_warn(log, "archive.error_not_written", log_s("account", member),
                 log_z("why", said.text));
    return w->rests_until_ms > clock_wall_ms() ? RUNNER_BACK : RUNNER_FAILED;
}

static int account_run(struct account_work *w, struct err *err)
{
    int code = account_open(w, err);

    if (code == 0)
        code = account_list(w, err);
    if (code == 0)
        code = account_find_lost(w, err);
    if (code == 0)
        code = account_repos(w, err);
    if (code == 0 && !w->has_error)
        code = account_gists(w, err);
    if (code == 0 && !w->has_error)
        code = account_commit(w, err);
    return code;
}

enum runner_outcome account_sync(void *ctx, struct runner_job *job)
{
    struct account_work w = {
        .archive = ctx, .job = job, .account = &job->claim->account, .arena = job->arena};
    struct err err = {0};
    enum runner_outcome outcome;
    int code;

    archive_record_init(&w.old);
    archive_record_init(&w.errors);
    mutex_init(&w.lock, "archive sync");
    cond_init(&w.asked);
    plan_init(&w.plan, &w.old, job->claim->started_ms);
    code = account_run(&w, &err);
    outcome = account_end(&w, code, &err);
    progress_end(w.archive, job->claim);
    forge_session_close(w.session);
    shelf_close(&w.shelf);
    plan_release(&w.plan);
    cond_release(&w.asked);
    mutex_release(&w.lock);
    archive_record_release(&w.errors);
    archive_record_release(&w.old);
    return outcome;
}

/* --- adding accounts --- */

static int announce_on(struct shelf *s, struct arena *a, const struct archive_account *c,
                       struct err *err)
{
    struct object_conditions none = {.if_none_match = STR("*")};
    char at[CLOCK_ISO_LEN + 2];
    struct object_info info;
    int64_t now_ms = clock_wall_ms();
    int code = shelf_remove(s, a, archive_key(c, a, ARCHIVE_REMOVED, STR_EMPTY), NULL, err);

    if (code == 0)
        code = shelf_head(s, a, archive_key(c, a, ARCHIVE_RECORD, STR_EMPTY), &info, err);
    if (code != ERR_NOT_FOUND)
        return code;
    clock_iso(now_ms, at);
    at[CLOCK_ISO_LEN] = '\n';
    code = shelf_put_bytes(s, a, archive_key(c, a, ARCHIVE_ADDED, STR_EMPTY),
                           str_n(at, CLOCK_ISO_LEN + 1), &none, "text/plain", now_ms, NULL, err);
    return code == ERR_PRECONDITION ? 0 : code;
}

int account_announce(void *ctx, const struct archive_account *c, struct err *err)
{
    struct archive *x = ctx;
    struct arena a = {0};
    struct shelf s = {0};
    int code = shelf_open(&s, x->satellites, &a, c, err);

    if (code == 0)
        code = announce_on(&s, &a, c, err);
    shelf_close(&s);
    arena_release(&a);
    return code;
}

static int account_forge_is_known(struct archive *x, const struct archive_account *c,
                                  struct err *err)
{
    struct arena a = {0};
    struct forge forge;
    int code = forges_find(x->forges, &a, c->host, &forge, err);

    if (code == ERR_NOT_FOUND)
        err_set(err, code,
                "weir does not know the forge '" STR_FMT
                "'; add it with `weir archive forge add " STR_FMT " --kind KIND`",
                STR_ARG(c->host), STR_ARG(c->host));
    arena_release(&a);
    return code;
}

int account_add(struct archive *x, const struct archive_account *accounts, size_t count,
                const struct forge_wants *wants, size_t *added, struct err *err)
{
    int code = 0;

    *added = 0;
    for (size_t i = 0; i < count && code == 0; i++)
        code = account_forge_is_known(x, &accounts[i], err);
    for (size_t i = 0; i < count && code == 0; i++)
        code = account_announce(x, &accounts[i], err);
    /* The options are there before the first sync can begin. */
    for (size_t i = 0; wants && i < count && code == 0; i++)
        code = account_options_set(x, &accounts[i], wants, err);
    for (size_t i = 0; i < count && code == 0; i += SCHEDULE_BATCH_MAX) {
        size_t new = 0;
        code = schedule_add(x->schedule, accounts + i, size_min(count - i, SCHEDULE_BATCH_MAX),
                            &new, err);
        *added += new;
    }
    return code;
}

/* --- removing accounts --- */

int account_remove(struct archive *x, const struct archive_account *c, struct err *err)
{
    struct arena a = {0};
    struct shelf s = {0};
    struct schedule_entry entry;
    int code = schedule_find(x->schedule, &a, c, &entry, err);

    if (code == 0)
        code = shelf_open(&s, x->satellites, &a, c, err);
    if (code == 0)
        code = shelf_put_bytes(&s, &a, archive_key(c, &a, ARCHIVE_REMOVED, STR_EMPTY), STR_EMPTY,
                               NULL, "text/plain", 0, NULL, err);
    if (code == 0)
        code = shelf_remove(&s, &a, archive_key(c, &a, ARCHIVE_ADDED, STR_EMPTY), NULL, err);
    if (code == 0)
        code = schedule_remove(x->schedule, c, err);
    shelf_close(&s);
    arena_release(&a);
    return code;
}
