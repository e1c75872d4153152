/* Saves the parts beside a bundle: wikis and gists, which are git repositories, and the options of
 * extras.h. */
#include "archive/extras.h"
#include "archive/forge_int.h"
#include "archive/link.h"
#include "archive/repo_int.h"

/* --- wikis and gists --- */

/* Syncs a wiki or a gist: a git repository that belongs to another repository or to the account. */
static int part_sync(struct repo_work *w, struct err *err)
{
    int code = shelf_bucket_init(&w->bucket, w->scope->shelf, err);

    w->is_part = true;
    code = code < 0 ? repo_fail_storage(w, "upload", code, err) : repo_settle(w, err);
    if (code == 0)
        code = repo_connect(w, err);
    if (code == 0)
        code = repo_update(w, err);
    repo_disconnect(w);
    if (w->has_old)
        bundle_old_release(&w->old);
    large_release(&w->own_hold);
    return code;
}

/* The URL of a wiki: that of its repository, with ".wiki.git" in the place of ".git". */
static struct str wiki_url(const struct repo_work *w)
{
    const struct record_repo *r = &w->item->next;
    struct str url = r->url;

    if (url.len == 0)
        return arena_fmt(w->arena, STR_FMT "/" STR_FMT "/" STR_FMT ".wiki.git",
                         STR_ARG(w->scope->forge->git), STR_ARG(w->scope->login), STR_ARG(r->name));
    if (str_ends(url, STR(".git")))
        url.len -= STR(".git").len;
    return arena_fmt(w->arena, STR_FMT ".wiki.git", STR_ARG(url));
}

/* Whether the server says that the wiki does not exist. Servers answer requests without a token
 * with 401 or 403 for things that do not exist. For requests with a token these statuses are
 * refusals. */
static bool wiki_is_absent(const struct repo_work *wiki)
{
    enum archive_code outcome = wiki->fault.error.code;

    return outcome == ARCHIVE_GONE || (outcome == ARCHIVE_AUTH && wiki->scope->forge->tokens == 0);
}

int repo_wiki(struct repo_work *w, struct err *err)
{
    struct plan_item item = {.step = PLAN_SYNC};
    struct repo_call call = *w->call;
    struct repo_work wiki;

    if (!w->scope->forge->wants.wikis || w->item->foreign)
        return 0;
    repo_disconnect(w);
    large_release(&w->own_hold); /* the wiki waits for a seat, and has a hold of its own */
    item.next.id = w->item->next.id;
    item.next.name = arena_fmt(w->arena, STR_FMT "@wiki", STR_ARG(w->item->next.name));
    item.next.url = wiki_url(w);
    call.item = &item;
    repo_work_init(&wiki, &call);
    int code = part_sync(&wiki, err);
    if (code < 0 && code != ERR_CANCELED && wiki_is_absent(&wiki))
        return 0; /* objects of earlier syncs stay */
    if (code < 0)
        w->fault = wiki.fault;
    return code;
}

int repo_gist(const struct repo_call *c, struct str id, struct str url, struct repo_fault *fault,
              struct err *err)
{
    struct plan_item item = {.step = PLAN_SYNC};
    struct repo_call call = *c;
    struct repo_work gist;

    item.next.id = id;
    item.next.name = arena_fmt(c->arena, "@gists/" STR_FMT, STR_ARG(id));
    item.next.url = url;
    call.item = &item;
    repo_work_init(&gist, &call);
    gist.no_token = !link_same_origin(url, c->scope->forge->git);
    int code = part_sync(&gist, err);
    *fault = gist.fault;
    /* If a gist was deleted after it was listed, this is not a failure. A refusal is a failure. */
    return code < 0 && code != ERR_CANCELED && gist.fault.error.code == ARCHIVE_GONE ? 0 : code;
}

/* --- options --- */

static int extras_run(struct repo_work *w, struct extras *x, struct extras_state *state,
                      struct err *err)
{
    const struct forge_wants *wants = &w->scope->forge->wants;
    struct forge_fault fault = {0};
    int code = extras_lists(x, wants, state, &fault, err);

    if (code < 0 && code != ERR_CANCELED)
        return repo_fail_forge(w, "list", &fault, code, err);
    if (code == 0 && wants->lfs) {
        code = extras_lfs(x, w->remote, state, &fault, err);
        if (code < 0 && code != ERR_CANCELED)
            return repo_fail_forge(w, "fetch", &fault, code, err);
    }
    return code;
}

/* Uses a session of its own, because other threads use the account's session. */
int repo_extras(struct repo_work *w, struct err *err)
{
    const struct forge_wants *wants = &w->scope->forge->wants;
    struct archive *a = w->scope->archive;
    struct extras x = {.shelf = w->scope->shelf,
                       .account = w->scope->account,
                       .client = a->client,
                       .arena = w->arena,
                       .scratch = a->scratch,
                       .scratch_max = a->scratch_max,
                       .file_max = a->check.limits.pack ? a->check.limits.pack : UINT64_MAX,
                       .timeout_ms = a->timeout_ms,
                       .owner = w->scope->login,
                       .repo = w->item->next.name,
                       .id = w->item->next.id,
                       .now_ms = w->scope->now_ms,
                       .cancel = w->scope->cancel,
                       .hold = w->hold,
                       .log = a->log};
    struct extras_state state;
    struct buf text = BUF_INIT(EXTRA_STATE_MAX);

    if (!wants->issues && !wants->pulls && !wants->releases && !wants->lfs)
        return 0;
    extras_state_read(&state, w->arena, w->item->next.extra);
    int code = forge_session_open(&x.session, a->forges, w->scope->account->host, x.cancel, err);
    if (code < 0)
        return repo_fail(w, ARCHIVE_PROTOCOL, "list", code, err);
    forge_session_set_hold(x.session, w->hold);
    code = extras_run(w, &x, &state, err);
    /* The state is stored even after a failure, so that the next sync does not read the same lists
     * again. */
    extras_state_write(&text, &state);
    if (buf_error(&text) == 0)
        w->item->next.extra = repo_keep(w, buf_str(&text));
    buf_release(&text);
    forge_session_close(x.session);
    large_release(&w->own_hold);
    if (code == 0 && x.too_big[0])
        code = repo_fail(w, ARCHIVE_TOO_BIG, "fetch", err_set(err, ERR_TOO_LARGE, "%s", x.too_big),
                         err);
    return code;
}
