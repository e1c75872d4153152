/* weir lake import: objects of a bucket become objects of a branch, without being copied. */
#include "lake/commands/cli.h"

#include <stdio.h>
#include <unistd.h>

static const struct flag import_flags[] = {
    {"message", FLAG_TEXT, "TEXT", NULL, "What the import's commit says.", .letter = 'm'},
    {"meta", FLAG_TEXT, "KEY=VALUE", NULL, "Metadata of the commit; may be given several times."},
    {"object", FLAG_SWITCH, NULL, NULL, "SOURCE is one object, and not the beginning of keys."},
    {"no-wait", FLAG_SWITCH, NULL, NULL, "Do not wait for the end of the import."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column import_columns[] = {
    {"id"}, {"completed"}, {"ingested_objects", .number = true}, {"commit_id"}};

/* Begins the import; *id is in the client's arena. */
static int import_start(struct api_client *r, const struct invocation *inv,
                        const struct lake_uri *to, const char **id, struct err *err)
{
    const char *message = invocation_flag(inv, "message");
    struct lake_cli_body body;
    json_t *answer = NULL;

    lake_cli_body_begin(&body);
    json_out_key(&body.w, "paths");
    json_out_open(&body.w, '[');
    json_out_open(&body.w, '{');
    json_out_member_str(&body.w, "type",
                        invocation_flag(inv, "object") ? STR("object") : STR("common_prefix"));
    json_out_member_str(&body.w, "path", str_z(inv->args.items[0]));
    json_out_member_str(&body.w, "destination", to->path);
    json_out_close(&body.w, '}');
    json_out_close(&body.w, ']');
    json_out_key(&body.w, "commit");
    json_out_open(&body.w, '{');
    json_out_member_str(&body.w, "message", str_z(message ? message : "Import objects"));
    int code = lake_cli_metadata(&body.w, inv, "metadata", err);
    json_out_close(&body.w, '}');
    if (code < 0)
        buf_release(&body.text);
    else
        code = lake_cli_send(r, "POST", lake_cli_path(r, to, "{repo}/branches/{ref}/import"), &body,
                             &answer, err);
    if (code == 0)
        *id = arena_z(&r->arena, json_get_str(answer, "id", STR_EMPTY));
    json_decref(answer);
    return code;
}

/* Adds a row for the status. An import that failed is an error. */
static int import_show_status(json_t *status, const char *id, struct output *table, struct err *err)
{
    struct str error = json_get_str(json_object_get(status, "error"), "message", STR_EMPTY);
    struct str commit = json_get_str(json_object_get(status, "commit"), "id", STR_EMPTY);

    if (error.len)
        return err_set(err, ERR_PEER, STR_FMT, STR_ARG(error));
    json_object_set_new(status, "id", json_string(id));
    json_object_set_new(status, "commit_id", json_stringn(commit.p ? commit.p : "", commit.len));
    manage_row(table, status);
    return 0;
}

static int import_follow(struct api_client *r, const struct lake_uri *to, const char *id, bool wait,
                         struct output *table, struct err *err)
{
    bool shows = wait && isatty(STDERR_FILENO);
    struct buf path = {0};
    json_t *status = NULL;
    int code;

    buf_append_z(&path, lake_cli_path(r, to, "{repo}/branches/{ref}/import"));
    manage_query(&path, "id", id);
    while ((code = api_client_send(r, "GET", path.p, NULL, &status, err)) == 0 && wait &&
           !json_get_bool(status, "completed", true)) {
        if (shows)
            fprintf(stderr, "\r%jd objects\033[K",
                    (intmax_t)json_get_i64(status, "ingested_objects", 0));
        json_decref(status);
        status = NULL;
        manage_poll_wait();
    }
    if (shows)
        fprintf(stderr, "\r\033[K");
    if (code == 0)
        code = import_show_status(status, id, table, err);
    json_decref(status);
    buf_release(&path);
    return code;
}

static int lake_import_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    bool wait = invocation_flag(inv, "no-wait") == NULL;
    struct lake_uri to;
    const char *id = NULL;
    int code = lake_uri_parse(&to, inv->args.items[1], LAKE_URI_REF, err);

    if (code == 0)
        code = import_start(r, inv, &to, &id, err);
    return code == 0 ? import_follow(r, &to, id, wait, table, err) : code;
}

static const struct manage_call import_call = {MANAGE_COLUMNS(import_columns),
                                               .run = lake_import_run, .hints = lake_cli_hints};

const struct command lake_import_commands[] = {
    {.name = "lake import",
     .arguments = "SOURCE PLACE",
     .min_args = 2,
     .max_args = 2,
     .flags = import_flags,
     .configured = true,
     .summary = "Make objects of a bucket objects of a branch, without copying them",
     .help =
         "Makes a commit on the branch of PLACE, lake://REPO/BRANCH/PREFIX, in which every "
         "object of the bucket whose key begins with that of SOURCE, s3://BUCKET/PREFIX, stands "
         "below PLACE. What was below PLACE before is gone from the branch. The objects stay "
         "where they are, and must stay there. The branch must have no uncommitted changes.",
     .examples = "weir lake import s3://old-data/2025/ lake://weather/main/2025/ --message 2025\n"
                 "weir lake import s3://old-data/a.csv lake://weather/main/a.csv --object",
     .call = &import_call},
    {0},
};
