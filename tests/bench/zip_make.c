/* Makes a ZIP file from a pack, as the archive does, for tests and for the bench.
 *
 *     bench_zip TIP REPOSITORY BRANCH FOLDER < PACK > ZIP
 *
 * TIP is the id of the commit in hex. FOLDER is for scratch files. The program prints a line with
 * its counts on stderr, and the error's text when it fails. */
#include "archive/zip.h"
#include "base/hex.h"
#include "os/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A reader of stdin. */
static int stdin_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    ssize_t n = read(STDIN_FILENO, to, len);

    (void)r;
    *got = n > 0 ? (size_t)n : 0;
    return n < 0 ? err_set(err, ERR_IO, "cannot read the pack") : 0;
}
static const struct reader_ops stdin_ops = {.read = stdin_read};

static int zip_write(struct zip *z, struct err *err)
{
    static char piece[1 << 18];
    size_t got = 1;
    int code = 0;

    while (code == 0 && got) {
        code = reader_read(zip_reader(z), piece, sizeof(piece), &got, err);
        if (code == 0)
            code = file_write_all(STDOUT_FILENO, piece, got, err);
    }
    return code;
}

int main(int argc, char **argv)
{
    struct reader in = {&stdin_ops};
    struct zip_options o = {
        .limits = zip_usual_limits,
        .pack = {.pack = 8 * GIB, .object = 32 * GIB, .inflated = 64 * GIB, .inflated_times = 200}};
    struct zip_result count = {0};
    struct err err = {0};
    struct zip *z = NULL;

    if (argc != 5)
        return 2;
    o.is_sha256 = strlen(argv[1]) == 64;
    o.repo = str_z(argv[2]);
    o.branch = str_z(argv[3]);
    o.folder = argv[4];
    if (!hex_parse(str_z(argv[1]), o.tip, git_id_len(o.is_sha256)))
        return 2;
    int code = zip_open(&z, &in, &o, &err);
    if (code == 0)
        code = zip_write(z, &err);
    if (z)
        zip_count(z, &count);
    zip_close(z);
    if (code < 0)
        fprintf(stderr, "%s: %s\n", err_name(code), err.text);
    else
        fprintf(stderr,
                "files %" PRIu64 " links %" PRIu64 " folders %" PRIu64 " submodules %" PRIu64
                " bytes %" PRIu64 " left_out %" PRIu64 " size %" PRIu64 "\n",
                count.files, count.links, count.folders, count.submodules, count.bytes,
                count.left_out, count.size);
    return code < 0;
}
