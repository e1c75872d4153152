/* weir lake import: makes objects of a bucket objects of a branch, without copying their bytes. */
#include "lake/commands/cli.h"

#include <stdio.h>
#include <unistd.h>

static const struct flag import_flags[] = {
    {"message", FLAG_TEXT, "TEXT", NULL, "What the import's commit says.", .letter = 'm'},
    {"meta", FLAG_TEXT, "KEY=VALUE", NULL, "Metadata of the commit; may be given several times."},
    {"object", FLAG_SWITCH, NULL, NULL, "SOURCE is one object, and not a folder."},
    {"force", FLAG_SWITCH, NULL, NULL,
     "PLACE may be a whole branch, whose objects are all replaced."},
    {"no-wait", FLAG_SWITCH, NULL, NULL, "Do not wait for the end of the import."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column import_columns[] = {
    {"id"}, {"completed", .truth = true}, {"ingested_objects", .number = true}, {"commit_id"}};

/* Returns the text with '/' added, unless the text is empty or ends with '/'. Without the '/' a
 * source 2025 would also mean the keys below 2025-old/. */
static struct str import_folder(struct api_client *r, struct str text)
{
    bool done = !text.len || str_ends(text, STR("/"));

    return done ? text : arena_fmt(&r->arena, STR_FMT "/", STR_ARG(text));
}

/* Writes the source of the objects and their destination in the branch. */
static void import_write_path(struct api_client *r, struct json_out *w,
                              const struct invocation *inv, const struct lake_uri *to)
{
    struct str source = str_z(inv->args.items[0]);
    bool object = invocation_flag(inv, "object") != NULL;

    json_out_key(w, "paths");
    json_out_open(w, '[');
    json_out_open(w, '{');
    json_out_member_str(w, "type", object ? STR("object") : STR("common_prefix"));
    json_out_member_str(w, "path", object ? source : import_folder(r, source));
    json_out_member_str(w, "destination", object ? to->path : import_folder(r, to->path));
    json_out_close(w, '}');
    json_out_close(w, ']');
}

/* Starts the import; *id is in the client's arena. */
static int import_start(struct api_client *r, const struct invocation *inv,
                        const struct lake_uri *to, const char **id, struct err *err)
{
    const char *message = invocation_flag(inv, "message");
    struct lake_cli_body body;
    json_t *answer = NULL;

    lake_cli_body_begin(&body);
    import_write_path(r, &body.w, inv, to);
    json_out_member_bool(&body.w, "require_objects", true);
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

/* Adds a row for the status of the import. Returns an error if the import failed. */
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
    struct buf path = {0}, told = {0};
    json_t *status = NULL;
    int code;

    buf_append_z(&path, lake_cli_path(r, to, "{repo}/branches/{ref}/import"));
    manage_query(&path, "id", id);
    while ((code = api_client_send(r, "GET", path.p, NULL, &status, err)) == 0 && wait &&
           !json_get_bool(status, "completed", true)) {
        lake_cli_tell_error(&told, status);
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
    buf_release(&told);
    buf_release(&path);
    return code;
}

static int lake_import_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    bool wait = invocation_flag(inv, "no-wait") == NULL;
    struct lake_uri to;
    const char *id = NULL;
    int code = lake_uri_parse(&to, inv->args.items[1], LAKE_URI_FOLDER, err);

    if (code == 0 && !to.path.len && !invocation_flag(inv, "force"))
        code = err_set(err, ERR_INVALID,
                       "the import would replace all objects of the branch; name a folder, or give "
                       "--force");
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
         "Makes a commit on the branch of PLACE, lake://REPO/BRANCH/FOLDER, in which every "
         "object below SOURCE, s3://BUCKET/FOLDER, stands below PLACE. What was below PLACE "
         "before is gone from the branch. The objects stay where they are, and must stay there. "
         "The branch must have no uncommitted changes.\n\n"
         "A '/' is added to a SOURCE or PLACE that does not end with one. An import that finds "
         "no object fails and changes nothing.",
     .examples = "weir lake import s3://old-data/2025/ lake://weather/main/2025/ --message 2025\n"
                 "weir lake import s3://old-data/a.csv lake://weather/main/a.csv --object",
     .call = &import_call},
    {0},
};
