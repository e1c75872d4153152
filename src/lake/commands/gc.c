/* weir lake gc: sets the rules of garbage collection, starts runs and shows their reports. */
#include "lake/commands/cli.h"

#include <stdio.h>

static const struct flag gc_rules_flags[] = {
    {"days", FLAG_TEXT, "N", NULL,
     "Keep commits for N days, on branches without a rule of their own."},
    {"branch", FLAG_TEXT, "NAME=N", NULL,
     "Keep the commits of a branch for N days; may be given several times."},
    {"remove", FLAG_SWITCH, NULL, NULL, "Remove the rules: every commit is kept."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag gc_run_flags[] = {
    {"mark-only", FLAG_SWITCH, NULL, NULL, "Find what could be removed, and remove nothing."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column gc_rule_columns[] = {{"branch_id"},
                                                       {"retention_days", .number = true}};
static const struct output_column gc_report_columns[] = {{"run"},
                                                         {"stage"},
                                                         {"mark_only", .truth = true},
                                                         {"started"},
                                                         {"updated"},
                                                         {"cutoff"},
                                                         {"commits_expired", .number = true},
                                                         {"bodies_listed", .number = true},
                                                         {"bodies_dead", .number = true},
                                                         {"bodies_dead_bytes", .number = true},
                                                         {"bodies_removed", .number = true},
                                                         {"nodes_listed", .number = true},
                                                         {"nodes_dead", .number = true},
                                                         {"nodes_dead_bytes", .number = true},
                                                         {"nodes_removed", .number = true},
                                                         {"error"}};

/* --- rules --- */

static int gc_days(const char *flag, struct str text, uint64_t *out, struct err *err)
{
    return str_u64(text, out) < 0 || *out == 0
               ? err_set(err, ERR_INVALID, "--%s takes a number of days from 1 on", flag)
               : 0;
}

static int gc_write_branches(struct json_out *w, const struct invocation *inv, struct err *err)
{
    struct str name, days;
    uint64_t number;

    json_out_key(w, "branches");
    json_out_open(w, '[');
    for (size_t i = 0; i < inv->flags.len; i++) {
        if (strcmp(inv->flags.items[i].flag->name, "branch") != 0)
            continue;
        if (!str_cut(str_z(inv->flags.items[i].value), '=', &name, &days))
            return err_set(err, ERR_INVALID, "--branch takes NAME=N");
        int code = gc_days("branch", days, &number, err);
        if (code < 0)
            return code;
        json_out_open(w, '{');
        json_out_member_str(w, "branch_id", name);
        json_out_member_u64(w, "retention_days", number);
        json_out_close(w, '}');
    }
    json_out_close(w, ']');
    return 0;
}

static int gc_rules_send(struct api_client *r, const struct invocation *inv, const char *path,
                         struct err *err)
{
    struct lake_cli_body body;
    uint64_t days = 0;
    int code = gc_days("days", str_z(invocation_flag(inv, "days")), &days, err);

    if (code < 0)
        return code;
    lake_cli_body_begin(&body);
    json_out_member_u64(&body.w, "default_retention_days", days);
    code = gc_write_branches(&body.w, inv, err);
    if (code < 0)
        buf_release(&body.text);
    return code == 0 ? lake_cli_send(r, "PUT", path, &body, NULL, err) : code;
}

/* Shows the rules: a row for the default, then one for each branch. */
static int gc_rules_list(struct api_client *r, const char *path, struct output *table,
                         struct err *err)
{
    json_t *answer = NULL, *rule;
    size_t i;
    int code = api_client_send(r, "GET", path, NULL, &answer, err);

    if (code < 0 && strstr(err->text, "garbage collection rules not found")) {
        fprintf(stderr, "no rules: every commit is kept\n");
        return 0;
    }
    if (code < 0)
        return code;
    output_cell(table, STR("*"));
    output_cellf(table, "%jd", (intmax_t)json_get_i64(answer, "default_retention_days", 0));
    json_array_foreach(json_object_get(answer, "branches"), i, rule) manage_row(table, rule);
    json_decref(answer);
    return 0;
}

static int gc_rules_run(struct api_client *r, const struct invocation *inv, struct output *table,
                        struct err *err)
{
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REPO, err);

    if (code < 0)
        return code;
    const char *path = lake_cli_path(r, &uri, "{repo}/settings/gc_rules");
    if (invocation_flag(inv, "remove"))
        return lake_cli_one(r, "DELETE", path, NULL, err);
    if (invocation_flag(inv, "branch") && !invocation_flag(inv, "days"))
        return err_set(err, ERR_INVALID, "rules of branches need --days for all others");
    if (invocation_flag(inv, "days"))
        code = gc_rules_send(r, inv, path, err);
    return code == 0 ? gc_rules_list(r, path, table, err) : code;
}

/* --- runs --- */

static int gc_run_run(struct api_client *r, const struct invocation *inv, struct output *table,
                      struct err *err)
{
    struct lake_cli_body body;
    struct lake_uri uri;
    json_t *answer = NULL;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REPO, err);

    if (code < 0)
        return code;
    lake_cli_body_begin(&body);
    lake_cli_switch(&body.w, inv, "mark-only", "mark_only");
    code = lake_cli_send(r, "POST", lake_cli_path(r, &uri, "{repo}/gc/run"), &body, &answer, err);
    if (code == 0)
        manage_row(table, answer);
    json_decref(answer);
    return code;
}

static int gc_report_run(struct api_client *r, const struct invocation *inv, struct output *table,
                         struct err *err)
{
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REPO, err);

    return code == 0 ? lake_cli_one(r, "GET", lake_cli_path(r, &uri, "{repo}/gc/run"), table, err)
                     : code;
}

static int gc_claim_run(struct api_client *r, const struct invocation *inv, struct output *table,
                        struct err *err)
{
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REPO, err);

    (void)table;
    return code == 0 ? lake_cli_one(r, "POST", lake_cli_path(r, &uri, "{repo}/gc/claim"), NULL, err)
                     : code;
}

static const struct manage_call gc_rules = {MANAGE_COLUMNS(gc_rule_columns), .run = gc_rules_run,
                                            .hints = lake_cli_hints};
static const struct manage_call gc_run = {MANAGE_COLUMNS(gc_report_columns), .run = gc_run_run,
                                          .hints = lake_cli_hints};
static const struct manage_call gc_report = {MANAGE_COLUMNS(gc_report_columns),
                                             .run = gc_report_run, .hints = lake_cli_hints};

static const struct manage_call gc_claim = {.run = gc_claim_run, .hints = lake_cli_hints};

const struct command lake_gc_commands[] = {
    {.name = "lake gc rules",
     .arguments = "REPO",
     .min_args = 1,
     .max_args = 1,
     .flags = gc_rules_flags,
     .configured = true,
     .summary = "Show and set how long commits are kept",
     .help =
         "Shows for how many days the commits behind the head of each branch are kept; * stands "
         "for branches without a rule of their own. Heads and tags are always kept. Without rules "
         "every commit is kept. With --days, replaces all rules; branches that are not named lose "
         "theirs.",
     .examples = "weir lake gc rules lake://weather\n"
                 "weir lake gc rules lake://weather --days 30 --branch main=365\n"
                 "weir lake gc rules lake://weather --remove",
     .call = &gc_rules},
    {.name = "lake gc run",
     .arguments = "REPO",
     .min_args = 1,
     .max_args = 1,
     .flags = gc_run_flags,
     .configured = true,
     .summary = "Begin a garbage collection",
     .help =
         "Asks for a collection: commits past their days expire, and objects and files of trees "
         "that no ref leads to are removed from the namespace. A worker carries it out; `weir "
         "lake gc report` shows how far it is.",
     .examples = "weir lake gc run lake://weather\nweir lake gc run lake://weather --mark-only",
     .call = &gc_run},
    {.name = "lake gc report",
     .arguments = "REPO",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Show what the last garbage collection did",
     .help = "Shows what the last collection found and removed, or has removed so far.",
     .examples = "weir lake gc report lake://weather",
     .call = &gc_report},
    {.name = "lake gc claim",
     .arguments = "REPO",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Make this lake the one that may remove a repository's files",
     .help =
         "Says that this lake alone uses the repository's storage namespace from now on. A "
         "collection that was refused because another lake runs on a copy or a backup of the same "
         "records is allowed here then, and refused there. Stop the other weir first: this lake "
         "removes the files that only the other one knows. For administrators.",
     .examples = "weir lake gc claim lake://weather",
     .call = &gc_claim},
    {0},
};
