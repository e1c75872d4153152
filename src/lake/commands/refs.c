/* weir lake dump and weir lake restore: write all commits, tags and branches of a repository into
 * its namespace, and read them from there. */
#include "lake/commands/cli.h"

#include "os/file.h"

#include <stdio.h>
#include <unistd.h>

enum { REFS_FILE_MAX = 64 << 10 }; /* most bytes of the file that holds the ids of a dump */

static const struct flag refs_restore_flags[] = {
    {"from", FLAG_TEXT, "FILE", NULL,
     "The ids of the dump, as JSON: what `weir lake dump --json` or lakectl refs-dump printed. "
     "Default: the last dump in the namespace."},
    {"force", FLAG_SWITCH, NULL, NULL,
     "Restore also into a read-only repository, and branches and tags whose trees cannot be read."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column refs_dump_columns[] = {{"commits_meta_range_id"},
                                                         {"tags_meta_range_id"},
                                                         {"branches_meta_range_id"},
                                                         {"rows", .number = true}};
static const struct output_column refs_restore_columns[] = {{"id"}, {"rows", .number = true}};

/* Waits until a task has ended, and shows its progress. *status is owned by the caller. */
static int refs_follow(struct api_client *r, const char *path, struct str id, json_t **status,
                       struct err *err)
{
    bool shows = isatty(STDERR_FILENO);
    struct buf query = {0}, told = {0};
    int code;

    buf_append_z(&query, path);
    manage_query(&query, "task_id", arena_z(&r->arena, id));
    while ((code = api_client_send(r, "GET", query.p, NULL, status, err)) == 0 &&
           !json_get_bool(*status, "done", true)) {
        lake_cli_tell_error(&told, *status);
        if (shows)
            fprintf(stderr, "\r%jd rows\033[K", (intmax_t)json_get_i64(*status, "rows", 0));
        json_decref(*status);
        *status = NULL;
        manage_poll_wait();
    }
    if (shows)
        fprintf(stderr, "\r\033[K");
    buf_release(&told);
    buf_release(&query);
    struct str error = code == 0 ? json_get_str(*status, "error", STR_EMPTY) : STR_EMPTY;
    return error.len ? err_set(err, ERR_PEER, STR_FMT, STR_ARG(error)) : code;
}

/* Starts the task and waits until it has ended. */
static int refs_run(struct api_client *r, const char *path, struct lake_cli_body *body,
                    json_t **status, struct err *err)
{
    json_t *begun = NULL;
    int code = lake_cli_send(r, "POST", path, body, &begun, err);

    if (code == 0)
        code = refs_follow(r, path, json_get_str(begun, "id", STR_EMPTY), status, err);
    json_decref(begun);
    return code;
}

static int refs_dump_run(struct api_client *r, const struct invocation *inv, struct output *table,
                         struct err *err)
{
    struct lake_cli_body body;
    struct lake_uri uri;
    json_t *status = NULL;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REPO, err);

    if (code < 0)
        return code;
    lake_cli_body_begin(&body);
    code = refs_run(r, lake_cli_path(r, &uri, "{repo}/dump"), &body, &status, err);
    if (code == 0) {
        json_t *refs = json_object_get(status, "refs");
        json_object_set(refs, "rows", json_object_get(status, "rows"));
        manage_row(table, refs);
    }
    json_decref(status);
    return code;
}

/* Writes the ids in the file into the body. The file may have one dump, or a list with one dump,
 * which is the output of `weir lake dump --json`. */
static int refs_read_file(struct json_out *w, const char *name, struct err *err)
{
    static const char *const members[] = {"commits_meta_range_id", "tags_meta_range_id",
                                          "branches_meta_range_id"};
    struct buf text = BUF_INIT(REFS_FILE_MAX);
    json_t *json = NULL;
    int code = file_read(name, &text, err);

    if (code == 0)
        code = json_read(&json, buf_str(&text), err);
    const json_t *dump = json_is_array(json) ? json_array_get(json, 0) : json;
    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(members); i++) {
        if (!json_is_string(json_object_get(dump, members[i])))
            code = err_set(err, ERR_CORRUPT, "%s has no member %s", name, members[i]);
        json_out_member_str(w, members[i], json_get_str(dump, members[i], STR_EMPTY));
    }
    json_decref(json);
    buf_release(&text);
    return code;
}

static int refs_restore_run(struct api_client *r, const struct invocation *inv,
                            struct output *table, struct err *err)
{
    const char *from = invocation_flag(inv, "from");
    struct lake_cli_body body;
    struct lake_uri uri;
    json_t *status = NULL;
    int code = lake_uri_parse(&uri, inv->args.items[0], LAKE_URI_REPO, err);

    if (code < 0)
        return code;
    lake_cli_body_begin(&body);
    lake_cli_switch(&body.w, inv, "force", "force");
    if (from)
        code = refs_read_file(&body.w, from, err);
    if (code < 0)
        buf_release(&body.text);
    else
        code = refs_run(r, lake_cli_path(r, &uri, "{repo}/restore"), &body, &status, err);
    if (code == 0)
        manage_row(table, status);
    json_decref(status);
    return code;
}

static const struct manage_call refs_dump_call = {MANAGE_COLUMNS(refs_dump_columns),
                                                  .run = refs_dump_run};
static const struct manage_call refs_restore_call = {MANAGE_COLUMNS(refs_restore_columns),
                                                     .run = refs_restore_run};

const struct command lake_refs_commands[] = {
    {.name = "lake dump",
     .arguments = "REPO",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Write all commits, tags and branches of a repository into its namespace",
     .help = "Writes all commits, tags and branches into the repository's namespace, and shows the "
             "ids of the three trees that hold them. Together with the objects there, they are all "
             "that `weir lake restore` needs to make the repository anew. Changes that are not "
             "committed, settings and pull requests are not in a dump.",
     .examples = "weir lake dump lake://weather\nweir lake dump lake://weather --json > dump.json",
     .call = &refs_dump_call},
    {.name = "lake restore",
     .arguments = "REPO",
     .min_args = 1,
     .max_args = 1,
     .flags = refs_restore_flags,
     .configured = true,
     .summary = "Restore commits, tags and branches into a bare repository",
     .help =
         "Reads a dump in the namespace of a bare repository, and makes its commits, tags and "
         "branches. The dump may be weir's or lakeFS's. The repository must have been made with "
         "`weir lake repo create --bare`, with a default branch that is in the dump.",
     .examples = "weir lake repo create weather s3://lake-data/weather --bare\n"
                 "weir lake restore lake://weather\n"
                 "weir lake restore lake://weather --from dump.json",
     .call = &refs_restore_call},
    {0},
};
