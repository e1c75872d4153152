/* Routes: the options of one account. */
#include "archive/rest/rest.h"

#include "archive/account_options.h"
#include "archive/forges.h"
#include "archive/schedule.h"

static rest_fn option_get, option_put, option_delete;

#define OPTION_ANSWER                                                                              \
    {"account", "The account, such as github.com/octocat."},                                       \
        {"wants", "What is saved beside its bundles.", REST_STRINGS},                              \
    {                                                                                              \
        "own_wants", "These options are its own, and not those of its forge.", REST_BOOLEAN        \
    }
#define OPTION_ACCOUNT                                                                             \
    {                                                                                              \
        "account", "The account, such as github.com%2Foctocat."                                    \
    }

static const struct rest_row option_rows[] = {
    {HTTP_GET, "/api/v1/archive/accounts/{account}/options", REST_ADMIN,
     "What is saved beside the bundles of an account.", option_get,
     .in_path = REST_FIELDS(OPTION_ACCOUNT), .answer = REST_FIELDS(OPTION_ANSWER),
     .missing = "this account is not archived"},
    {HTTP_PUT, "/api/v1/archive/accounts/{account}/options", REST_ADMIN,
     "Give an account options of its own, in the place of those of its forge. Its next sync uses "
     "them. What was saved stays when an option is switched off.",
     option_put, .in_path = REST_FIELDS(OPTION_ACCOUNT),
     .body = REST_FIELDS({"wants", "The options: zip, wikis, gists, lfs, issues, pulls, releases.",
                          REST_STRINGS, .required = true}),
     .answer = REST_FIELDS(OPTION_ANSWER), .missing = "this account is not archived"},
    {HTTP_DELETE, "/api/v1/archive/accounts/{account}/options", REST_ADMIN,
     "Let an account have the options of its forge again.", option_delete, .status = 204,
     .in_path = REST_FIELDS(OPTION_ACCOUNT), .missing = "this account is not archived"},
};
const struct rest_table archive_option_routes = {REST_ROWS(option_rows)};

/* --- what the files share --- */

int rest_read_wants(struct rest_call *c, struct forge_wants *out, bool *given, struct err *err)
{
    const json_t *list = rest_strings(c, "wants");
    struct buf text = {0};

    for (size_t i = 0; i < json_array_size(list); i++)
        buf_appendf(&text, "%s,", json_string_value(json_array_get(list, i)));
    *given = list != NULL;
    int code = list ? forge_wants_read(out, buf_str(&text), err) : 0;
    buf_release(&text);
    return code;
}

void rest_write_wants(struct json_out *w, const struct forge_wants *wants)
{
    struct buf text = {0};
    struct str rest, word;

    forge_wants_write(&text, wants);
    rest = buf_str(&text);
    json_out_key(w, "wants");
    json_out_open(w, '[');
    while (str_token(&rest, ",", &word))
        json_out_str(w, word);
    json_out_close(w, ']');
    buf_release(&text);
}

int rest_account_wants(struct rest_call *c, struct shelf *s, const struct archive_account *a,
                       struct err *err)
{
    struct forge forge = {0};
    bool own = false;
    int code = forges_find(rest_archive(c)->forges, c->arena, a->host, &forge, err);

    if (code == 0 || code == ERR_NOT_FOUND) /* the forge may have been removed */
        code = account_options_on(s, c->arena, a, &forge.wants, &own, err);
    if (code == 0) {
        rest_write_wants(c->w, &forge.wants);
        json_out_member_bool(c->w, "own_wants", own);
    }
    return code;
}

/* --- the calls --- */

/* Reads the account from the path. ERR_NOT_FOUND: it is not tracked. */
static int option_account(struct rest_call *c, struct archive_account *out, struct err *err)
{
    struct schedule_entry entry;
    int code = rest_account(c, out, err);

    return code < 0 ? code : schedule_find(rest_archive(c)->schedule, c->arena, out, &entry, err);
}

static int option_show(struct rest_call *c, const struct archive_account *account, struct err *err)
{
    struct shelf shelf = {0};
    int code = shelf_open(&shelf, rest_archive(c)->satellites, c->arena, account, err);

    if (code == 0) {
        json_out_member_str(c->w, "account", archive_account_member(account, c->arena));
        code = rest_account_wants(c, &shelf, account, err);
    }
    shelf_close(&shelf);
    return code;
}

static int option_get(struct rest_call *c, struct err *err)
{
    struct archive_account account;
    int code = option_account(c, &account, err);

    return code < 0 ? code : option_show(c, &account, err);
}

static int option_put(struct rest_call *c, struct err *err)
{
    struct archive_account account;
    struct forge_wants wants;
    bool given;
    int code = option_account(c, &account, err);

    if (code == 0)
        code = rest_read_wants(c, &wants, &given, err);
    if (code == 0)
        code = account_options_set(rest_archive(c), &account, &wants, err);
    return code < 0 ? code : option_show(c, &account, err);
}

static int option_delete(struct rest_call *c, struct err *err)
{
    struct archive_account account;
    int code = option_account(c, &account, err);

    return code < 0 ? code : account_options_set(rest_archive(c), &account, NULL, err);
}
