/* weir lake repo: repositories. */
#include "lake/commands/cli.h"

static const struct flag repo_create_flags[] = {
    {"branch", FLAG_TEXT, "NAME", NULL, "The name of the first branch; default: main."},
    {"read-only", FLAG_SWITCH, NULL, NULL, "Refuse changes that are not forced."},
    {"bare", FLAG_SWITCH, NULL, NULL, "Make no first commit and no branch, for a restore."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag repo_list_flags[] = {
    {"prefix", FLAG_TEXT, "TEXT", NULL, "Only repositories whose names begin with TEXT."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag repo_delete_flags[] = {
    {"force", FLAG_SWITCH, NULL, NULL, "Delete also a read-only repository."},
    {"purge", FLAG_SWITCH, NULL, NULL, "Remove the objects of its namespace too, a while later."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column repo_columns[] = {
    {"id"}, {"default_branch"}, {"storage_namespace"}, {"read_only", .truth = true}, {"created"}};

static int repo_create_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    const char *path =
        invocation_flag(inv, "bare") ? "/api/v1/repositories?bare=true" : "/api/v1/repositories";
    struct lake_cli_body body;
    json_t *answer = NULL;

    lake_cli_body_begin(&body);
    json_out_member_str(&body.w, "name", str_z(inv->args.items[0]));
    json_out_member_str(&body.w, "storage_namespace", str_z(inv->args.items[1]));
    manage_flag(&body.w, inv, "branch", "default_branch");
    lake_cli_switch(&body.w, inv, "read-only", "read_only");
    int code = lake_cli_send(r, "POST", path, &body, &answer, err);
    if (code == 0)
        lake_cli_row(table, answer);
    json_decref(answer);
    return code;
}

static int repo_list_run(struct api_client *r, const struct invocation *inv, struct output *table,
                         struct err *err)
{
    struct buf path = {0};

    buf_append_z(&path, "/api/v1/repositories?amount=1000");
    manage_query(&path, "prefix", invocation_flag(inv, "prefix"));
    int code = lake_cli_rows(r, path.p, 0, table, err);
    buf_release(&path);
    return code;
}

static int repo_show_run(struct api_client *r, const struct invocation *inv, struct output *table,
                         struct err *err)
{
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REPO, err);

    return code == 0 ? lake_cli_one(r, "GET", lake_cli_path(r, &uri, "{repo}"), table, err) : code;
}

static int repo_delete_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    struct buf path = {0};
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REPO, err);

    (void)table;
    if (code < 0)
        return code;
    buf_append_z(&path, lake_cli_path(r, &uri, "{repo}"));
    manage_query(&path, "force", invocation_flag(inv, "force") ? "true" : NULL);
    manage_query(&path, "purge", invocation_flag(inv, "purge") ? "true" : NULL);
    code = lake_cli_one(r, "DELETE", path.p, NULL, err);
    buf_release(&path);
    return code;
}

static const struct manage_call repo_create = {MANAGE_COLUMNS(repo_columns), .run = repo_create_run,
                                               .hints = lake_cli_hints};
static const struct manage_call repo_list = {MANAGE_COLUMNS(repo_columns), .run = repo_list_run,
                                             .hints = lake_cli_hints};
static const struct manage_call repo_show = {MANAGE_COLUMNS(repo_columns), .run = repo_show_run,
                                             .hints = lake_cli_hints};
static const struct manage_call repo_delete = {.run = repo_delete_run, .hints = lake_cli_hints};

const struct command lake_repo_commands[] = {
    {.name = "lake repo create",
     .arguments = "NAME NAMESPACE",
     .min_args = 2,
     .max_args = 2,
     .flags = repo_create_flags,
     .configured = true,
     .summary = "Make a repository",
     .help = "Makes a repository. NAMESPACE says where its objects lie, as s3://BUCKET/PREFIX; the "
             "bucket must be there, and no other repository may have the namespace. The repository "
             "is then a bucket too: its keys begin with the name of a branch.",
     .examples = "weir lake repo create weather s3://lake-data/weather\n"
                 "weir lake repo create archive s3://lake-data/archive --branch trunk --read-only",
     .call = &repo_create},
    {.name = "lake repo list",
     .flags = repo_list_flags,
     .configured = true,
     .summary = "List the repositories",
     .help = "Lists the repositories by name.",
     .examples = "weir lake repo list\nweir lake repo list --prefix wea --json",
     .call = &repo_list},
    {.name = "lake repo show",
     .arguments = "REPO",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Show a repository",
     .help = "Shows one repository.",
     .examples = "weir lake repo show lake://weather",
     .call = &repo_show},
    {.name = "lake repo delete",
     .arguments = "REPO",
     .min_args = 1,
     .max_args = 1,
     .flags = repo_delete_flags,
     .configured = true,
     .summary = "Delete a repository",
     .help =
         "Deletes the repository with its branches, tags and commits. Its name is free at once. "
         "The objects stay in the bucket of its namespace.",
     .examples = "weir lake repo delete lake://weather",
     .call = &repo_delete},
    {0},
};
