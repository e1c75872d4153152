/* Makes a copy of a local storage's files. */
#include "object/local/local_int.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PIECE = 64 * 1024,
    BLOB_LEVELS = 2 /* levels of folders below "blobs": by epoch, then by blob */
};

static int backup_copy_bytes(int from, int to, struct err *err)
{
    char piece[PIECE];
    ssize_t n;
    int code = 0;

    while (code == 0 && (n = read(from, piece, sizeof(piece))) != 0) {
        if (n < 0 && errno != EINTR)
            code = err_errno(err, errno, "reading a blob");
        else if (n > 0)
            code = file_write_all(to, piece, (size_t)n, err);
    }
    return code == 0 ? file_sync(to, err) : code;
}

/* Copies one file. A file that no longer exists is skipped: no row ever named it, because under a
 * hold no file with a row is removed. */
static int copy_one(const char *from, const char *to, struct err *err)
{
    int in = -1, out = -1, code = 0;

    if (link(from, to) == 0 || errno == ENOENT)
        return 0;
    in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return errno == ENOENT ? 0 : err_errno(err, errno, "opening %s", from);
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0)
        code = err_errno(err, errno, "making %s", to);
    if (code == 0)
        code = backup_copy_bytes(in, out, err);
    fd_close(&in);
    fd_close(&out);
    return code;
}

static int copy_folder(const char *from, const char *to, unsigned levels, struct err *err)
{
    struct buf source = BUF_INIT(PATH_MAX), target = BUF_INIT(PATH_MAX);
    struct dirent *entry;
    DIR *dir = opendir(from);
    int code;

    if (!dir)
        return errno == ENOENT ? 0 : err_errno(err, errno, "opening the folder %s", from);
    code = dir_make(to, 0700, err);
    while (code == 0 && (entry = readdir(dir))) {
        struct stat st;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        buf_reset(&source);
        buf_reset(&target);
        buf_appendf(&source, "%s/%s", from, entry->d_name);
        buf_appendf(&target, "%s/%s", to, entry->d_name);
        if (lstat(source.p, &st) < 0)
            continue;
        if (S_ISREG(st.st_mode))
            code = copy_one(source.p, target.p, err);
        else if (S_ISDIR(st.st_mode) && levels > 0)
            code = copy_folder(source.p, target.p, levels - 1, err);
    }
    closedir(dir);
    if (code == 0)
        code = dir_sync(to, err);
    buf_release(&source);
    buf_release(&target);
    return code;
}

/* Copies all files except the lock file: the copy could be a hard link, and would then be locked
 * together with the original. */
int local_copy_files(struct storage *s, const char *to, struct err *err)
{
    static const char *const names[] = {"FORMAT", "blobs"};
    struct buf source = BUF_INIT(PATH_MAX), target = BUF_INIT(PATH_MAX);
    int code = dir_make(to, 0700, err);

    for (size_t i = 0; i < ARRAY_SIZE(names) && code == 0; i++) {
        buf_reset(&source);
        buf_reset(&target);
        buf_appendf(&source, "%s/%s", local_of(s)->folder, names[i]);
        buf_appendf(&target, "%s/%s", to, names[i]);
        code = i == 0 ? copy_one(source.p, target.p, err)
                      : copy_folder(source.p, target.p, BLOB_LEVELS, err);
    }
    if (code == 0)
        code = dir_sync(to, err);
    buf_release(&source);
    buf_release(&target);
    return code;
}
