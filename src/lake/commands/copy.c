/* weir lake cp and mv: copies objects between files and the lake, and inside a repository. */
#include "lake/commands/cli.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct flag copy_flags[] = {
    {"recursive", FLAG_SWITCH, NULL, NULL, "Copy all files or objects of a folder, or of a branch.",
     .letter = 'r'},
    {"type", FLAG_TEXT, "TYPE", NULL, "The media type of uploaded objects, such as text/csv."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column copy_columns[] = {
    {"source"}, {"destination"}, {"bytes", .number = true}};

/* State of one command: its client, its table of copies, and its progress. */
struct copying {
    struct api_client *client;
    struct output *table;
    const char *type;  /* media type of uploads; NULL: the user gave none */
    bool shows;        /* standard error is a terminal, so the progress is shown */
    uint64_t files;    /* number of files that were copied so far */
    uint64_t bytes;    /* size of those files together, in bytes */
    const char *name;  /* the file that is being copied */
    uint64_t total;    /* size of that file in bytes; 0: not known yet */
    int fd;            /* the file that is being written; -1: none */
    uint64_t received; /* bytes that were written to fd so far */
};

/* --- progress --- */

/* Rewrites the line of progress with the number of files that were copied. */
static void copy_show_files(const struct copying *c)
{
    fprintf(stderr, "\r\033[K");
    if (c->files)
        fprintf(stderr, "%llu files, %llu bytes; ", (unsigned long long)c->files,
                (unsigned long long)c->bytes);
}

static void copy_progress(void *ctx, uint64_t sent, uint64_t received)
{
    struct copying *c = ctx;
    uint64_t done = sent > received ? sent : received;

    if (!c->shows)
        return;
    copy_show_files(c);
    fprintf(stderr, "%s: %llu bytes", c->name, (unsigned long long)done);
    if (c->total)
        fprintf(stderr, " of %llu (%u %%)", (unsigned long long)c->total,
                (unsigned)(done * 100 / c->total));
}

static void copy_done(struct copying *c, const char *source, const char *destination)
{
    c->files++;
    c->bytes += c->total;
    if (c->shows)
        copy_show_files(c);
    output_cell(c->table, str_z(source));
    output_cell(c->table, str_z(destination));
    output_cellf(c->table, "%llu", (unsigned long long)c->total);
}

/* --- a file to the lake --- */

static int upload_send(struct copying *c, const struct lake_uri *to, struct str bytes,
                       struct err *err)
{
    struct client_request request = {
        .method = "POST", .body = bytes, .no_retry = true, .on_progress = copy_progress, .ctx = c};
    struct client_response response;
    const char *path = lake_cli_path(c->client, to, "{repo}/branches/{ref}/objects?path={path}");
    int code = api_client_exchange(c->client, path, &request,
                                   c->type ? c->type : "application/octet-stream", &response, err);

    return code == 0 && response.status != 201 ? api_client_error(c->client, &response, err) : code;
}

/* Maps the file into memory, so that a file larger than the free memory can be sent, too. */
static int upload_map(struct copying *c, int fd, const struct lake_uri *to, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return err_errno(err, errno, "%s", c->name);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "%s is not a file; a folder needs --recursive", c->name);
    c->total = (uint64_t)st.st_size;
    if (st.st_size == 0)
        return upload_send(c, to, STR(""), err);
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return err_errno(err, errno, "%s", c->name);
    int code = upload_send(c, to, str_n(bytes, (size_t)st.st_size), err);
    munmap(bytes, (size_t)st.st_size);
    return code;
}

static const char *uri_text(struct copying *c, const struct lake_uri *u)
{
    return arena_fmt(&c->client->arena, "lake://" STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(u->repo),
                     STR_ARG(u->ref), STR_ARG(u->path))
        .p;
}

static int upload_file(struct copying *c, const char *file, const struct lake_uri *to,
                       struct err *err)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);

    c->name = file;
    if (fd < 0)
        return err_errno(err, errno, "%s", file);
    int code = upload_map(c, fd, to, err);
    fd_close(&fd);
    if (code == 0)
        copy_done(c, file, uri_text(c, to));
    return code;
}

/* Returns the place of a file below the folder: the folder's place plus the rest of the file's
 * path. */
static struct lake_uri upload_below(struct copying *c, const struct lake_uri *to, const char *rest)
{
    struct lake_uri below = *to;
    bool slash = to->path.len && !str_ends(to->path, STR("/"));

    while (*rest == '/')
        rest++;
    below.path =
        arena_fmt(&c->client->arena, STR_FMT "%s%s", STR_ARG(to->path), slash ? "/" : "", rest);
    return below;
}

static int upload_folder(struct copying *c, const char *folder, const struct lake_uri *to,
                         struct err *err)
{
    char *paths[] = {(char *)(uintptr_t)folder, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    int code = tree ? 0 : err_errno(err, errno, "%s", folder);
    FTSENT *entry;

    while (code == 0 && (entry = fts_read(tree))) {
        struct lake_uri below = upload_below(c, to, entry->fts_path + strlen(folder));
        if (entry->fts_info == FTS_F)
            code = upload_file(c, entry->fts_path, &below, err);
        else if (entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR ||
                 entry->fts_info == FTS_NS)
            code = err_errno(err, entry->fts_errno, "%s", entry->fts_path);
    }
    if (tree)
        fts_close(tree);
    return code;
}

/* --- the lake to a file --- */

static int download_write(void *ctx, struct str piece, struct err *err)
{
    struct copying *c = ctx;

    c->received += piece.len;
    return file_write_all(c->fd, piece.p, piece.len, err);
}

static int download_receive(struct copying *c, const struct lake_uri *from, struct err *err)
{
    struct client_request request = {.method = "GET",
                                     .no_retry = true,
                                     .on_body = download_write,
                                     .on_success_only = true,
                                     .on_progress = copy_progress,
                                     .ctx = c};
    struct client_response response;
    int code = api_client_exchange(
        c->client, lake_cli_path(c->client, from, "{repo}/refs/{ref}/objects?path={path}"),
        &request, NULL, &response, err);

    if (code == 0 && response.status != 200)
        code = api_client_error(c->client, &response, err);
    return code;
}

/* Downloads into a temporary file beside the target, which is renamed at the end, so that the
 * target is never incomplete. */
static int download_file(struct copying *c, const struct lake_uri *from, const char *file,
                         struct err *err)
{
    const char *part = arena_fmt(&c->client->arena, "%s.part", file).p;
    int code = 0;

    c->name = file;
    c->received = 0;
    c->total = 0;
    c->fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (c->fd < 0)
        return err_errno(err, errno, "%s", part);
    code = download_receive(c, from, err);
    fd_close(&c->fd);
    if (code == 0)
        code = file_rename_over(part, file, err);
    if (code < 0) {
        unlink(part);
        return code;
    }
    c->total = c->received;
    copy_done(c, uri_text(c, from), file);
    return 0;
}

/* Makes the folders above a file. */
static int make_folders(const char *file, struct err *err)
{
    char *path = str_dup(str_z(file));
    int code = 0;

    for (char *p = path + 1; *p && code == 0; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            code = err_errno(err, errno, "%s", path);
        *p = '/';
    }
    free(path);
    return code;
}

/* Whether a path can be that of a file below a folder, that is, no part of the path (such as "..")
 * leads out of the folder. */
static bool is_below(struct str path)
{
    struct str part;

    if (!path.len || path.p[0] == '/' || str_ends(path, STR("/")))
        return false;
    while (path.len) {
        str_cut(path, '/', &part, &path);
        if (!part.len || str_eq(part, STR(".")) || str_eq(part, STR("..")))
            return false;
    }
    return true;
}

static int download_item(struct copying *c, const struct lake_uri *from, struct str path,
                         const void *folder, struct err *err)
{
    struct str rest = str_skip(path, from->path.len);
    struct lake_uri object = *from;

    if (!is_below(rest))
        return err_set(err, ERR_INVALID, "'" STR_FMT "' cannot be the name of a file",
                       STR_ARG(path));
    object.path = arena_str(&c->client->arena, path);
    const char *file =
        arena_fmt(&c->client->arena, "%s/" STR_FMT, (const char *)folder, STR_ARG(rest)).p;
    int code = make_folders(file, err);
    return code == 0 ? download_file(c, &object, file, err) : code;
}

/* --- folders of the lake --- */

/* Copies one object of the folder that is being copied to its place below the destination. */
typedef int copy_item_fn(struct copying *c, const struct lake_uri *from, struct str path,
                         const void *to, struct err *err);

static int copy_items(struct copying *c, const struct lake_uri *from, const json_t *page,
                      copy_item_fn *copy, const void *to, struct err *err)
{
    const json_t *item;
    size_t i;
    int code = 0;

    json_array_foreach(page, i, item)
    {
        if (code == 0)
            code = copy(c, from, json_get_str(item, "path", STR_EMPTY), to, err);
    }
    return code;
}

/* Lists and copies page by page, so that copying begins before a long listing has ended. */
static int copy_lake_folder(struct copying *c, struct lake_uri *from, copy_item_fn *copy,
                            const void *to, struct err *err)
{
    enum { PAGE = 1000 };

    lake_uri_to_folder(c->client, from);
    const char *path =
        lake_cli_path(c->client, from,
                      "{repo}/refs/{ref}/objects/ls?amount=1000&user_metadata=false&prefix={path}");
    struct manage_list list = {.path = path, .name = "results", .max = PAGE, .more = true};
    int code = 0;

    while (code == 0 && list.more) {
        json_t *page = NULL;
        code = manage_pages(c->client, &list, &page, err);
        if (code == 0)
            code = copy_items(c, from, page, copy, to, err);
        const json_t *last = json_array_get(page, json_array_size(page) - 1);
        list.after = arena_z(&c->client->arena, json_get_str(last, "path", STR("")));
        json_decref(page);
    }
    if (code == 0 && from->path.len && !c->files)
        code = err_set(err, ERR_NOT_FOUND, "no object is below '" STR_FMT "'", STR_ARG(from->path));
    return code;
}

/* --- inside a repository --- */

static int copy_inside(struct copying *c, const struct lake_uri *from, const struct lake_uri *to,
                       bool move, struct err *err)
{
    struct lake_cli_body body;
    json_t *answer = NULL;

    if (!str_eq(from->repo, to->repo))
        return err_set(err, ERR_INVALID,
                       "objects are copied inside one repository; copy to a file first");
    lake_cli_body_begin(&body);
    json_out_member_str(&body.w, "src_path", from->path);
    json_out_member_str(&body.w, "src_ref", from->ref);
    if (move)
        json_out_member_bool(&body.w, "move", true);
    int code = lake_cli_send(
        c->client, "POST",
        lake_cli_path(c->client, to, "{repo}/branches/{ref}/objects/copy?dest_path={path}"), &body,
        &answer, err);
    if (code == 0) {
        c->total = (uint64_t)json_get_i64(answer, "size_bytes", 0);
        copy_done(c, uri_text(c, from), uri_text(c, to));
    }
    json_decref(answer);
    return code;
}

static int copy_inside_item(struct copying *c, const struct lake_uri *from, struct str path,
                            const void *to, struct err *err)
{
    const struct lake_uri *folder = to;
    struct lake_uri object = *from, copy = *folder;

    object.path = arena_str(&c->client->arena, path);
    copy.path = arena_fmt(&c->client->arena, STR_FMT STR_FMT, STR_ARG(folder->path),
                          STR_ARG(str_skip(path, from->path.len)));
    return copy_inside(c, &object, &copy, false, err);
}

/* Copies a folder inside a repository. A copy into the folder itself would never end, because the
 * listing would find the copies. */
static int copy_inside_folder(struct copying *c, struct lake_uri *from, struct lake_uri *to,
                              struct err *err)
{
    lake_uri_to_folder(c->client, from);
    lake_uri_to_folder(c->client, to);
    if (str_eq(from->ref, to->ref) && str_starts(to->path, from->path))
        return err_set(err, ERR_INVALID, "a folder cannot be copied into itself");
    return copy_lake_folder(c, from, copy_inside_item, to, err);
}

/* --- the command --- */

/* If the destination ends with '/' or has no path, appends the file name of the source to it. */
static void copy_add_name(struct copying *c, struct lake_uri *to, struct str source)
{
    size_t at = source.len;

    while (at && source.p[at - 1] != '/')
        at--;
    if (!to->path.len || str_ends(to->path, STR("/")))
        to->path = arena_fmt(&c->client->arena, STR_FMT STR_FMT, STR_ARG(to->path),
                             STR_ARG(str_skip(source, at)));
}

static int copy_to_lake(struct copying *c, const char *source, const char *destination,
                        bool recursive, struct err *err)
{
    struct lake_uri from = {0}, to;
    int code = lake_uri_parse(&to, destination, LAKE_URI_FOLDER, err);

    if (code == 0 && lake_uri_is(source))
        code = lake_uri_parse(&from, source, recursive ? LAKE_URI_FOLDER : LAKE_URI_PATH, err);
    if (code < 0)
        return code;
    if (recursive && lake_uri_is(source))
        return copy_inside_folder(c, &from, &to, err);
    if (recursive)
        return upload_folder(c, source, &to, err);
    copy_add_name(c, &to, lake_uri_is(source) ? from.path : str_z(source));
    return lake_uri_is(source) ? copy_inside(c, &from, &to, false, err)
                               : upload_file(c, source, &to, err);
}

static int copy_from_lake(struct copying *c, const char *source, const char *destination,
                          bool recursive, struct err *err)
{
    struct lake_uri from, name = {0};
    struct stat st;
    int code = lake_uri_parse(&from, source, recursive ? LAKE_URI_FOLDER : LAKE_URI_PATH, err);

    if (code < 0 || recursive)
        return code < 0 ? code : copy_lake_folder(c, &from, download_item, destination, err);
    copy_add_name(c, &name, from.path);
    if (stat(destination, &st) == 0 && S_ISDIR(st.st_mode))
        destination =
            arena_fmt(&c->client->arena, "%s/" STR_FMT, destination, STR_ARG(name.path)).p;
    return download_file(c, &from, destination, err);
}

static int copy_run(struct api_client *r, const struct invocation *inv, struct output *table,
                    struct err *err)
{
    const char *source = inv->args.items[0], *destination = inv->args.items[1];
    bool recursive = invocation_flag(inv, "recursive") != NULL;
    struct copying c = {.client = r,
                        .table = table,
                        .type = invocation_flag(inv, "type"),
                        .shows = isatty(STDERR_FILENO),
                        .fd = -1};

    int code = ERR_INVALID;

    if (lake_uri_is(destination))
        code = copy_to_lake(&c, source, destination, recursive, err);
    else if (lake_uri_is(source))
        code = copy_from_lake(&c, source, destination, recursive, err);
    else
        err_set(err, code, "neither '%s' nor '%s' begins with lake://", source, destination);
    if (c.shows)
        fprintf(stderr, "\r\033[K");
    return code;
}

static int move_run(struct api_client *r, const struct invocation *inv, struct output *table,
                    struct err *err)
{
    struct copying c = {.client = r, .table = table, .fd = -1};
    struct lake_uri from = {0}, to = {0};
    int code = lake_uri_parse(&from, inv->args.items[0], LAKE_URI_PATH, err);

    if (code == 0)
        code = lake_uri_parse(&to, inv->args.items[1], LAKE_URI_FOLDER, err);
    if (code < 0)
        return code;
    copy_add_name(&c, &to, from.path);
    return copy_inside(&c, &from, &to, true, err);
}

static const struct manage_call copy_call = {MANAGE_COLUMNS(copy_columns), .run = copy_run,
                                             .hints = lake_cli_hints};

static const struct manage_call move_call = {MANAGE_COLUMNS(copy_columns), .run = move_run,
                                             .hints = lake_cli_hints};

const struct command lake_copy_commands[] = {
    {.name = "lake cp",
     .arguments = "SOURCE DESTINATION",
     .min_args = 2,
     .max_args = 2,
     .flags = copy_flags,
     .configured = true,
     .summary = "Copy objects from and to files, and inside a repository",
     .help =
         "Copies an object. One of both is a place, lake://REPO/REF/PATH, the other a file or a "
         "place in the same repository; a copy inside a repository moves no byte. A destination "
         "that ends with '/' or is a folder gets the name of the source. On a terminal the "
         "command shows its progress.\n\n"
         "With --recursive the source is a folder: of the place a, everything below a/ is copied, "
         "but neither a itself nor ab. Inside a repository each object is copied by a call of its "
         "own.",
     .examples = "weir lake cp january.csv lake://weather/main/2026/\n"
                 "weir lake cp lake://weather/v1.0/2026/january.csv .\n"
                 "weir lake cp ./2026 lake://weather/main/2026 --recursive\n"
                 "weir lake cp lake://weather/v1.0/2025 lake://weather/main/2025 --recursive\n"
                 "weir lake cp lake://weather/main~1/a.csv lake://weather/main/a.csv",
     .call = &copy_call},
    {.name = "lake mv",
     .arguments = "OBJECT PLACE",
     .min_args = 2,
     .max_args = 2,
     .flags = client_flags,
     .configured = true,
     .summary = "Move an object of a branch to another path",
     .help = "Gives an object of a branch another path, in one step and without moving a byte. A "
             "place that ends with '/' gets the name of the object.",
     .examples = "weir lake mv lake://weather/main/a.csv lake://weather/main/2026/",
     .call = &move_call},
    {0},
};
