/* weir lake commit, log, show and diff: make commits, and show the history. */
#include "lake/commands/cli.h"

static const struct flag commit_flags[] = {
    {"message", FLAG_TEXT, "TEXT", NULL, "What the commit says.", .letter = 'm'},
    {"meta", FLAG_TEXT, "KEY=VALUE", NULL, "Metadata of the commit; may be given several times."},
    {"path", FLAG_TEXT, "PATH", NULL,
     "Commit only this path, or what is below it if it ends with '/'; may be given several times."},
    {"allow-empty", FLAG_SWITCH, NULL, NULL, "Commit also when nothing has changed."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag log_flags[] = {
    {"max", FLAG_TEXT, "N", NULL, "Show at most N commits; default: 100.", .letter = 'n'},
    {"path", FLAG_TEXT, "PATH", NULL,
     "Only commits that changed this path, or something below it if it ends with '/'; may be given "
     "several times."},
    {"since", FLAG_TEXT, "TIME", NULL, "Only commits since this time, as 2026-01-31T00:00:00Z."},
    {"first-parent", FLAG_SWITCH, NULL, NULL, "Follow only first parents."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag diff_flags[] = {
    {"prefix", FLAG_TEXT, "TEXT", NULL, "Only paths that begin with TEXT."},
    {"two-dot", FLAG_SWITCH, NULL, NULL,
     "Compare the refs themselves, and not with their common ancestor."},
    {"max", FLAG_TEXT, "N", NULL, "Show at most N paths; default: all.", .letter = 'n'},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column commit_columns[] = {
    {"id"}, {"created"}, {"committer"}, {"message"}, {"parents"}, {"metadata", .json = true}};
static const struct output_column log_columns[] = {{"id"}, {"created"}, {"committer"}, {"message"}};
static const struct output_column diff_columns[] = {
    {"type"}, {"path"}, {"size_bytes", .number = true}};

/* --- commit --- */

/* Writes the paths of all flags --path as the member "paths", if there are any. */
static void commit_write_paths(struct json_out *w, const struct invocation *inv)
{
    if (!invocation_flag(inv, "path"))
        return;
    json_out_key(w, "paths");
    json_out_open(w, '[');
    for (size_t i = 0; i < inv->flags.len; i++)
        if (strcmp(inv->flags.items[i].flag->name, "path") == 0)
            json_out_str(w, str_z(inv->flags.items[i].value));
    json_out_close(w, ']');
}

static int lake_commit_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    struct lake_cli_body body;
    struct lake_uri uri;
    json_t *answer = NULL;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REF, err);

    if (code == 0 && !invocation_flag(inv, "message"))
        code = err_set(err, ERR_INVALID, "a commit needs a message: -m TEXT, or --message TEXT");
    if (code < 0)
        return code;
    lake_cli_body_begin(&body);
    manage_flag(&body.w, inv, "message", "message");
    lake_cli_switch(&body.w, inv, "allow-empty", "allow_empty");
    commit_write_paths(&body.w, inv);
    code = lake_cli_metadata(&body.w, inv, "metadata", err);
    if (code < 0)
        buf_release(&body.text);
    else
        code = lake_cli_send(r, "POST", lake_cli_path(r, &uri, "{repo}/branches/{ref}/commits"),
                             &body, &answer, err);
    if (code == 0)
        lake_cli_row(table, answer);
    json_decref(answer);
    return code;
}

/* --- history --- */

static void log_add_paths(struct buf *path, const struct invocation *inv)
{
    for (size_t i = 0; i < inv->flags.len; i++) {
        struct str value = str_z(inv->flags.items[i].value);
        if (strcmp(inv->flags.items[i].flag->name, "path") == 0)
            manage_query(path, str_ends(value, STR("/")) ? "prefixes" : "objects", value.p);
    }
}

static int lake_log_run(struct api_client *r, const struct invocation *inv, struct output *table,
                        struct err *err)
{
    enum { LOG_USUAL = 100 };
    struct buf path = {0};
    struct lake_uri uri;
    size_t max = 0;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REF, err);

    if (code == 0)
        code = lake_cli_max(inv, &max, err);
    if (code < 0)
        return code;
    buf_append_z(&path, lake_cli_path(r, &uri, "{repo}/refs/{ref}/commits"));
    log_add_paths(&path, inv);
    manage_query(&path, "since", invocation_flag(inv, "since"));
    manage_query(&path, "first_parent", invocation_flag(inv, "first-parent") ? "true" : NULL);
    code = lake_cli_rows(r, path.p, max ? max : LOG_USUAL, table, err);
    buf_release(&path);
    return code;
}

static int lake_show_run(struct api_client *r, const struct invocation *inv, struct output *table,
                         struct err *err)
{
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REF, err);

    return code == 0
               ? lake_cli_one(r, "GET", lake_cli_path(r, &uri, "{repo}/commits/{ref}"), table, err)
               : code;
}

/* --- differences --- */

/* Appends the path of the call, which compares a branch with its head or two refs with each
 * other. */
static int diff_append_path(struct buf *out, struct api_client *r, const struct invocation *inv,
                            struct err *err)
{
    struct lake_uri left;
    struct str right;
    int code = lake_uri_parse(&left, inv->args.items[0], LAKE_URI_REF, err);

    if (code < 0)
        return code;
    if (inv->args.len == 1) {
        buf_append_z(out, lake_cli_path(r, &left, "{repo}/branches/{ref}/diff?amount=1000"));
        return 0;
    }
    code = lake_uri_parse_ref(&right, &left, inv->args.items[1], err);
    if (code < 0)
        return code;
    buf_append_z(out, lake_cli_path(r, &left, "{repo}/refs/{ref}/diff/"));
    url_encode(out, right, false);
    buf_append_z(out, "?amount=1000");
    manage_query(out, "type", invocation_flag(inv, "two-dot") ? "two_dot" : "three_dot");
    return 0;
}

static int lake_diff_run(struct api_client *r, const struct invocation *inv, struct output *table,
                         struct err *err)
{
    struct buf path = {0};
    size_t max = 0;
    int code = lake_cli_max(inv, &max, err);

    if (code == 0)
        code = diff_append_path(&path, r, inv, err);
    manage_query(&path, "prefix", invocation_flag(inv, "prefix"));
    if (code == 0)
        code = lake_cli_rows(r, path.p, max, table, err);
    buf_release(&path);
    return code;
}

static const struct manage_call commit_call = {MANAGE_COLUMNS(commit_columns),
                                               .run = lake_commit_run, .hints = lake_cli_hints};
static const struct manage_call log_call = {MANAGE_COLUMNS(log_columns), .run = lake_log_run,
                                            .hints = lake_cli_hints};
static const struct manage_call show_call = {MANAGE_COLUMNS(commit_columns), .run = lake_show_run,
                                             .hints = lake_cli_hints};
static const struct manage_call diff_call = {MANAGE_COLUMNS(diff_columns), .run = lake_diff_run,
                                             .hints = lake_cli_hints};

const struct command lake_commit_commands[] = {
    {.name = "lake commit",
     .arguments = "BRANCH",
     .min_args = 1,
     .max_args = 1,
     .flags = commit_flags,
     .configured = true,
     .summary = "Commit the changes of a branch",
     .help = "Commits what was written to the branch since its head, and shows the commit.",
     .examples = "weir lake commit lake://weather/main -m 'January'\n"
                 "weir lake commit lake://weather/main -m 'Fix' --meta ticket=7 --path 2026/",
     .call = &commit_call},
    {.name = "lake log",
     .arguments = "REF",
     .min_args = 1,
     .max_args = 1,
     .flags = log_flags,
     .configured = true,
     .summary = "Show the history of a ref",
     .help = "Lists commits, the newest first.",
     .examples = "weir lake log lake://weather/main\n"
                 "weir lake log lake://weather/v1.0 --path 2026/ --max 10",
     .call = &log_call},
    {.name = "lake show",
     .arguments = "REF",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Show a commit",
     .help = "Shows the commit that a ref means: a branch, a tag, an id or an expression such as "
             "main~2.",
     .examples = "weir lake show lake://weather/main~1",
     .call = &show_call},
    {.name = "lake diff",
     .arguments = "REF [REF]",
     .min_args = 1,
     .max_args = 2,
     .flags = diff_flags,
     .configured = true,
     .summary = "Show what differs",
     .help = "With one ref, lists the changes of that branch that are not committed. With two, "
             "lists what the second has changed since their common ancestor.",
     .examples = "weir lake diff lake://weather/main\n"
                 "weir lake diff lake://weather/main fix\n"
                 "weir lake diff lake://weather/v1.0 v1.1 --two-dot --prefix 2026/",
     .call = &diff_call},
    {0},
};
