/* Sessions with forges: accounts, listings and repositories. */
#include "archive/forge.h"
#include "archive/forge_int.h"
#include "archive/link.h"
#include "archive/names.h"

#include "base/clock.h"
#include "base/hash.h"

#include <stdlib.h>
#include <time.h>

const char *const forge_kind_names[FORGE_KINDS + 1] = {
    [FORGE_GITHUB] = "github", [FORGE_GITLAB] = "gitlab", [FORGE_GITEA] = "gitea", NULL};

enum { FORGE_ETAG_MAX = 256 };

/* --- options --- */

static const struct {
    const char *name;
    size_t offset;
} forge_want_rows[] = {
    {"zip", offsetof(struct forge_wants, zip)},
    {"wikis", offsetof(struct forge_wants, wikis)},
    {"gists", offsetof(struct forge_wants, gists)},
    {"lfs", offsetof(struct forge_wants, lfs)},
    {"issues", offsetof(struct forge_wants, issues)},
    {"pulls", offsetof(struct forge_wants, pulls)},
    {"releases", offsetof(struct forge_wants, releases)},
};

int forge_wants_read(struct forge_wants *out, struct str text, struct err *err)
{
    struct forge_wants wants = {0};
    struct str word;

    while (str_token(&text, ", ", &word)) {
        size_t i = 0;
        while (i < ARRAY_SIZE(forge_want_rows) && !str_eq(word, str_z(forge_want_rows[i].name)))
            i++;
        if (i == ARRAY_SIZE(forge_want_rows))
            return err_set(err, ERR_INVALID,
                           "'" STR_FMT "' is not an option; the options are zip, wikis, gists, "
                           "lfs, issues, pulls and releases",
                           STR_ARG(word));
        *(bool *)((char *)&wants + forge_want_rows[i].offset) = true;
    }
    *out = wants;
    return 0;
}

void forge_wants_write(struct buf *out, const struct forge_wants *w)
{
    bool first = true;

    for (size_t i = 0; i < ARRAY_SIZE(forge_want_rows); i++) {
        if (!*(const bool *)((const char *)w + forge_want_rows[i].offset))
            continue;
        buf_appendf(out, "%s%s", first ? "" : ",", forge_want_rows[i].name);
        first = false;
    }
}

bool forge_wants_parts(const struct forge_wants *w)
{
    return w->wikis || w->issues || w->pulls || w->releases || w->lfs;
}

/* --- sessions --- */

int forge_session_open(struct forge_session **out, struct forges *f, struct str host,
                       const _Atomic(bool) *cancel, struct err *err)
{
    struct forge_entry *entry = forges_get(f, host);

    if (!entry)
        return err_set(err, ERR_NOT_FOUND,
                       STR_FMT " is not a forge that weir knows; weir archive forge add " STR_FMT
                               " adds it",
                       STR_ARG(host), STR_ARG(host));
    struct forge_session *s = xzalloc(sizeof(*s));
    s->forges = f;
    s->entry = entry;
    s->row = forge_row(entry->forge.kind);
    s->cancel = cancel;
    s->token_ids = arena_array(&s->arena, entry->tokens.len + 1, sizeof(*s->token_ids));
    for (size_t i = 0; s->token_ids && i < entry->tokens.len; i++)
        s->token_ids[i] = entry->tokens.items[i].id;
    if (arena_error(&s->arena) < 0) {
        forge_session_close(s);
        return err_code(err, ERR_NO_MEMORY);
    }
    *out = s;
    return 0;
}

void forge_session_close(struct forge_session *s)
{
    if (!s)
        return;
    forge_entry_unref(s->entry);
    arena_release(&s->arena);
    free(s);
}

const struct forge *forge_session_forge(const struct forge_session *s)
{
    return &s->entry->forge;
}

void forge_session_set_hold(struct forge_session *s, struct large_hold *hold)
{
    s->hold = hold;
    s->page_reached = 0;
}

unsigned forge_session_requests(const struct forge_session *s)
{
    return s->requests;
}

/* --- questions --- */

struct str forge_path(struct arena *a, const char *format, struct str value)
{
    const char *mark = strstr(format, "%s");
    struct buf out = {0};

    BUG_ON(!mark);
    buf_append(&out, format, (size_t)(mark - format));
    url_encode(&out, value, false);
    buf_append_z(&out, mark + 2);
    struct str path = arena_str(a, buf_str(&out));
    buf_release(&out);
    return path;
}

int forge_ask_object(struct forge_session *s, struct arena *a, struct str path,
                     const struct forge_fields *fields, void *out, struct forge_fault *fault,
                     struct err *err)
{
    struct buf body = BUF_INIT(FORGE_ANSWER_BYTES_MAX);
    struct forge_answer answer;
    struct scan scan;
    int code =
        forge_ask(s, a, &(struct forge_ask){.url = path, .body = &body}, &answer, fault, err);

    if (code == 0) {
        scan_init(&scan, buf_str(&body));
        forge_read_object(&scan, a, fields, out);
        if (scan_end(&scan, err) < 0)
            code = forge_malformed(fault, ERR_PARSE, err);
    }
    buf_release(&body);
    return code;
}

/* --- accounts --- */

/* Remembers the account, so that a listing that follows need not ask for it again. */
static void forge_remember(struct forge_session *s, struct str login, const struct forge_account *c)
{
    s->account = (struct forge_account){.id = arena_str(&s->arena, c->id),
                                        .login = arena_str(&s->arena, login),
                                        .type = arena_str(&s->arena, c->type)};
}

/* Whether the login in the forge's answer is a valid login of the archive. */
static int forge_check_account(const struct forge_session *s, const struct forge_account *c,
                               struct forge_fault *fault, struct err *err)
{
    struct arena a = {0};
    struct archive_account account;
    int code = archive_account_make(&account, &a, s->entry->forge.host, c->login, err);

    /* The first line of a record, which has the type, may have only 4 KiB. */
    if (code == 0 && c->type.len > FORGE_TYPE_MAX)
        code = err_set(err, ERR_PARSE, "the type of the account is too long");
    arena_release(&a);
    return code < 0 ? forge_malformed(fault, ERR_PARSE, err) : 0;
}

int forge_account(struct forge_session *s, struct arena *a, struct str login,
                  struct forge_account *out, struct forge_fault *fault, struct err *err)
{
    struct forge_account found = {0};

    if (s->account.id.len && str_ieq(s->account.login, login)) {
        *fault = (struct forge_fault){0};
        *out = s->account;
        return 0;
    }
    int code = s->row->account(s, a, login, NULL, &found, fault, err);
    if (code == 0)
        code = forge_check_account(s, &found, fault, err);
    if (code == 0) {
        forge_remember(s, found.login, &found);
        *out = found;
    }
    return code;
}

int forge_account_by_id(struct forge_session *s, struct arena *a, const struct forge_account *known,
                        struct forge_account *out, struct forge_fault *fault, struct err *err)
{
    struct forge_account found = {0};
    int code = s->row->account(s, a, STR_EMPTY, known, &found, fault, err);

    if (code == 0)
        code = forge_check_account(s, &found, fault, err);
    if (code == 0)
        *out = found;
    return code;
}

/* --- pages --- */

void forge_walk_init(struct forge_walk *w, struct forge_session *s, struct arena *a,
                     struct str first)
{
    struct buf url = {0};

    *w = (struct forge_walk){.session = s, .arena = a};
    forge_url(s, first, &url);
    w->next = arena_str(a, buf_str(&url));
    buf_release(&url);
}

void forge_walk_release(struct forge_walk *w)
{
    vec_release(&w->seen);
}

/* Counts a page that weir is about to request. Fails if weir has requested the page before, or if
 * there are too many pages. */
static int forge_walk_enter(struct forge_walk *w, struct forge_fault *fault, struct err *err)
{
    uint64_t hash = hash_xxh3(w->next, 0);

    if (w->page == FORGE_PAGES_MAX)
        return forge_fail(fault, ARCHIVE_PROTOCOL, err, "the list has more than %d pages",
                          FORGE_PAGES_MAX);
    for (size_t i = 0; i < w->seen.len; i++)
        if (w->seen.items[i] == hash)
            return forge_fail(fault, ARCHIVE_PROTOCOL, err,
                              "the pages of the list lead in a circle");
    vec_push(&w->seen, hash);
    w->page++;
    return 0;
}

/* The URL of the page that follows an unchanged page. GitHub sends no Link with 304. If no next
 * page is known but the unchanged page was full, a new page may follow it, so weir asks for that
 * page. */
static int forge_next_unchanged(struct forge_walk *w, const struct forge_page *known,
                                struct str known_next, struct buf *next)
{
    if (known_next.len)
        buf_append_str(next, known_next);
    else if (known && known->repos >= w->session->row->per_page)
        return link_page_after(next, known->url);
    return 0;
}

/* Finds the URL of the next page. It must be on the API's own origin. */
static int forge_walk_link(struct forge_walk *w, const struct forge_answer *answer,
                           const struct forge_page *known, struct str known_next,
                           struct forge_fault *fault, struct err *err)
{
    struct buf next = BUF_INIT(FORGE_URL_MAX);
    struct str link;
    int code = link_next(answer->link, &link);

    if (code == 0 && link.len)
        buf_append_str(&next, link);
    else if (code == 0 && answer->status == 304)
        code = forge_next_unchanged(w, known, known_next, &next);
    if (code == 0)
        code = buf_error(&next);
    if (code < 0)
        code = forge_fail(fault, ARCHIVE_PROTOCOL, err, "the header Link is malformed");
    else if (next.len && !link_same_origin(buf_str(&next), w->session->entry->forge.api))
        code = forge_fail(fault, ARCHIVE_REDIRECT, err, "the header Link leads off the API's host");
    w->next = code == 0 ? arena_str(w->arena, buf_str(&next)) : STR_EMPTY;
    buf_release(&next);
    return code;
}

int forge_walk_step(struct forge_walk *w, const struct forge_page *known, struct str known_next,
                    struct buf *body, struct forge_page *page, struct forge_fault *fault,
                    struct err *err)
{
    struct arena a = {0};
    struct forge_answer answer = {0};
    struct str url = w->next;
    struct forge_ask ask = {.url = url, .etag = known ? known->etag : STR_EMPTY, .body = body};
    struct forge_fault met = {0};
    int code = forge_walk_enter(w, fault, err);

    if (code < 0)
        return code;
    code = forge_ask(w->session, &a, &ask, &answer, &met, err);
    /* Page 1 was found, so the list exists, but it is incomplete. */
    if (code == ERR_NOT_FOUND && w->page > 1)
        code = forge_fail(&met, ARCHIVE_PROTOCOL, err, "page %u of a list is not found",
                          (unsigned)w->page);
    if (code == 0 && !w->date_ms)
        w->date_ms = answer.date_ms;
    if (code == 0)
        code = forge_walk_link(w, &answer, known, known_next, &met, err);
    if (code == 0) {
        bool keeps =
            answer.etag.len <= FORGE_ETAG_MAX && http_field_is_valid(STR("ETag"), answer.etag);
        *page = (struct forge_page){.url = url,
                                    .etag = keeps ? arena_str(w->arena, answer.etag) : STR_EMPTY};
        if (answer.status == 304 && known) {
            page->etag = arena_str(w->arena, known->etag);
            page->repos = known->repos;
            page->unchanged = true;
        }
    }
    met.words = arena_str(w->arena, met.words);
    met.request_id = arena_str(w->arena, met.request_id);
    met.block_reason = arena_str(w->arena, met.block_reason);
    *fault = met;
    arena_release(&a);
    if (code == 0 && arena_error(w->arena) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    return code;
}

/* --- listings --- */

struct forge_lister {
    struct forge_session *session;
    forge_repo_fn *each;
    void *ctx;
    struct forge_listing *out;
    VEC(struct forge_page) pages;
};

/* Calls each() for the repositories of a page. */
static int forge_list_page(struct forge_lister *l, struct str body, struct forge_page *page,
                           struct forge_fault *fault, struct err *err)
{
    struct arena a = ARENA_INIT(MIB);
    struct scan scan;
    bool refused = false;
    unsigned entries = 0;
    int code = 0;

    scan_init(&scan, body);
    scan_open(&scan, '[');
    while (code == 0 && scan_more(&scan)) {
        struct forge_repo repo;
        arena_reset(&a);
        bool stored =
            forge_read_repo(&scan, &a, &l->session->entry->forge, l->session->row, &repo) == 0;
        if (!scan.wrong && ++entries > l->session->row->per_page)
            scan_fail(&scan, "a page has more entries than weir has asked for");
        if (scan.wrong)
            break;
        repo.page = (unsigned)l->pages.len;
        if (stored)
            code = l->each(l->ctx, &repo, err);
        page->repos += stored;
        l->out->refused += !stored;
        refused |= !stored;
    }
    if (code == 0 && scan_end(&scan, err) < 0)
        code = forge_malformed(fault, ERR_PARSE, err);
    /* Without an ETag the page is read in full each time. An answer 304 would not allow to count
     * the refused entries. */
    if (refused)
        page->etag = STR_EMPTY;
    arena_release(&a);
    return code;
}

/* Whether all pages are unchanged. A further empty page at the end is not a change. */
static bool forge_list_unchanged(const struct forge_lister *l, size_t known_count)
{
    size_t count = l->pages.len;

    if (count > 1 && count - 1 == known_count && !l->pages.items[count - 1].repos)
        count--;
    if (count != known_count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!l->pages.items[i].unchanged)
            return false;
    return true;
}

static int forge_list_pages(struct forge_lister *l, struct forge_walk *w,
                            const struct forge_page *known, size_t known_count,
                            struct forge_fault *fault, struct err *err)
{
    struct buf body = BUF_INIT(FORGE_PAGE_BYTES_MAX);
    int code = 0;

    while (code == 0 && w->next.len) {
        struct forge_page page = {0};
        size_t i = l->pages.len;
        bool same = i < known_count && str_eq(known[i].url, w->next);
        struct str follows = same && i + 1 < known_count ? known[i + 1].url : STR_EMPTY;
        code = forge_walk_step(w, same ? &known[i] : NULL, follows, &body, &page, fault, err);
        if (code == 0 && !page.unchanged)
            code = forge_list_page(l, buf_str(&body), &page, fault, err);
        if (code == 0)
            vec_push(&l->pages, page);
        l->out->count += page.repos;
    }
    buf_release(&body);
    return code;
}

/* Finds the URL of the first page. Uses the URL of the last listing if the path would need a
 * request to the forge. */
static int forge_list_first(struct forge_session *s, struct arena *a, struct str login,
                            struct forge_known known, struct buf *out, struct forge_fault *fault,
                            struct err *err)
{
    if (known.count && s->entry->forge.kind == FORGE_GITLAB &&
        str_starts(known.pages[0].url, s->entry->forge.api)) {
        buf_append_str(out, known.pages[0].url);
        return 0;
    }
    return s->row->list_path(s, a, login, out, fault, err);
}

int forge_list(struct forge_session *s, struct arena *a, struct str login, struct forge_known known,
               forge_repo_fn *each, void *ctx, struct forge_listing *out, struct forge_fault *fault,
               struct err *err)
{
    struct forge_lister l = {.session = s, .each = each, .ctx = ctx, .out = out};
    struct buf first = BUF_INIT(FORGE_URL_MAX);
    struct forge_walk w;
    int code;

    *out = (struct forge_listing){0};
    *fault = (struct forge_fault){0};
    code = forge_list_first(s, a, login, known, &first, fault, err);
    if (code == 0)
        code = buf_error(&first);
    if (code == 0) {
        forge_walk_init(&w, s, a, buf_str(&first));
        code = forge_list_pages(&l, &w, known.pages, known.count, fault, err);
        forge_walk_release(&w);
    }
    out->page_count = l.pages.len;
    out->pages = arena_array(a, l.pages.len, sizeof(*out->pages));
    if (out->pages && l.pages.len)
        memcpy(out->pages, l.pages.items, l.pages.len * sizeof(*out->pages));
    else if (code == 0 && l.pages.len)
        code = err_code(err, ERR_NO_MEMORY);
    out->unchanged = code == 0 && forge_list_unchanged(&l, known.count);
    vec_release(&l.pages);
    buf_release(&first);
    return code;
}

/* --- one repository --- */

int forge_repo_by_id(struct forge_session *s, struct arena *a, struct str id,
                     struct forge_repo *out, struct forge_fault *fault, struct err *err)
{
    struct buf body = BUF_INIT(FORGE_ANSWER_BYTES_MAX);
    struct forge_answer answer;
    struct scan scan;
    int code = forge_ask(
        s, a, &(struct forge_ask){.url = forge_path(a, s->row->repo_path, id), .body = &body},
        &answer, fault, err);

    if (code == 0) {
        struct forge_repo found;
        scan_init(&scan, buf_str(&body));
        int read = forge_read_repo(&scan, a, &s->entry->forge, s->row, &found);
        if (scan_end(&scan, err) < 0)
            code = forge_malformed(fault, ERR_PARSE, err);
        else if (read < 0 || !str_eq(found.id, id))
            code = forge_fail(fault, ARCHIVE_PROTOCOL, err,
                              "the repository has another id, or a name that cannot be stored");
        else
            *out = found;
    }
    buf_release(&body);
    return code;
}

/* --- members --- */

static int forge_read_logins(struct str body, const char *key, forge_login_fn *each, void *ctx,
                             struct forge_fault *fault, struct err *err)
{
    const struct forge_field row[] = {{key, FORGE_FIELD_TEXT, 0, true}};
    const struct forge_fields fields = FORGE_FIELDS(row);
    struct arena a = ARENA_INIT(MIB);
    struct scan scan;
    int code = 0;

    scan_init(&scan, body);
    scan_open(&scan, '[');
    while (code == 0 && scan_more(&scan)) {
        struct str login = STR_EMPTY;
        arena_reset(&a);
        forge_read_object(&scan, &a, &fields, &login);
        if (!scan.wrong)
            code = each(ctx, login, err);
    }
    if (code == 0 && scan_end(&scan, err) < 0)
        code = forge_malformed(fault, ERR_PARSE, err);
    arena_release(&a);
    return code;
}

int forge_members(struct forge_session *s, struct arena *a, struct str organisation,
                  forge_login_fn *each, void *ctx, struct forge_fault *fault, struct err *err)
{
    struct buf body = BUF_INIT(FORGE_PAGE_BYTES_MAX);
    int code = 0;

    *fault = (struct forge_fault){0};
    for (size_t i = 0; code == 0 && s->row->members[i]; i++) {
        struct forge_walk w;
        struct forge_page page;
        forge_walk_init(&w, s, a, forge_path(a, s->row->members[i], organisation));
        while (code == 0 && w.next.len) {
            code = forge_walk_step(&w, NULL, STR_EMPTY, &body, &page, fault, err);
            if (code == 0)
                code = forge_read_logins(buf_str(&body), s->row->member_keys[i], each, ctx, fault,
                                         err);
        }
        forge_walk_release(&w);
    }
    buf_release(&body);
    return code;
}
