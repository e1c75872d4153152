/* weir lake ls, stat, cat and rm: objects of a ref. */
#include "lake/commands/cli.h"

#include <stdio.h>

static const struct flag ls_flags[] = {
    {"recursive", FLAG_SWITCH, NULL, NULL, "List all objects below, and not folders.",
     .letter = 'r'},
    {"max", FLAG_TEXT, "N", NULL, "Show at most N lines; default: all.", .letter = 'n'},
    CLIENT_FLAGS,
    {0},
};

static const struct flag rm_flags[] = {
    {"recursive", FLAG_SWITCH, NULL, NULL, "Remove all objects of the folder, or of the branch.",
     .letter = 'r'},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column ls_columns[] = {
    {"path"}, {"size_bytes", .number = true}, {"modified"}, {"checksum"}};
static const struct output_column stat_columns[] = {{"path"},
                                                    {"size_bytes", .number = true},
                                                    {"modified"},
                                                    {"checksum"},
                                                    {"content_type"},
                                                    {"physical_address"},
                                                    {"metadata", .json = true}};

static int ls_run(struct api_client *r, const struct invocation *inv, struct output *table,
                  struct err *err)
{
    bool recursive = invocation_flag(inv, "recursive") != NULL;
    struct lake_uri uri;
    size_t max = 0;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_FOLDER, err);

    if (code == 0)
        code = lake_cli_max(inv, &max, err);
    if (code < 0)
        return code;
    const char *path = lake_cli_path(
        r, &uri,
        recursive ? "{repo}/refs/{ref}/objects/ls?amount=1000&prefix={path}"
                  : "{repo}/refs/{ref}/objects/ls?amount=1000&delimiter=%2F&prefix={path}");
    return lake_cli_rows(r, path, max, table, err);
}

static int stat_run(struct api_client *r, const struct invocation *inv, struct output *table,
                    struct err *err)
{
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_PATH, err);

    return code == 0
               ? lake_cli_one(r, "GET",
                              lake_cli_path(r, &uri, "{repo}/refs/{ref}/objects/stat?path={path}"),
                              table, err)
               : code;
}

/* --- cat --- */

static int cat_write(void *ctx, struct str piece, struct err *err)
{
    (void)ctx;
    return fwrite(piece.p, 1, piece.len, stdout) == piece.len
               ? 0
               : err_set(err, ERR_IO, "standard output takes no more");
}

static int cat_run(struct api_client *r, const struct invocation *inv, struct output *table,
                   struct err *err)
{
    struct client_request request = {
        .method = "GET", .no_retry = true, .on_body = cat_write, .on_success_only = true};
    struct client_response response;
    struct lake_uri uri;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_PATH, err);

    (void)table;
    if (code == 0)
        code =
            api_client_exchange(r, lake_cli_path(r, &uri, "{repo}/refs/{ref}/objects?path={path}"),
                                &request, NULL, &response, err);
    if (code == 0 && response.status != 200)
        code = api_client_error(r, &response, err);
    return code;
}

/* --- rm --- */

/* Removes the objects of one page of a listing. */
static int rm_page(struct api_client *r, const struct lake_uri *uri, const json_t *items,
                   struct err *err)
{
    struct lake_cli_body body;
    json_t *answer = NULL;
    const json_t *item;
    size_t i;

    lake_cli_body_begin(&body);
    json_out_key(&body.w, "paths");
    json_out_open(&body.w, '[');
    json_array_foreach(items, i, item) json_out_str(&body.w, json_get_str(item, "path", STR_EMPTY));
    json_out_close(&body.w, ']');
    int code =
        lake_cli_send(r, "POST", lake_cli_path(r, uri, "{repo}/branches/{ref}/objects/delete"),
                      &body, &answer, err);
    const json_t *failed = json_array_get(json_object_get(answer, "errors"), 0);
    if (code == 0 && failed)
        code = err_set(err, ERR_PEER, "%s: %s", json_string_value(json_object_get(failed, "path")),
                       json_string_value(json_object_get(failed, "message")));
    json_decref(answer);
    return code;
}

/* Removes one object. The API succeeds even if there is no object, so the command first asks
 * whether it exists. A user without the right to ask may still have the right to remove. */
static int rm_object(struct api_client *r, const struct lake_uri *uri, struct err *err)
{
    const char *stat = lake_cli_path(r, uri, "{repo}/refs/{ref}/objects/stat?path={path}");
    const char *path = lake_cli_path(r, uri, "{repo}/branches/{ref}/objects?path={path}");
    int code = lake_cli_one(r, "GET", stat, NULL, err);

    if (code < 0 && strstr(err->text, "path not found"))
        return err_set(err, ERR_NOT_FOUND, "path not found; a folder needs -r");
    return lake_cli_one(r, "DELETE", path, NULL, err);
}

static int rm_below(struct api_client *r, const struct lake_uri *uri, struct err *err)
{
    enum { PAGE = 1000 };
    const char *path =
        lake_cli_path(r, uri, "{repo}/refs/{ref}/objects/ls?amount=1000&prefix={path}");
    struct manage_list list = {.path = path, .name = "results", .max = PAGE, .more = true};
    size_t removed = 0;
    int code = 0;

    while (code == 0 && list.more) {
        json_t *page = NULL;
        code = manage_pages(r, &list, &page, err);
        if (code == 0 && json_array_size(page))
            code = rm_page(r, uri, page, err);
        removed += json_array_size(page);
        json_decref(page);
    }
    if (code == 0 && uri->path.len && !removed)
        code = err_set(err, ERR_NOT_FOUND, "no object is below '" STR_FMT "'", STR_ARG(uri->path));
    return code;
}

static int rm_run(struct api_client *r, const struct invocation *inv, struct output *table,
                  struct err *err)
{
    bool recursive = invocation_flag(inv, "recursive") != NULL;
    struct lake_uri uri;
    int code =
        lake_uri_parse(&uri, inv->args.items[0], recursive ? LAKE_URI_FOLDER : LAKE_URI_PATH, err);

    (void)table;
    if (code < 0)
        return code;
    if (!recursive)
        return rm_object(r, &uri, err);
    lake_uri_to_folder(r, &uri);
    return rm_below(r, &uri, err);
}

static const struct manage_call ls_call = {MANAGE_COLUMNS(ls_columns), .run = ls_run,
                                           .hints = lake_cli_hints};
static const struct manage_call stat_call = {MANAGE_COLUMNS(stat_columns), .run = stat_run,
                                             .hints = lake_cli_hints};
static const struct manage_call cat_call = {.run = cat_run, .hints = lake_cli_hints};
static const struct manage_call rm_call = {.run = rm_run, .hints = lake_cli_hints};

const struct command lake_object_commands[] = {
    {.name = "lake ls",
     .arguments = "PLACE",
     .min_args = 1,
     .max_args = 1,
     .flags = ls_flags,
     .configured = true,
     .summary = "List objects",
     .help = "Lists the objects and folders at a place. A folder is the part of a path up to the "
             "next '/'.",
     .examples =
         "weir lake ls lake://weather/main\nweir lake ls lake://weather/v1.0/2026/ --recursive",
     .call = &ls_call},
    {.name = "lake stat",
     .arguments = "OBJECT",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Show what is known about an object",
     .help = "Shows size, time, checksum, address and metadata of an object.",
     .examples = "weir lake stat lake://weather/main/2026/january.csv",
     .call = &stat_call},
    {.name = "lake cat",
     .arguments = "OBJECT",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Write an object to standard output",
     .help = "Writes the bytes of an object to standard output.",
     .examples = "weir lake cat lake://weather/main~1/2026/january.csv | head",
     .call = &cat_call},
    {.name = "lake rm",
     .arguments = "PLACE",
     .min_args = 1,
     .max_args = 1,
     .flags = rm_flags,
     .configured = true,
     .summary = "Remove objects of a branch",
     .help = "Removes an object from a branch, or with --recursive all objects of a folder: of the "
             "place a, everything below a/, but neither a itself nor ab. Commits that have the "
             "objects keep them.",
     .examples = "weir lake rm lake://weather/main/2026/january.csv\n"
                 "weir lake rm lake://weather/main/2025/ --recursive",
     .call = &rm_call},
    {0},
};
