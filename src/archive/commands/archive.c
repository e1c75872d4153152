/* The command `weir archive`: accounts of git forges that are archived. */
#include "archive/room.h"

#include "archive/commands/tell.h"

enum { ADD_AT_ONCE = 500, ADD_TEXT_MAX = 64 * 1024 * 1024 };

#define WANTS_DOC                                                                                  \
    "What is saved beside the bundles of these accounts, with commas between them: zip, wikis, "   \
    "gists, lfs, issues, pulls, releases; none: nothing; default: the options of the forge."

static const struct flag archive_options_flags[] = {
    {"wants", FLAG_TEXT, "OPTIONS", NULL, WANTS_DOC},
    {"default", FLAG_SWITCH, NULL, NULL, "Use the options of the forge again."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag archive_add_flags[] = {
    {"file", FLAG_FILE, "FILE", NULL,
     "Read accounts from FILE too, one on each line; - is the standard input."},
    {"org", FLAG_TEXT, "ORGANISATION", NULL,
     "Add an organisation and its members, such as github.com/acme."},
    {"wants", FLAG_TEXT, "OPTIONS", NULL, WANTS_DOC},
    CLIENT_FLAGS,
    {0},
};

static const struct flag archive_show_flags[] = {
    {"repositories", FLAG_SWITCH, NULL, NULL, "List the repositories of the account."},
    {"all", FLAG_SWITCH, NULL, NULL,
     "With --repositories, list copies too: damaged bundles (NAME@damaged-TIME), and those of "
     "which "
     "a satellite had another one (NAME@moved-TIME)."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag archive_sync_flags[] = {
    {"watch", FLAG_SWITCH, NULL, NULL, "Show the progress until the sync has ended."},
    CLIENT_FLAGS,
    {0},
};

/* --- columns --- */

#define NUMBER(name)                                                                               \
    {                                                                                              \
        name, .number = true                                                                       \
    }

static const struct output_column option_columns[] = {{"account"}, {"wants"}, {"from"}};
static const struct output_column added_columns[] = {NUMBER("added"), NUMBER("known")};
static const struct output_column account_columns[] = {
    {"account"}, {"last_sync"}, {"state"}, {"held_until"}, NUMBER("failures")};
static const struct output_column one_account_columns[] = {{"account"},
                                                           {"login"},
                                                           {"type"},
                                                           {"added"},
                                                           {"last_sync"},
                                                           {"state"},
                                                           {"held_until"},
                                                           NUMBER("failures"),
                                                           NUMBER("repositories"),
                                                           NUMBER("listed"),
                                                           NUMBER("bytes"),
                                                           {"satellite"},
                                                           {"bucket"},
                                                           {"path"},
                                                           {"wants"},
                                                           {"error", .json = true}};
static const struct output_column repo_columns[] = {
    {"name"}, {"updated"}, NUMBER("bytes"), {"code"}, {"looked"}};
static const struct output_column one_repo_columns[] = {{"name"},
                                                        {"updated"},
                                                        NUMBER("bytes"),
                                                        {"code"},
                                                        {"id"},
                                                        {"head"},
                                                        {"format"},
                                                        NUMBER("objects"),
                                                        NUMBER("appends"),
                                                        NUMBER("zip_bytes"),
                                                        {"satellite"},
                                                        {"bucket"},
                                                        {"key"},
                                                        {"error", .json = true}};
static const struct output_column status_columns[] = {{"name"}, {"value", .json = true}};
static const struct output_column finding_columns[] = {{"account"}, {"key"}, {"finding"}};
static const struct output_column sync_columns[] = {{"account"}};
static const struct output_column synced_columns[] = {
    {"account"}, {"last_sync"}, NUMBER("repositories"), {"error", .json = true}};
static const struct output_column slot_columns[] = {NUMBER("slots")};

/* --- names of accounts --- */

/* Removes the parts that people copy along with an account's name: the scheme of a URL, and slashes
 * at the end. */
static struct str account_text(struct str text)
{
    text = str_trim(text);
    if (str_starts(text, STR("https://")))
        text = str_skip(text, STR("https://").len);
    while (text.len && text.p[text.len - 1] == '/')
        text.len--;
    return text;
}

/* --- add --- */

/* Accounts that are not sent to the server yet. */
struct add_run {
    struct api_client *r;
    struct buf body;
    struct json_out w;
    size_t waiting;
    int64_t added, known;
    const char *organisation, *wants;
};

/* Writes the member "wants". */
static void wants_fill(struct json_out *w, const char *wants)
{
    struct str rest = str_z(wants), word;

    json_out_key(w, "wants");
    json_out_open(w, '[');
    while (str_token(&rest, ", ", &word))
        if (!str_eq(word, STR("none")))
            json_out_str(w, word);
    json_out_close(w, ']');
}

static int add_send(struct add_run *a, struct err *err)
{
    json_t *answer = NULL;
    int code;

    if (a->waiting)
        json_out_close(&a->w, ']');
    if (a->organisation)
        json_out_member_str(&a->w, "organisation", account_text(str_z(a->organisation)));
    if (a->wants)
        wants_fill(&a->w, a->wants);
    json_out_close(&a->w, '}');
    code = buf_error(&a->body);
    if (code == 0)
        code = api_client_send(a->r, "POST", "/api/v1/archive/accounts", a->body.p, &answer, err);
    if (code == 0) {
        a->added += json_get_i64(answer, "added", 0);
        a->known += json_get_i64(answer, "known", 0);
    }
    json_decref(answer);
    buf_reset(&a->body);
    a->waiting = 0;
    a->organisation = NULL;
    return code;
}

static void add_begin(struct add_run *a)
{
    if (a->body.len)
        return;
    json_out_init(&a->w, &a->body);
    json_out_open(&a->w, '{');
}

static int add_one(struct add_run *a, struct str text, struct err *err)
{
    text = account_text(text);
    if (text.len == 0 || text.p[0] == '#')
        return 0;
    add_begin(a);
    if (a->waiting++ == 0) {
        json_out_key(&a->w, "accounts");
        json_out_open(&a->w, '[');
    }
    json_out_str(&a->w, text);
    return a->waiting == ADD_AT_ONCE ? add_send(a, err) : 0;
}

static int add_file(struct add_run *a, const char *path, struct err *err)
{
    struct buf text = BUF_INIT(ADD_TEXT_MAX);
    int code = command_read_file(&text, path, err);
    struct str rest = buf_str(&text), line;

    while (code == 0 && rest.len) {
        str_cut(rest, '\n', &line, &rest);
        code = add_one(a, line, err);
    }
    buf_release(&text);
    return code;
}

static int archive_add_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    const char *file = invocation_flag(inv, "file"), *org = invocation_flag(inv, "org");
    struct add_run a = {.r = r, .organisation = org, .wants = invocation_flag(inv, "wants")};
    int code = 0;

    if (inv->args.len == 0 && !file && !org)
        return err_set(err, ERR_INVALID,
                       "name an account such as github.com/octocat, --file or --org");
    for (size_t i = 0; i < inv->args.len && code == 0; i++)
        code = add_one(&a, str_z(inv->args.items[i]), err);
    if (code == 0 && file)
        code = add_file(&a, file, err);
    if (code == 0 && (a.waiting || a.organisation)) {
        add_begin(&a);
        code = add_send(&a, err);
    }
    buf_release(&a.body);
    if (code < 0)
        return code;
    output_cellf(table, "%jd", (intmax_t)a.added);
    output_cellf(table, "%jd", (intmax_t)a.known);
    return 0;
}

/* --- options --- */

static const char *options_path(struct api_client *r, const struct invocation *inv)
{
    struct buf path = BUF_INIT(8 * KIB);

    buf_append_z(&path, "/api/v1/archive/accounts/");
    url_encode(&path, account_text(str_z(inv->args.items[0])), false);
    buf_append_z(&path, "/options");
    const char *copy = arena_z(&r->arena, buf_str(&path));
    buf_release(&path);
    return copy;
}

static int options_change(struct api_client *r, const char *path, const char *wants,
                          struct err *err)
{
    struct buf body = {0};
    struct json_out w;

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    if (wants)
        wants_fill(&w, wants);
    json_out_close(&w, '}');
    int code = wants ? api_client_send(r, "PUT", path, body.p, NULL, err)
                     : api_client_send(r, "DELETE", path, NULL, NULL, err);
    buf_release(&body);
    return code;
}

static int archive_options_run(struct api_client *r, const struct invocation *inv,
                               struct output *table, struct err *err)
{
    const char *path = options_path(r, inv), *wants = invocation_flag(inv, "wants");
    bool clear = invocation_flag(inv, "default") != NULL;
    json_t *answer = NULL;
    int code = 0;

    if (wants && clear)
        return err_set(err, ERR_INVALID, "give --wants or --default, and not both");
    if (wants || clear)
        code = options_change(r, path, wants, err);
    if (code == 0)
        code = api_client_send(r, "GET", path, NULL, &answer, err);
    if (code == 0) {
        struct buf text = {0};
        const json_t *list = json_object_get(answer, "wants");
        for (size_t i = 0; i < json_array_size(list); i++)
            buf_appendf(&text, "%s%s", i ? "," : "", json_string_value(json_array_get(list, i)));
        output_cell(table, json_get_str(answer, "account", STR_EMPTY));
        output_cell(table, text.len ? buf_str(&text) : STR("none"));
        output_cell(table,
                    json_get_bool(answer, "own_wants", false) ? STR("account") : STR("forge"));
        buf_release(&text);
    }
    json_decref(answer);
    return code;
}

/* --- sync --- */

/* A text that changes whenever a sync of the account ends: a full sync changes the time of the last
 * sync, and a failed sync changes the number of failures or the end of the hold. */
static char *sync_state(const json_t *account)
{
    struct buf out = {0};

    buf_append_str(&out, json_get_str(account, "last_sync", STR_EMPTY));
    buf_appendf(&out, " %jd ", (intmax_t)json_get_i64(account, "failures", 0));
    buf_append_str(&out, json_get_str(account, "held_until", STR_EMPTY));
    return buf_take(&out);
}

static void sync_show(const json_t *status, struct str account)
{
    const json_t *sync;
    size_t i;

    json_array_foreach(json_object_get(status, "running"), i, sync)
    {
        if (!str_eq(json_get_str(sync, "account", STR_EMPTY), account))
            continue;
        fprintf(stderr, "\r%jd of %jd repositories, %jd failed, %jd bytes",
                (intmax_t)json_get_i64(sync, "done", 0),
                (intmax_t)json_get_i64(sync, "repositories", 0),
                (intmax_t)json_get_i64(sync, "failed", 0),
                (intmax_t)json_get_i64(sync, "bytes", 0));
    }
}

/* Waits for the end of a sync that began after `before`. */
static int sync_watch(struct api_client *r, const char *path, const char *before, json_t **out,
                      struct err *err)
{
    for (;;) {
        json_t *account = NULL, *status = NULL;
        int code = api_client_send(r, "GET", path, NULL, &account, err);
        if (code == 0)
            code = api_client_send(r, "GET", "/api/v1/archive/status", NULL, &status, err);
        if (code < 0) {
            json_decref(account);
            return code;
        }
        sync_show(status, json_get_str(account, "account", STR_EMPTY));
        json_decref(status);
        char *now = sync_state(account);
        bool over = strcmp(now, before) != 0 && !json_get_bool(account, "first", false) &&
                    !str_eq(json_get_str(account, "state", STR_EMPTY), STR("leased"));
        free(now);
        if (over) {
            *out = account;
            return 0;
        }
        json_decref(account);
        manage_poll_wait();
    }
}

static int sync_judge(const json_t *account, struct err *err)
{
    const json_t *error = json_object_get(account, "error");
    struct str code = json_get_str(error, "code", STR_EMPTY);
    struct str message = json_get_str(error, "message", STR_EMPTY);

    return json_is_object(error)
               ? err_set(err, ERR_PEER, "the sync was not a full one: " STR_FMT ": " STR_FMT,
                         STR_ARG(code), STR_ARG(message))
               : 0;
}

/* Shows an account or a repository. */
static void show_row(struct output *table, const struct invocation *inv, json_t *row)
{
    if (!invocation_flag(inv, "json"))
        tell_error(row);
    manage_row(table, row);
}

static int archive_sync_run(struct api_client *r, const struct invocation *inv,
                            struct output *table, struct err *err)
{
    struct str text = account_text(str_z(inv->args.items[0]));
    const char *name = arena_z(&r->arena, text);
    const char *path = manage_path(r, "/api/v1/archive/accounts/", name, "");
    json_t *before = NULL, *after = NULL;
    char *state = NULL;
    int code = api_client_send(r, "GET", path, NULL, &before, err);

    if (code == 0)
        code = api_client_send(
            r, "POST", manage_path(r, "/api/v1/archive/accounts/", name, "/sync"), "{}", NULL, err);
    if (code == 0 && invocation_flag(inv, "watch")) {
        state = sync_state(before);
        code = sync_watch(r, path, state, &after, err);
    }
    if (code == 0 && after) {
        fprintf(stderr, "\n");
        code = sync_judge(after, err);
        show_row(table, inv, after);
    } else if (code == 0) {
        output_cell(table, text);
    }
    free(state);
    json_decref(before);
    json_decref(after);
    return code;
}

/* --- show --- */

/* Shows an account, or one of its repositories if the name has a third part. */
static int archive_show_run(struct api_client *r, const struct invocation *inv,
                            struct output *table, struct err *err)
{
    const char *name = arena_z(&r->arena, account_text(str_z(inv->args.items[0])));
    const char *path = manage_path(r, "/api/v1/archive/accounts/", name, "");
    json_t *answer = NULL;
    int code;

    if (inv->args.len == 2) {
        const char *before = manage_path(r, "/api/v1/archive/accounts/", name, "/repositories/");
        path = manage_path(r, before, inv->args.items[1], "");
    }
    code = api_client_send(r, "GET", path, NULL, &answer, err);
    if (code == 0)
        show_row(table, inv, answer);
    json_decref(answer);
    return code;
}

static int archive_repos_run(struct api_client *r, const struct invocation *inv,
                             struct output *table, struct err *err)
{
    const char *name = arena_z(&r->arena, account_text(str_z(inv->args.items[0])));
    const char *behind = invocation_flag(inv, "all") ? "/repositories?all=true" : "/repositories";
    struct manage_list list = {.path = manage_path(r, "/api/v1/archive/accounts/", name, behind),
                               .name = "repositories"};
    json_t *items = NULL, *item;
    size_t i;
    int code = manage_pages(r, &list, &items, err);

    json_array_foreach(items, i, item) manage_row(table, item);
    json_decref(items);
    return code;
}

/* --- status --- */

static void status_add_json(struct output *table, const char *name, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

    output_cell(table, str_z(name));
    output_cell(table, str_z(text));
    free(text);
}

static int archive_status_run(struct api_client *r, const struct invocation *inv,
                              struct output *table, struct err *err)
{
    json_t *answer = NULL, *value;
    const char *name;
    int code = api_client_send(r, "GET", "/api/v1/archive/status", NULL, &answer, err);

    if (code < 0)
        return code;
    json_object_foreach(answer, name, value)
    {
        if (invocation_flag(inv, "json"))
            status_add_json(table, name, value);
        else
            tell_status(table, name, value);
    }
    json_decref(answer);
    return 0;
}

/* --- check --- */

static int archive_check_fill(struct json_out *w, const struct invocation *inv, struct err *err)
{
    (void)err;
    if (inv->args.len)
        json_out_member_str(w, "account", account_text(str_z(inv->args.items[0])));
    return 0;
}

static int archive_check_judge(const json_t *answer, struct err *err)
{
    int64_t count = json_get_i64(answer, "count", 0);

    return count ? err_set(err, ERR_CORRUPT, "%jd findings", (intmax_t)count) : 0;
}

/* --- the calls --- */

static const struct manage_call account_options = {MANAGE_COLUMNS(option_columns),
                                                   .run = archive_options_run};
static const struct manage_call add_accounts = {MANAGE_COLUMNS(added_columns),
                                                .run = archive_add_run};
static const struct manage_call list_accounts = {"GET", "/api/v1/archive/accounts",
                                                 MANAGE_COLUMNS(account_columns),
                                                 .rows = "accounts", .pages = true};
static const struct manage_call show_account = {MANAGE_COLUMNS(one_account_columns),
                                                .run = archive_show_run};
static const struct manage_call show_repo = {MANAGE_COLUMNS(one_repo_columns),
                                             .run = archive_show_run};
static const struct manage_call show_repos = {MANAGE_COLUMNS(repo_columns),
                                              .run = archive_repos_run};
static const struct manage_call sync_account = {MANAGE_COLUMNS(sync_columns),
                                                .run = archive_sync_run};
static const struct manage_call watch_account = {MANAGE_COLUMNS(synced_columns),
                                                 .run = archive_sync_run, .shows_end = true};
static const struct manage_call prefer_account = {"POST", "/api/v1/archive/accounts/{0}/sync",
                                                  MANAGE_COLUMNS(sync_columns)};
static const struct manage_call remove_account = {"DELETE", "/api/v1/archive/accounts/{0}"};
static const struct manage_call show_status = {MANAGE_COLUMNS(status_columns),
                                               .run = archive_status_run};
static const struct manage_call check_archive = {"POST",
                                                 "/api/v1/archive/check",
                                                 MANAGE_COLUMNS(finding_columns),
                                                 .rows = "findings",
                                                 .fill = archive_check_fill,
                                                 .judge = archive_check_judge};
static const struct manage_call rebuild_archive = {"POST", "/api/v1/archive/rebuild",
                                                   MANAGE_COLUMNS(slot_columns)};

/* --- the commands --- */

static int command_archive_sync(struct invocation *inv)
{
    return manage(inv, invocation_flag(inv, "watch") ? &watch_account : &sync_account);
}

static int command_archive_show(struct invocation *inv)
{
    return manage(inv, invocation_flag(inv, "repositories") ? &show_repos
                       : inv->args.len == 2                 ? &show_repo
                                                            : &show_account);
}

const struct command archive_commands[] = {
    {.name = "archive add",
     .arguments = "[ACCOUNT...]",
     .max_args = SIZE_MAX,
     .flags = archive_add_flags,
     .configured = true,
     .summary = "Archive accounts of git forges",
     .help = "Begins to archive accounts: every repository becomes a bundle in the storage, and is "
             "kept up to date from then on. An ACCOUNT is a forge and a name there, such as "
             "github.com/octocat. Accounts that are archived already stay as they are.",
     .examples = "weir archive add github.com/octocat\nweir archive add --file accounts.txt\n"
                 "weir archive add --org github.com/acme",
     .call = &add_accounts},
    {.name = "archive list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the accounts that are archived",
     .help = "Lists the accounts with the time of their last full sync.",
     .examples = "weir archive list\nweir archive list --json",
     .call = &list_accounts},
    {.name = "archive show",
     .arguments = "ACCOUNT [REPOSITORY]",
     .min_args = 1,
     .max_args = 2,
     .flags = archive_show_flags,
     .configured = true,
     .summary = "Show an account or a repository of the archive",
     .help =
         "Shows when the account was last synced in full, how many repositories it has, and why "
         "the last sync was not a full one. With a REPOSITORY it shows when its bundle was last "
         "written, and the last error.",
     .examples = "weir archive show github.com/octocat\n"
                 "weir archive show github.com/octocat --repositories\n"
                 "weir archive show github.com/octocat Hello-World",
     .run = command_archive_show},
    {.name = "archive options",
     .arguments = "ACCOUNT",
     .min_args = 1,
     .max_args = 1,
     .flags = archive_options_flags,
     .configured = true,
     .summary = "Show or set what is saved beside the bundles of an account",
     .help = "Without flags, shows the options of the account, and whether they are its own or "
             "those of its forge. With --wants, the account gets options of its own, which its "
             "next sync uses. What was saved stays when an option is switched off.",
     .examples = "weir archive options github.com/octocat\n"
                 "weir archive options github.com/octocat --wants zip,wikis,issues\n"
                 "weir archive options github.com/octocat --default",
     .call = &account_options},
    {.name = "archive sync",
     .arguments = "ACCOUNT",
     .min_args = 1,
     .max_args = 1,
     .flags = archive_sync_flags,
     .configured = true,
     .summary = "Sync an account now",
     .help = "Puts the account in front of all others, also if it was synced just now or is held "
             "after a failure. With --watch the command waits for the end of the sync, shows the "
             "account then, and fails if the sync was not a full one.",
     .examples = "weir archive sync github.com/octocat --watch",
     .run = command_archive_sync},
    {.name = "archive priority",
     .arguments = "ACCOUNT",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Put an account in front of all others",
     .help =
         "The account is the next one that is synced. `weir archive sync` does the same, and can "
         "wait for the end.",
     .examples = "weir archive priority github.com/octocat",
     .call = &prefer_account},
    {.name = "archive remove",
     .arguments = "ACCOUNT",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "No longer archive an account",
     .help = "Ends the syncs of the account. Everything that was stored stays in the storage.",
     .examples = "weir archive remove github.com/octocat",
     .call = &remove_account},
    {.name = "archive status",
     .flags = client_flags,
     .configured = true,
     .summary = "Show how the archive stands",
     .help = "Shows how many accounts are due, held and worked on, the progress of the syncs that "
             "run, the requests that each forge still allows, and the satellites.",
     .examples = "weir archive status",
     .call = &show_status},
    {.name = "archive check",
     .arguments = "[ACCOUNT]",
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Check records against the stored objects",
     .help =
         "Compares the record of the account, or of all accounts, with the objects in the "
         "storage and with the schedule, and lists what does not fit. Without an account, it also "
         "lists objects and open uploads on all satellites that no archived account explains.",
     .examples = "weir archive check\nweir archive check github.com/octocat",
     .call = &check_archive},
    {.name = "archive rebuild",
     .flags = client_flags,
     .configured = true,
     .summary = "Read from the storages which accounts are archived",
     .help = "Makes the schedule anew from the storages, in the background. weir does this by "
             "itself when the store has lost it.",
     .examples = "weir archive rebuild",
     .call = &rebuild_archive},
    {0},
};
