/* Listing an account's repositories. Handles accounts that were renamed or deleted at the forge. */
#include "archive/account_int.h"

#include "archive/account_options.h"
#include "archive/schedule.h"
#include "base/clock.h"

/* Notes that the forge could not be asked. */
static int list_failed(struct account_work *w, const struct forge_fault *f, int code,
                       struct err *err)
{
    if (code == ERR_CANCELED)
        return code;
    account_fail(w, f->code, "list", code, err);
    w->error.http_status = f->http_status;
    w->error.request_id = f->request_id;
    w->error.block_reason = f->block_reason;
    if (f->words.len && str_find(w->error.message, f->words) < 0)
        w->error.message = arena_fmt(w->arena, STR_FMT "; the server says: " STR_FMT,
                                     STR_ARG(w->error.message), STR_ARG(f->words));
    w->rests_until_ms = f->rests_until_ms;
    return code;
}

/* --- accounts that the forge does not have under this name --- */

/* Gives the new name of a renamed account the options of the old name, unless the new name is
 * tracked already. This comes before the new name is tracked: if weir is killed in between, the
 * next sync of the old name does it again. */
static int list_hand_on_options(struct account_work *w, const struct archive_account *next,
                                struct err *err)
{
    struct schedule_entry entry;
    int code = schedule_find(w->archive->schedule, w->arena, next, &entry, err);

    return code == ERR_NOT_FOUND ? account_options_copy(w->archive, w->account, next, err) : code;
}

/* The account has another name now. The new name is archived from now on; the objects under the old
 * name stay. */
static int list_renamed(struct account_work *w, struct str login, struct err *err)
{
    struct archive_account next;
    size_t added = 0;
    int code = archive_account_make(&next, w->arena, w->account->host, login, err);

    if (code == 0)
        code = list_hand_on_options(w, &next, err);
    if (code == 0)
        code = account_add(w->archive, &next, 1, NULL, &added, err);
    if (code < 0)
        return account_fail(w, ARCHIVE_STORAGE, "list", code, err);
    log_info(w->archive->log, "archive.account_renamed", log_s("account", w->job->claim->member),
             log_s("to", login));
    err_set(err, ERR_NOT_FOUND, "the account is now " STR_FMT, STR_ARG(login));
    return account_fail(w, ARCHIVE_RENAMED, "list", ERR_NOT_FOUND, err);
}

/* The forge has no account of this name. Looks the account up by its number, to learn whether the
 * account was renamed. */
static int list_missing(struct account_work *w, const struct forge_fault *f, struct err *err)
{
    struct forge_account known = {.id = w->old.account.id, .type = w->old.account.type}, now = {0};
    struct forge_fault fault = {0};
    struct err answer = {0};
    int code = ERR_NOT_FOUND;

    if (known.id.len)
        code = forge_account_by_id(w->session, w->arena, &known, &now, &fault, &answer);
    if (code < 0 && code != ERR_NOT_FOUND)
        return list_failed(w, &fault, code, &answer);
    w->job->hold_ms = SCHEDULE_GONE_MS;
    if (code == 0 && !str_ieq(now.login, w->account->login))
        return list_renamed(w, now.login, err);
    return list_failed(w, f, ERR_NOT_FOUND, err);
}

/* --- the list --- */

/* The repository's clone URL if it differs from the usual URL, which weir makes from the names;
 * otherwise an empty string. */
static struct str list_url(struct account_work *w, const struct forge_repo *r)
{
    struct arena a = {0};
    struct str usual = arena_fmt(&a, STR_FMT "/" STR_FMT "/" STR_FMT ".git",
                                 STR_ARG(w->scope.forge->git), STR_ARG(r->owner), STR_ARG(r->name));
    bool is_usual = str_eq(usual, r->clone_url);

    arena_release(&a);
    return is_usual ? STR_EMPTY : r->clone_url;
}

static int list_take(void *ctx, const struct forge_repo *r, struct err *err)
{
    struct account_work *w = ctx;
    struct plan_listed listed = {.id = r->id,
                                 .name = r->name,
                                 .pushed_at = r->pushed_at,
                                 .url = list_url(w, r),
                                 .size_kb = r->size_kb,
                                 .disabled = r->disabled,
                                 .foreign = r->foreign,
                                 .has_wiki = r->has_wiki};

    return plan_add(&w->plan, &listed, err);
}

static struct forge_page *list_known_pages(struct account_work *w)
{
    struct forge_page *pages = arena_array(w->arena, size_max(w->old.pages.len, 1), sizeof(*pages));

    for (size_t i = 0; pages && i < w->old.pages.len; i++) {
        const struct record_page *p = &w->old.pages.items[i];
        pages[i] = (struct forge_page){p->url, p->etag, (unsigned)p->repos, false};
    }
    return pages;
}

static int list_plan(struct account_work *w, const struct forge_listing *l, struct err *err)
{
    struct plan_page *pages = arena_array(w->arena, size_max(l->page_count, 1), sizeof(*pages));

    if (!pages)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < l->page_count; i++)
        pages[i] = (struct plan_page){l->pages[i].url, l->pages[i].etag, l->pages[i].repos,
                                      l->pages[i].unchanged};
    return plan_end(&w->plan, pages, l->page_count, err);
}

/* Finds the id, the spelling and the type of the account. When the list is unchanged, they are
 * taken from the old record, without a request to the forge. */
static int list_who(struct account_work *w, struct err *err)
{
    struct forge_fault fault = {0};
    const struct record_account *c = &w->old.account;
    int code = 0;

    w->who = (struct forge_account){c->id, c->login, c->type};
    if (!w->unchanged || !w->has_record)
        code = forge_account(w->session, w->arena, w->account->login, &w->who, &fault, err);
    if (code == ERR_NOT_FOUND) /* a renamed account is still found by its number */
        return list_missing(w, &fault, err);
    return code < 0 ? list_failed(w, &fault, code, err) : 0;
}

/* Whether the account of this name is another one than the account whose pages are in the
 * record. */
static bool list_is_of_another(const struct account_work *w, size_t known_count)
{
    return known_count && w->old.account.id.len && !str_eq(w->who.id, w->old.account.id);
}

/* Notes in the record that the list has repositories whose names cannot be part of a key. */
static void list_note_refused(struct account_work *w, const struct forge_listing *l)
{
    struct record_error e = {.at_ms = clock_wall_ms(), .code = ARCHIVE_PROTOCOL};

    if (l->refused == 0)
        return;
    e.message = arena_fmt(w->arena, "%llu entries of the list have names that cannot be stored",
                          (unsigned long long)l->refused);
    archive_record_add_error(&w->errors, &e);
    log_warn(w->archive->log, "archive.names_refused", log_s("account", w->job->claim->member),
             log_u("count", l->refused));
}

/* Lists the repositories, with the ETags of the known pages, and finds out who the account is. */
static int list_with(struct account_work *w, const struct forge_page *known, size_t known_count,
                     struct err *err)
{
    struct forge_listing listing = {0};
    struct forge_fault fault = {0};
    int code;

    plan_release(&w->plan);
    plan_init(&w->plan, &w->old, w->job->claim->started_ms);
    /* The list shows new pushes, but no changes of comments, wikis and releases. */
    bool list_tells =
        w->scope.forge->sees_pushes && !forge_wants_parts(&w->scope.forge->wants) && !w->new_wants;
    w->plan.look_ms = list_tells ? w->archive->look_ms : 0;
    code =
        forge_list(w->session, w->arena, w->account->login,
                   (struct forge_known){known, known_count}, list_take, w, &listing, &fault, err);
    if (code == ERR_NOT_FOUND)
        return list_missing(w, &fault, err);
    if (code < 0)
        return list_failed(w, &fault, code, err);
    w->unchanged = listing.unchanged;
    list_note_refused(w, &listing);
    code = list_plan(w, &listing, err);
    if (code < 0)
        return account_fail(w, ARCHIVE_PROTOCOL, "list", code, err);
    return list_who(w, err);
}

struct str account_wants_text(struct account_work *w, const struct forge_wants *wants)
{
    struct buf text = {0};

    forge_wants_write(&text, wants);
    struct str out = text.len ? arena_str(w->arena, buf_str(&text)) : STR("-");
    buf_release(&text);
    return out;
}

/* Finds the options of this sync: those of the account itself, or otherwise those of its forge. If
 * they are not those of the last full sync, weir asks about every repository, because an unchanged
 * list says nothing about things that were not saved before. */
static int list_options(struct account_work *w, struct err *err)
{
    bool own = false;

    w->forge = *forge_session_forge(w->session);
    w->scope.forge = &w->forge;
    int code = account_options_on(&w->shelf, w->arena, w->account, &w->forge.wants, &own, err);
    if (code < 0)
        return account_fail(w, archive_code_of_storage(code), "list", code, err);
    w->new_wants = w->old.account.wants.len &&
                   !str_eq(w->old.account.wants, account_wants_text(w, &w->forge.wants));
    return 0;
}

int account_list(struct account_work *w, struct err *err)
{
    const struct forge_page *known = list_known_pages(w);
    size_t known_count = w->old.pages.len;
    int code =
        forge_session_open(&w->session, w->archive->forges, w->account->host, w->job->cancel, err);

    if (code < 0)
        return account_fail(w, ARCHIVE_PROTOCOL, "list", code, err);
    code = list_options(w, err);
    if (code < 0)
        return code;
    struct large_hold hold = account_hold(w);
    forge_session_set_hold(w->session, &hold);
    code = list_with(w, known, known_count, err);
    if (code == 0 && list_is_of_another(w, known_count))
        code = list_with(w, NULL, 0, err);
    forge_session_set_hold(w->session, NULL);
    large_release(&hold);
    return code;
}
