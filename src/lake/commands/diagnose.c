/* weir lake diagnose: writes an archive with information about the state of the lake. */
#include "lake/commands/cli.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct diagnose_download {
    int fd;
    uint64_t bytes;
    bool shows;
};

static int diagnose_write(void *ctx, struct str piece, struct err *err)
{
    struct diagnose_download *d = ctx;

    d->bytes += piece.len;
    if (d->shows)
        fprintf(stderr, "\r%ju bytes\033[K", (uintmax_t)d->bytes);
    return file_write_all(d->fd, piece.p, piece.len, err);
}

static int diagnose_receive(struct api_client *r, struct diagnose_download *d, struct err *err)
{
    struct client_request request = {.method = "GET",
                                     .no_retry = true,
                                     .on_body = diagnose_write,
                                     .on_success_only = true,
                                     .ctx = d};
    struct client_response response;

    if (d->shows)
        fprintf(stderr, "looking at the lake …");
    int code = api_client_exchange(r, "/api/v1/lake/diagnosis", &request, NULL, &response, err);
    if (d->shows)
        fprintf(stderr, "\r\033[K");
    return code == 0 && response.status != 200 ? api_client_error(r, &response, err) : code;
}

/* Writes the archive to a file, which gets its name only when it is complete. */
static int lake_diagnose_run(struct api_client *r, const struct invocation *inv,
                             struct output *table, struct err *err)
{
    const char *file = inv->args.items[0], *part = arena_fmt(&r->arena, "%s.part", file).p;
    struct diagnose_download d = {.shows = isatty(STDERR_FILENO)};

    d.fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (d.fd < 0)
        return err_errno(err, errno, "%s", part);
    int code = diagnose_receive(r, &d, err);
    fd_close(&d.fd);
    if (code == 0)
        code = file_rename_over(part, file, err);
    if (code < 0) {
        unlink(part);
        return code;
    }
    output_cell(table, str_z(file));
    output_cellf(table, "%ju", (uintmax_t)d.bytes);
    return 0;
}

static const struct output_column diagnose_columns[] = {{"file"}, {"bytes", .number = true}};
static const struct manage_call diagnose_call = {MANAGE_COLUMNS(diagnose_columns),
                                                 .run = lake_diagnose_run};

const struct command lake_diagnose_commands[] = {
    {.name = "lake diagnose",
     .arguments = "FILE",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Write an archive about the state of the lake, for a report",
     .help = "Writes a tar archive: how many rows and bytes each part of the lake has, staged and "
             "sealed changes of each branch, nodes of trees, operations that were slow or failed. "
             "The archive has names of repositories and branches, but no paths, contents or "
             "secrets. Nothing is changed.",
     .examples = "weir lake diagnose lake.tar && tar tf lake.tar",
     .call = &diagnose_call},
    {0},
};
