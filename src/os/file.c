/* Reads, writes, renames, syncs and locks files and folders. */
#include "os/file.h"
#include "base/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int file_read(const char *path, struct buf *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), code = 0;
    ssize_t n;

    if (fd < 0)
        return err_errno(err, errno, "opening %s", path);
    do {
        char piece[16 * KIB];
        n = read(fd, piece, sizeof(piece));
        if (n > 0)
            buf_append(out, piece, (size_t)n);
    } while ((n > 0 && !out->failed) || (n < 0 && errno == EINTR));
    if (n < 0)
        code = err_errno(err, errno, "reading %s", path);
    else if (buf_error(out) < 0)
        code = err_set(err, ERR_TOO_LARGE, "%s is larger than %zu bytes", path, out->max);
    fd_close(&fd);
    return code;
}

int file_write_all(int fd, const void *p, size_t len, struct err *err)
{
    const char *from = p;
    while (len) {
        ssize_t n = write(fd, from, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, errno, "writing a file");
        from += n;
        len -= (size_t)n;
    }
    return 0;
}

int file_pread_full(int fd, void *p, size_t len, off_t at, struct err *err)
{
    char *to = p;
    while (len) {
        ssize_t n = pread(fd, to, len, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, errno, "reading a file");
        if (n == 0)
            return err_set(err, ERR_CORRUPT, "a file ends %zu bytes early", len);
        to += n;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int file_sync(int fd, struct err *err)
{
    return fdatasync(fd) < 0 ? err_errno(err, errno, "syncing a file") : 0;
}

int dir_sync(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = 0;
    if (fd < 0)
        return err_errno(err, errno, "opening the folder %s", path);
    if (fsync(fd) < 0)
        code = err_errno(err, errno, "syncing the folder %s", path);
    fd_close(&fd);
    return code;
}

/* Writes the path of the folder that holds `path` into `out`. */
static void parent_of(const char *path, struct buf *out)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        buf_append_char(out, '.');
    else
        buf_append(out, path, size_max(1, (size_t)(slash - path)));
}

static int write_and_sync(const char *path, struct str content, mode_t mode, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode), code;
    if (fd < 0)
        return err_errno(err, errno, "creating %s", path);
    code = fchmod(fd, mode) < 0 ? err_errno(err, errno, "setting the mode of %s", path) : 0;
    if (code == 0)
        code = file_write_all(fd, content.p, content.len, err);
    if (code == 0)
        code = file_sync(fd, err);
    fd_close(&fd);
    return code;
}

int file_write_durable(const char *path, struct str content, mode_t mode, struct err *err)
{
    struct buf temporary = BUF_INIT(PATH_MAX), folder = BUF_INIT(PATH_MAX);
    char id[ID_HEX_LEN + 1];
    int code;

    id_hex(id);
    buf_appendf(&temporary, "%s.%s.tmp", path, id);
    parent_of(path, &folder);
    if (buf_error(&temporary) < 0) {
        code = err_set(err, ERR_TOO_LARGE, "the path %.64s... is too long", path);
        goto out;
    }
    code = write_and_sync(temporary.p, content, mode, err);
    if (code == 0 && rename(temporary.p, path) < 0)
        code = err_errno(err, errno, "renaming %s to %s", temporary.p, path);
    if (code < 0)
        unlink(temporary.p);
    else
        code = dir_sync(folder.p, err);
out:
    buf_release(&temporary);
    buf_release(&folder);
    return code;
}

int file_rename_over(const char *from, const char *to, struct err *err)
{
    struct buf folder = BUF_INIT(PATH_MAX);
    int code;

    parent_of(to, &folder);
    if (rename(from, to) < 0)
        code = err_errno(err, errno, "renaming %s to %s", from, to);
    else
        code = dir_sync(folder.p, err);
    buf_release(&folder);
    return code;
}

/* Renames, but never replaces an existing target. File systems without RENAME_NOREPLACE (NFS, some
 * of FUSE) return EINVAL. On these the function first checks whether the target exists. If a folder
 * appears at the target after the check, it is replaced only if it is empty. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (file_exists(to)) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

int file_rename_new(const char *from, const char *to, struct err *err)
{
    struct buf folder = BUF_INIT(PATH_MAX);
    int code;

    parent_of(to, &folder);
    if (rename_new(from, to) < 0)
        code = err_errno(err, errno, "renaming %s to %s", from, to);
    else
        code = dir_sync(folder.p, err);
    buf_release(&folder);
    return code;
}

static int make_one(const char *path, mode_t mode, struct err *err)
{
    struct stat st;
    if (mkdir(path, mode) == 0) {
        struct buf parent = BUF_INIT(PATH_MAX);
        parent_of(path, &parent);
        int code = dir_sync(parent.p, err);
        buf_release(&parent);
        return code;
    }
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return err_errno(err, errno, "making the folder %s", path);
}

int dir_make(const char *path, mode_t mode, struct err *err)
{
    char *copy = xstrdup(path);
    int code = 0;

    for (char *slash = strchr(copy + 1, '/'); *copy && slash && code == 0;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        code = make_one(copy, 0755, err);
        *slash = '/';
    }
    if (code == 0)
        code = make_one(copy, mode, err);
    free(copy);
    return code;
}

static int tree_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int dir_remove_tree(const char *path, struct err *err)
{
    if (nftw(path, tree_remove_entry, 32, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
        return err_errno(err, errno, "removing the folder %s", path);
    return 0;
}

int file_make_private(const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_errno(err, errno, "opening %s", path);
    if (st.st_mode & 077 && chmod(path, 0600) < 0)
        return err_errno(err, errno, "%s can be read by others, and cannot be closed to them",
                         path);
    return 0;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int file_free_space(const char *path, uint64_t *free_bytes, uint64_t *total_bytes, struct err *err)
{
    struct statvfs vfs;
    if (statvfs(path, &vfs) < 0)
        return err_errno(err, errno, "asking for the free space of %s", path);
    *free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    *total_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize;
    return 0;
}

int file_try_folder(const char *folder, struct err *err)
{
    static const char bytes[4096];
    struct buf path = BUF_INIT(PATH_MAX);

    buf_appendf(&path, "%s/try", folder);
    int code = file_write_durable(path.p, str_n(bytes, sizeof(bytes)), 0600, err);
    if (code == 0 && unlink(path.p) < 0)
        code = err_errno(err, errno, "removing %s", path.p);
    buf_release(&path);
    return code;
}

static int lock_taken(int fd, const char *path, struct err *err)
{
    char pid[24] = "";
    ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);
    uint64_t number;

    if (n > 0 && str_u64(str_n(pid, (size_t)n), &number) == 0)
        return err_set(err, ERR_IN_USE, "%s is held by process %s", path, pid);
    return err_set(err, ERR_IN_USE, "%s is held by another process", path);
}

int file_lock(int *fd, const char *path, struct err *err)
{
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), code = 0;

    if (lock < 0)
        return err_errno(err, errno, "opening %s", path);
    if (flock(lock, LOCK_EX | LOCK_NB) < 0)
        code = errno == EWOULDBLOCK ? lock_taken(lock, path, err)
                                    : err_errno(err, errno, "locking %s", path);
    if (code == 0 && (ftruncate(lock, 0) < 0 || dprintf(lock, "%d", getpid()) < 0))
        code = err_errno(err, errno, "writing %s", path);
    if (code < 0)
        fd_close(&lock);
    else
        *fd = lock;
    return code;
}
