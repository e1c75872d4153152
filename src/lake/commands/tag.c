/* weir lake tag: tags. */
#include "lake/commands/cli.h"

static const struct output_column tag_columns[] = {{"id"}, {"commit_id"}};

static int tag_create_run(struct api_client *r, const struct invocation *inv, struct output *table,
                          struct err *err)
{
    struct lake_cli_body body;
    struct lake_uri uri;
    struct str ref = STR_EMPTY;
    json_t *answer = NULL;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REF, err);

    if (code == 0)
        code = lake_uri_parse_ref(&ref, &uri, inv->args.items[1], err);
    if (code < 0)
        return code;
    lake_cli_body_begin(&body);
    json_out_member_str(&body.w, "id", uri.ref);
    json_out_member_str(&body.w, "ref", ref);
    code = lake_cli_send(r, "POST", lake_cli_path(r, &uri, "{repo}/tags"), &body, &answer, err);
    if (code == 0)
        lake_cli_row(table, answer);
    json_decref(answer);
    return code;
}

static int tag_list_run(struct api_client *r, const struct invocation *inv, struct output *table,
                        struct err *err)
{
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REPO, err);

    return code == 0
               ? lake_cli_rows(r, lake_cli_path(r, &uri, "{repo}/tags?amount=1000"), 0, table, err)
               : code;
}

static int tag_delete_run(struct api_client *r, const struct invocation *inv, struct output *table,
                          struct err *err)
{
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REF, err);

    (void)table;
    return code == 0
               ? lake_cli_one(r, "DELETE", lake_cli_path(r, &uri, "{repo}/tags/{ref}"), NULL, err)
               : code;
}

static const struct manage_call tag_create = {MANAGE_COLUMNS(tag_columns), .run = tag_create_run,
                                              .hints = lake_cli_hints};
static const struct manage_call tag_list = {MANAGE_COLUMNS(tag_columns), .run = tag_list_run,
                                            .hints = lake_cli_hints};
static const struct manage_call tag_delete = {.run = tag_delete_run, .hints = lake_cli_hints};

const struct command lake_tag_commands[] = {
    {.name = "lake tag create",
     .arguments = "TAG REF",
     .min_args = 2,
     .max_args = 2,
     .flags = client_flags,
     .configured = true,
     .summary = "Make a tag",
     .help = "Gives a name to the commit that REF means. A tag never moves.",
     .examples = "weir lake tag create lake://weather/v1.0 main",
     .call = &tag_create},
    {.name = "lake tag list",
     .arguments = "REPO",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "List the tags of a repository",
     .help = "Lists the tags by name, with the ids of their commits.",
     .examples = "weir lake tag list lake://weather",
     .call = &tag_list},
    {.name = "lake tag delete",
     .arguments = "TAG",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Delete a tag",
     .help = "Deletes a tag. The commit stays.",
     .examples = "weir lake tag delete lake://weather/v1.0",
     .call = &tag_delete},
    {0},
};
