/* Routes: the accounts that are archived. */
#include "archive/rest/rest.h"

#include "archive/account.h"
#include "archive/error_object.h"
#include "archive/forge.h"
#include "archive/forges.h"
#include "archive/satellites.h"
#include "archive/schedule.h"
#include "base/clock.h"

static rest_fn account_list_run, account_add_run, account_get_run, account_remove_run,
    account_sync_run;

const struct rest_field archive_error_fields[] = {
    {"time", "When it happened.", REST_TIME},
    {"code", "The outcome, such as gone or timeout."},
    {"stage", "The step that failed: list, refs, fetch, verify, zip or upload."},
    {"message", "What happened, with the server's words."},
    {"http_status", "The status of the server's answer; 0: there was none.", REST_INTEGER},
    {"attempts", "How often in a row the same has happened.", REST_INTEGER},
    {"first_seen", "When it happened first.", REST_TIME},
    {"last_good", "When the last sync succeeded.", REST_TIME},
    {0},
};

#define SCHEDULE_FIELDS                                                                            \
    {"last_sync", "When the last full sync began; empty: never.", REST_TIME},                      \
        {"state", "What it waits for: ready, leased (somebody works on it), held or unknown."},    \
        {"first", "It comes before all others.", REST_BOOLEAN},                                    \
        {"held_until", "It failed and is not tried before this time.", REST_TIME},                 \
    {                                                                                              \
        "failures", "How often in a row its sync has failed.", REST_INTEGER                        \
    }

static const struct rest_row account_rows[] = {
    {HTTP_GET, "/api/v1/archive/accounts", REST_ADMIN,
     "The accounts that are archived, in no order.", account_list_run, .list = "accounts",
     .by_source = true, .page_max = SCHEDULE_PAGE_MAX,
     .items =
         REST_FIELDS({"account", "The account, such as github.com/octocat."}, SCHEDULE_FIELDS)},
    {HTTP_POST, "/api/v1/archive/accounts", REST_ADMIN,
     "Begin to archive accounts. Those that are archived already stay as they are.",
     account_add_run,
     .body = REST_FIELDS(
         {"accounts", "Accounts, such as github.com/octocat.", REST_STRINGS, .max = 10000},
         {"organisation", "An organisation whose members are added too, such as "
                          "github.com/acme."},
         {"wants",
          "Options that all these accounts get for themselves, also those that are "
          "archived already; absent: those of their forges.",
          REST_STRINGS}),
     .answer = REST_FIELDS({"added", "How many are new.", REST_INTEGER},
                           {"known", "How many were archived already.", REST_INTEGER})},
    {HTTP_GET, "/api/v1/archive/accounts/{account}", REST_ADMIN, "One account.", account_get_run,
     .in_path = REST_FIELDS({"account", "The account, such as github.com%2Foctocat."}),
     .answer = REST_FIELDS(
         {"account", "The account, such as github.com/octocat."},
         {"login", "The forge's spelling of its name; empty before the first full sync."},
         {"id", "The forge's number of the account."}, {"type", "User or Organization."},
         {"added", "When it was added.", REST_TIME}, SCHEDULE_FIELDS,
         {"repositories", "How many repositories are stored.", REST_INTEGER},
         {"listed", "How many repositories the forge listed.", REST_INTEGER},
         {"bytes", "Bytes of all bundles.", REST_INTEGER},
         {"satellite", "The storage that holds it."}, {"bucket", "The bucket there."},
         {"path", "Where its objects begin in that bucket."},
         {"wants", "What is saved beside its bundles.", REST_STRINGS},
         {"own_wants", "These options are its own, and not those of its forge.", REST_BOOLEAN},
         {"error", "Why the last sync was not a full one; null: it was.", REST_OBJECT,
          .nullable = true, .members = archive_error_fields}),
     .missing = "this account is not archived"},
    {HTTP_DELETE, "/api/v1/archive/accounts/{account}", REST_ADMIN,
     "No longer archive the account. Everything that was stored stays.", account_remove_run,
     .status = 204, .in_path = REST_FIELDS({"account", "The account."}),
     .missing = "this account is not archived"},
    {HTTP_POST, "/api/v1/archive/accounts/{account}/sync", REST_ADMIN,
     "Sync the account next, before all others.", account_sync_run, .status = 202,
     .in_path = REST_FIELDS({"account", "The account."}),
     .answer = REST_FIELDS({"account", "The account, such as github.com/octocat."}),
     .missing = "this account is not archived"},
};
const struct rest_table archive_account_routes = {REST_ROWS(account_rows)};

/* --- what the files share --- */

struct archive *rest_archive(const struct rest_call *c)
{
    struct archive_room *r = c->ctx;

    return &r->archive;
}

int rest_account(const struct rest_call *c, struct archive_account *out, struct err *err)
{
    return archive_account_read(out, c->arena, rest_text(c, "account"), err);
}

int rest_record_head(struct rest_call *c, struct shelf *s, const struct archive_account *a,
                     struct record_account *out, struct err *err)
{
    struct object_range head = {RANGE_FROM_TO, 0, RECORD_HEAD_MAX - 1};
    struct buf text = BUF_INIT(RECORD_HEAD_MAX);
    struct shelf_body body = {0};
    int code = shelf_get(s, c->arena, archive_key(a, c->arena, ARCHIVE_RECORD, STR_EMPTY), &head,
                         &body, err);

    if (code < 0)
        return code;
    code = reader_read_all(body.body, &text, err);
    shelf_body_close(&body);
    if (code == 0)
        code = archive_record_read_head(out, c->arena, buf_str(&text), err);
    buf_release(&text);
    return code;
}

static void error_write(struct json_out *w, const struct archive_error *e)
{
    json_out_open(w, '{');
    rest_time(w, "time", e->at_ms);
    json_out_member_str(w, "code", str_z(archive_codes[e->code].name));
    json_out_member_str(w, "stage", str_z(e->stage));
    json_out_member_str(w, "message", e->message);
    json_out_member_i64(w, "http_status", e->http_status);
    json_out_member_u64(w, "attempts", e->attempts);
    rest_time(w, "first_seen", e->first_seen_ms);
    rest_time(w, "last_good", e->last_good_ms);
    json_out_close(w, '}');
}

int rest_error_member(struct rest_call *c, struct shelf *s, struct str key, struct err *err)
{
    struct archive_error e;
    int code = error_object_read(s, c->arena, key, &e, err);

    if (code < 0 && code != ERR_NOT_FOUND && code != ERR_PARSE)
        return code;
    json_out_key(c->w, "error");
    if (code == 0)
        error_write(c->w, &e);
    else
        json_out_null(c->w);
    return 0;
}

/* --- one account --- */

static void entry_write(struct json_out *w, const struct schedule_entry *e)
{
    rest_time(w, "last_sync", e->score_ms > 0 ? e->score_ms : 0);
    json_out_member_str(w, "state", str_z(schedule_state_names[e->state]));
    json_out_member_bool(w, "first", e->is_first);
    rest_time(w, "held_until", e->held_until_ms);
    json_out_member_u64(w, "failures", e->fails);
}

static void record_write(struct json_out *w, const struct record_account *r)
{
    json_out_member_str(w, "login", r->login);
    json_out_member_str(w, "id", r->id);
    json_out_member_str(w, "type", r->type);
    rest_time(w, "added", r->added_ms);
    json_out_member_u64(w, "repositories", r->repos_stored);
    json_out_member_u64(w, "listed", r->repos_listed);
    json_out_member_u64(w, "bytes", r->bytes);
}

static int account_write(struct rest_call *c, const struct archive_account *account,
                         struct schedule_entry *e, struct err *err)
{
    struct record_account record = {0};
    struct shelf shelf = {0};
    int code = shelf_open(&shelf, rest_archive(c)->satellites, c->arena, account, err);

    if (code == 0)
        code = rest_record_head(c, &shelf, account, &record, err);
    if (code == ERR_NOT_FOUND)
        code = 0;
    if (code == 0) {
        /* The record's time is used, because the score in `tracked` may be older. */
        if (record.last_full_sync_ms)
            e->score_ms = record.last_full_sync_ms;
        json_out_member_str(c->w, "account", archive_account_member(account, c->arena));
        record_write(c->w, &record);
        entry_write(c->w, e);
        json_out_member_str(c->w, "satellite", shelf.satellite);
        json_out_member_str(c->w, "bucket", shelf.bucket);
        json_out_member_str(c->w, "path", archive_folder(account, c->arena));
        code = rest_account_wants(c, &shelf, account, err);
    }
    if (code == 0)
        code = rest_error_member(
            c, &shelf, archive_key(account, c->arena, ARCHIVE_ACCOUNT_ERROR, STR_EMPTY), err);
    shelf_close(&shelf);
    return code;
}

static int account_get_run(struct rest_call *c, struct err *err)
{
    struct archive_account account;
    struct schedule_entry entry = {0};
    int code = rest_account(c, &account, err);

    if (code == 0)
        code = schedule_find(rest_archive(c)->schedule, c->arena, &account, &entry, err);
    return code < 0 ? code : account_write(c, &account, &entry, err);
}

static int account_remove_run(struct rest_call *c, struct err *err)
{
    struct archive_account account;
    int code = rest_account(c, &account, err);

    if (code == 0)
        code = account_remove(rest_archive(c), &account, err);
    if (code == 0)
        log_info(http_request_log(c->req), "archive.account_removed",
                 log_s("account", rest_text(c, "account")));
    return code;
}

static int account_sync_run(struct rest_call *c, struct err *err)
{
    struct archive_account account;
    struct forge forge;
    int code = rest_account(c, &account, err);

    if (code == 0)
        code = forges_find(rest_archive(c)->forges, c->arena, account.host, &forge, err);
    if (code == ERR_NOT_FOUND)
        return err_set(err, ERR_CONFLICT,
                       "weir does not know the forge " STR_FMT
                       "; `weir archive forge add` names it (again)",
                       STR_ARG(account.host));
    if (code == 0)
        code = schedule_first(rest_archive(c)->schedule, &account, err);
    if (code == 0)
        json_out_member_str(c->w, "account", archive_account_member(&account, c->arena));
    return code;
}

/* --- all accounts --- */

static int account_list_run(struct rest_call *c, struct err *err)
{
    struct schedule_page page = {.limit = rest_limit(c)};
    struct schedule_entry *entries = NULL;
    size_t count = 0;
    uint64_t next = 0;

    if (rest_after(c).len && str_u64(rest_after(c), &page.at) < 0)
        return err_set(err, ERR_INVALID, "`after` must be the `next` of the page before");
    int code =
        schedule_list(rest_archive(c)->schedule, c->arena, &page, &entries, &count, &next, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        rest_row_begin(c);
        json_out_member_str(c->w, "account", entries[i].member);
        entry_write(c->w, &entries[i]);
        rest_item_end(c);
    }
    rest_page_end(c, next != 0,
                  next ? arena_fmt(c->arena, "%llu", (unsigned long long)next) : STR_EMPTY);
    return 0;
}

/* --- adding --- */

/* Accounts that a request wants to add. */
struct account_batch {
    struct rest_call *c;
    struct str host; /* host of the organisation */
    VEC(struct archive_account) list;
};

/* Refuses a name such as `github.com/octocat/Hello-World`, which is that of a repository. Only
 * GitLab has logins with '/'. A host that is not a forge is refused later. */
static int batch_check_login(struct account_batch *b, const struct archive_account *account,
                             struct err *err)
{
    struct str user, repository;
    struct forge forge;

    if (!str_cut(account->login, '/', &user, &repository) ||
        forges_find(rest_archive(b->c)->forges, b->c->arena, account->host, &forge, NULL) < 0 ||
        forge.kind == FORGE_GITLAB)
        return 0;
    return err_set(err, ERR_INVALID,
                   STR_FMT "/" STR_FMT " names a repository; accounts are archived whole: " STR_FMT
                           "/" STR_FMT,
                   STR_ARG(account->host), STR_ARG(account->login), STR_ARG(account->host),
                   STR_ARG(user));
}

static int batch_take(struct account_batch *b, struct str text, struct err *err)
{
    struct archive_account account;
    int code = archive_account_read(&account, b->c->arena, text, err);

    if (code == 0)
        code = batch_check_login(b, &account, err);
    if (code == 0)
        vec_push(&b->list, account);
    return code;
}

static int batch_member(void *ctx, struct str login, struct err *err)
{
    struct account_batch *b = ctx;
    struct archive_account account;
    int code = archive_account_make(&account, b->c->arena, b->host, login, err);

    if (code == 0)
        vec_push(&b->list, account);
    /* A member whose name cannot be part of a key is skipped. */
    return code == ERR_INVALID ? 0 : code;
}

/* Adds the members of an organisation, and the organisation itself. */
static int batch_organisation(struct account_batch *b, struct str text, struct err *err)
{
    struct forge_session *session = NULL;
    struct forge_fault fault = {0};
    struct archive_account org;
    int code = archive_account_read(&org, b->c->arena, text, err);

    if (code < 0)
        return code;
    b->host = org.host;
    vec_push(&b->list, org);
    code = forge_session_open(&session, rest_archive(b->c)->forges, org.host, NULL, err);
    if (code == 0)
        code = forge_members(session, b->c->arena, org.login, batch_member, b, &fault, err);
    forge_session_close(session);
    return code;
}

static int account_add_run(struct rest_call *c, struct err *err)
{
    struct account_batch b = {.c = c};
    const json_t *texts = rest_strings(c, "accounts"), *text;
    struct forge_wants wants;
    size_t i, added = 0;
    bool has_wants = false;
    int code = rest_read_wants(c, &wants, &has_wants, err);

    json_array_foreach(texts, i, text)
    {
        if (code == 0)
            code = batch_take(&b, str_n(json_string_value(text), json_string_length(text)), err);
    }
    if (code == 0 && rest_given(c, "organisation"))
        code = batch_organisation(&b, rest_text(c, "organisation"), err);
    if (code == 0)
        code = account_add(rest_archive(c), b.list.items, b.list.len, has_wants ? &wants : NULL,
                           &added, err);
    if (code == 0) {
        json_out_member_u64(c->w, "added", added);
        json_out_member_u64(c->w, "known", b.list.len - added);
        log_info(http_request_log(c->req), "archive.accounts_added", log_u("count", added));
    }
    vec_release(&b.list);
    return code;
}
