/* The end of an account's sync: writes the record, or an `.error` object. */
#include "archive/account_int.h"

#include "archive/error_object.h"
#include "base/clock.h"

/* --- the record --- */

static void commit_count(struct archive_record *r)
{
    vec_each (&r->repos, const struct record_repo *, p) {
        r->account.repos_listed += p->listed;
        r->account.repos_stored += p->refs_digest.len > 0;
        r->account.bytes += p->bytes;
    }
}

/* Fills the next record. Its strings are borrowed from the plan and the old record. */
static void commit_fill(struct account_work *w, struct archive_record *r)
{
    const struct schedule_claim *c = w->job->claim;

    r->account = (struct record_account){.login = w->who.login,
                                         .id = w->who.id,
                                         .type = w->who.type,
                                         .added_ms = w->added_ms,
                                         .last_full_sync_ms = c->started_ms,
                                         .gists_ms = w->gists_ms,
                                         .wants = account_wants_text(w, &w->forge.wants),
                                         .fence = c->fence,
                                         .epoch = w->shelf.epoch};
    vec_each (&w->plan.pages, const struct record_page *, p)
        vec_push(&r->pages, *p);
    vec_each (&w->old.errors, const struct record_error *, e)
        archive_record_add_error(r, e);
    vec_each (&w->errors.errors, const struct record_error *, e)
        archive_record_add_error(r, e);
    vec_grow(&r->repos, w->plan.items.len);
    vec_each (&w->plan.items, const struct plan_item *, i) {
        if (i->next.listed)
            vec_push(&r->repos, i->next);
    }
    vec_each (&w->plan.items, const struct plan_item *, i) {
        if (!i->next.listed)
            vec_push(&r->repos, i->next);
    }
    commit_count(r);
}

static int commit_put(struct account_work *w, const struct archive_record *r, struct err *err)
{
    struct http_header headers[] = {
        {STR("content-type"), STR("application/x-ndjson")},
        shelf_mtime(w->arena, r->account.last_full_sync_ms),
    };
    struct put_options o = {.meta = {.headers = headers, .header_count = ARRAY_SIZE(headers)}};
    struct put_result result = {0};
    struct record_text text;
    int code;

    if (w->record_etag.len)
        o.conditions.if_match = arena_fmt(w->arena, "\"" STR_FMT "\"", STR_ARG(w->record_etag));
    else
        o.conditions.if_none_match = STR("*");
    archive_record_text_init(&text, r);
    code =
        shelf_put(&w->shelf, w->arena, archive_key(w->account, w->arena, ARCHIVE_RECORD, STR_EMPTY),
                  &text.reader, archive_record_text_size(r), &o, &result, err);
    archive_record_text_release(&text);
    return code;
}

/* Removes the objects that the new record makes untrue: `.new` and `.error`. */
static int commit_tidy(struct account_work *w, struct err *err)
{
    int code = shelf_remove(&w->shelf, w->arena,
                            archive_key(w->account, w->arena, ARCHIVE_ACCOUNT_ERROR, STR_EMPTY),
                            NULL, err);

    /* An earlier sync may have been killed between writing the first record and this step. Then the
     * `.new` object is still there, and the account's score still says that it was never synced. */
    if (code == 0 && (!w->has_record || w->job->claim->score_ms < 0))
        code = shelf_remove(&w->shelf, w->arena,
                            archive_key(w->account, w->arena, ARCHIVE_ADDED, STR_EMPTY), NULL, err);
    return code;
}

int account_commit(struct account_work *w, struct err *err)
{
    struct archive_record r;
    int code;

    archive_record_init(&r);
    commit_fill(w, &r);
    code = commit_put(w, &r, err);
    if (code == 0)
        code = commit_tidy(w, err);
    if (code == 0)
        log_info(w->archive->log, "archive.synced", log_s("account", w->job->claim->member),
                 log_u("repos", r.account.repos_stored),
                 log_u("bytes", atomic_load(&w->scope.bytes)));
    archive_record_release(&r);
    return code < 0 ? account_fail(w, archive_code_of_storage(code), "upload", code, err) : 0;
}

/* --- the error --- */

int account_say_error(struct account_work *w, struct err *err)
{
    return error_object_put(&w->shelf, w->arena,
                            archive_key(w->account, w->arena, ARCHIVE_ACCOUNT_ERROR, STR_EMPTY),
                            &w->error, err);
}
