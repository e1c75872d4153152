/* weir lake branch: branches and their protection. */
#include "lake/commands/cli.h"

static const struct flag branch_create_flags[] = {
    {"source", FLAG_TEXT, "REF", NULL,
     "The ref that the branch begins with; default: the repository's default branch.",
     .letter = 's'},
    {"hidden", FLAG_SWITCH, NULL, NULL, "Leave the branch out of lists."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag branch_list_flags[] = {
    {"prefix", FLAG_TEXT, "TEXT", NULL, "Only branches whose names begin with TEXT."},
    {"hidden", FLAG_SWITCH, NULL, NULL, "List hidden branches too."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag branch_protect_flags[] = {
    {"remove", FLAG_SWITCH, NULL, NULL, "No longer protect branches by PATTERN."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column branch_columns[] = {{"id"}, {"commit_id"}};
static const struct output_column pattern_columns[] = {{"pattern"}};

/* Gets the name of the repository's default branch, in the client's arena. */
static int default_branch_get(struct api_client *r, const struct lake_uri *uri, const char **out,
                              struct err *err)
{
    json_t *answer = NULL;
    int code = api_client_send(r, "GET", lake_cli_path(r, uri, "{repo}"), NULL, &answer, err);

    if (code == 0)
        *out = arena_z(&r->arena, json_get_str(answer, "default_branch", STR_EMPTY));
    json_decref(answer);
    return code;
}

static int branch_show_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REF, err);

    return code == 0
               ? lake_cli_one(r, "GET", lake_cli_path(r, &uri, "{repo}/branches/{ref}"), table, err)
               : code;
}

/* Makes the branch. The call answers with the id of the head as plain text, so a second call gets
 * the branch to show. */
static int branch_create_run(struct api_client *r, const struct invocation *inv,
                             struct output *table, struct err *err)
{
    const char *source = invocation_flag(inv, "source");
    struct client_response response;
    struct lake_cli_body body;
    struct lake_uri uri;
    struct str ref = STR_EMPTY;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REF, err);

    if (code == 0 && !source)
        code = default_branch_get(r, &uri, &source, err);
    if (code == 0)
        code = lake_uri_parse_ref(&ref, &uri, source, err);
    if (code < 0)
        return code;
    lake_cli_body_begin(&body);
    json_out_member_str(&body.w, "name", uri.ref);
    json_out_member_str(&body.w, "source", ref);
    lake_cli_switch(&body.w, inv, "hidden", "hidden");
    json_out_close(&body.w, '}');
    code =
        api_client_call(r, lake_cli_path(r, &uri, "{repo}/branches"), body.text.p, &response, err);
    buf_release(&body.text);
    if (code == 0 && response.status / 100 != 2)
        code = api_client_error(r, &response, err);
    return code == 0 ? branch_show_run(r, inv, table, err) : code;
}

static int branch_list_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    struct buf path = {0};
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REPO, err);

    if (code < 0)
        return code;
    buf_append_z(&path, lake_cli_path(r, &uri, "{repo}/branches?amount=1000"));
    manage_query(&path, "prefix", invocation_flag(inv, "prefix"));
    manage_query(&path, "show_hidden", invocation_flag(inv, "hidden") ? "true" : NULL);
    code = lake_cli_rows(r, path.p, 0, table, err);
    buf_release(&path);
    return code;
}

static int branch_delete_run(struct api_client *r, const struct invocation *inv,
                             struct output *table, struct err *err)
{
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REF, err);

    (void)table;
    return code == 0 ? lake_cli_one(r, "DELETE", lake_cli_path(r, &uri, "{repo}/branches/{ref}"),
                                    NULL, err)
                     : code;
}

static int protect_show(struct api_client *r, const struct lake_uri *uri, struct output *table,
                        struct err *err)
{
    json_t *answer = NULL, *rule;
    size_t i;
    int code = api_client_send(r, "GET", lake_cli_path(r, uri, "{repo}/branch_protection"), NULL,
                               &answer, err);

    json_array_foreach(answer, i, rule) manage_row(table, rule);
    json_decref(answer);
    return code;
}

static int branch_protect_run(struct api_client *r, const struct invocation *inv,
                              struct output *table, struct err *err)
{
    const char *method = invocation_flag(inv, "remove") ? "DELETE" : "POST";
    struct lake_cli_body body;
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REPO, err);

    if (code == 0 && inv->args.len > 1) {
        lake_cli_body_begin(&body);
        json_out_member_str(&body.w, "pattern", str_z(inv->args.items[1]));
        code = lake_cli_send(r, method, lake_cli_path(r, &uri, "{repo}/branch_protection"), &body,
                             NULL, err);
    }
    return code == 0 ? protect_show(r, &uri, table, err) : code;
}

static const struct manage_call branch_create = {MANAGE_COLUMNS(branch_columns),
                                                 .run = branch_create_run, .hints = lake_cli_hints};
static const struct manage_call branch_list = {MANAGE_COLUMNS(branch_columns),
                                               .run = branch_list_run, .hints = lake_cli_hints};
static const struct manage_call branch_show = {MANAGE_COLUMNS(branch_columns),
                                               .run = branch_show_run, .hints = lake_cli_hints};
static const struct manage_call branch_delete = {.run = branch_delete_run, .hints = lake_cli_hints};
static const struct manage_call branch_protect = {
    MANAGE_COLUMNS(pattern_columns), .run = branch_protect_run, .hints = lake_cli_hints};

const struct command lake_branch_commands[] = {
    {.name = "lake branch create",
     .arguments = "BRANCH",
     .min_args = 1,
     .max_args = 1,
     .flags = branch_create_flags,
     .configured = true,
     .summary = "Make a branch",
     .help = "Makes a branch. No object is copied.",
     .examples = "weir lake branch create lake://weather/fix\n"
                 "weir lake branch create lake://weather/old --source v1.0",
     .call = &branch_create},
    {.name = "lake branch list",
     .arguments = "REPO",
     .min_args = 1,
     .max_args = 1,
     .flags = branch_list_flags,
     .configured = true,
     .summary = "List the branches of a repository",
     .help = "Lists the branches by name, with the ids of their heads.",
     .examples = "weir lake branch list lake://weather",
     .call = &branch_list},
    {.name = "lake branch show",
     .arguments = "BRANCH",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Show a branch",
     .help = "Shows one branch with the id of its head.",
     .examples = "weir lake branch show lake://weather/main",
     .call = &branch_show},
    {.name = "lake branch delete",
     .arguments = "BRANCH",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Delete a branch",
     .help = "Deletes a branch, with its changes that are not committed. The default branch cannot "
             "be deleted.",
     .examples = "weir lake branch delete lake://weather/fix",
     .call = &branch_delete},
    {.name = "lake branch protect",
     .arguments = "REPO [PATTERN]",
     .min_args = 1,
     .max_args = 2,
     .flags = branch_protect_flags,
     .configured = true,
     .summary = "Protect branches, and show which are protected",
     .help = "Refuses writes and commits to the branches that PATTERN matches; they change by "
             "merges only. In PATTERN, * stands for any text and ? for any character. The command "
             "shows all patterns; without PATTERN it changes nothing.",
     .examples = "weir lake branch protect lake://weather main\n"
                 "weir lake branch protect lake://weather 'release-*'\n"
                 "weir lake branch protect lake://weather main --remove",
     .call = &branch_protect},
    {0},
};
