/* The `.error` objects of repositories. */
#include "archive/error_object.h"
#include "archive/repo_int.h"

#include "base/clock.h"

/* --- noting why a repository failed --- */

int repo_fail(struct repo_work *w, enum archive_code outcome, const char *stage, int code,
              const struct err *err)
{
    w->fault.error = (struct archive_error){
        .at_ms = clock_wall_ms(),
        .code = outcome,
        .stage = stage,
        .message = arena_str(w->arena, str_z(err->text)),
        .worker = str_z(w->scope->archive->worker),
    };
    return code;
}

int repo_fail_storage(struct repo_work *w, const char *stage, int code, const struct err *err)
{
    return repo_fail(w, archive_code_of_storage(code), stage, code, err);
}

/* Joins weir's message and the server's message. */
static struct str repo_words(struct repo_work *w, const struct err *err, struct str words)
{
    struct str text = str_z(err->text);

    if (words.len == 0 || str_find(text, words) >= 0)
        return arena_str(w->arena, text);
    return arena_fmt(w->arena, STR_FMT "; the server says: " STR_FMT, STR_ARG(text),
                     STR_ARG(words));
}

int repo_fail_fetch(struct repo_work *w, const char *stage, const struct fetch_fault *f, int code,
                    const struct err *err)
{
    repo_fail(w, f->code, stage, code, err);
    w->fault.error.message = repo_words(w, err, str_z(f->words));
    w->fault.error.http_status = f->http_status;
    return code;
}

int repo_fail_forge(struct repo_work *w, const char *stage, const struct forge_fault *f, int code,
                    const struct err *err)
{
    repo_fail(w, f->code, stage, code, err);
    w->fault.error.message = repo_words(w, err, f->words);
    w->fault.error.http_status = f->http_status;
    w->fault.error.request_id = f->request_id;
    w->fault.error.block_reason = f->block_reason;
    w->fault.rests_until_ms = f->rests_until_ms;
    return code;
}

/* --- the objects --- */

int repo_error_put(struct repo_work *w, struct str name, struct err *err)
{
    w->fault.error.last_good_ms = w->item->old ? w->item->old->looked_ms : 0;
    return error_object_put(w->scope->shelf, w->arena, repo_key(w, ARCHIVE_REPO_ERROR, name),
                            &w->fault.error, err);
}

int repo_error_remove(struct repo_work *w, struct err *err)
{
    return shelf_remove(w->scope->shelf, w->arena,
                        repo_key(w, ARCHIVE_REPO_ERROR, w->item->next.name), NULL, err);
}
