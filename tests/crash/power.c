/* What a loss of power leaves of a database. */
#include "crash/power.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_FILES = 1 << 20 }; /* RocksDB numbers its files from 1 on, all kinds together */

enum file_kind { FILE_OTHER, FILE_LOG, FILE_MANIFEST, FILE_TABLE };

/* The length of each file, by number, that is safe from a loss of power; shared with the child. */
static _Atomic(uint64_t) *synced;

static enum file_kind file_kind(const char *name, unsigned *number)
{
    char extension[8] = "";

    if (sscanf(name, "MANIFEST-%u", number) == 1)
        return FILE_MANIFEST;
    if (sscanf(name, "%u.%7s", number, extension) != 2 || *number >= MAX_FILES)
        return FILE_OTHER;
    if (strcmp(extension, "log") == 0)
        return FILE_LOG;
    return strcmp(extension, "sst") == 0 ? FILE_TABLE : FILE_OTHER;
}

/* Shadows the C library's for the whole process, RocksDB included. What was written before the call
 * is safe when it has returned: up to the descriptor's position, for a log may be written over an
 * old one that was longer. */
static int note_sync(int fd, long call)
{
    char link[64], path[512];
    unsigned number;
    off_t position = lseek(fd, 0, SEEK_CUR);

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    bool known = len > 0 && position >= 0;
    int result = (int)syscall(call, fd);
    if (result == 0 && known && synced) {
        path[len] = '\0';
        const char *slash = strrchr(path, '/');
        if (slash && file_kind(slash + 1, &number) != FILE_OTHER)
            atomic_store(&synced[number], (uint64_t)position);
    }
    return result;
}

int fdatasync(int fd)
{
    return note_sync(fd, SYS_fdatasync);
}

int fsync(int fd)
{
    return note_sync(fd, SYS_fsync);
}

static void scribble(int fd, off_t from, off_t to, bool zero)
{
    char bytes[4096] = {0};

    if (!zero)
        memset(bytes, 0xa5, sizeof(bytes));
    while (from < to) {
        size_t len = size_min(sizeof(bytes), (size_t)(to - from));
        if (pwrite(fd, bytes, len, from) != (ssize_t)len)
            return;
        from += (off_t)len;
    }
}

/* Of the bytes behind the last sync some reached the disk, and those after them did not: the file
 * is shorter, or (as its length did reach the disk) has zeroes, or what was in those blocks before.
 * A manifest is only shortened: RocksDB refuses one with a bad record at its end, and relies there
 * on file systems that make a length known after the data (ext4 in ordered mode, XFS, btrfs). */
static void lose_tail(struct crash *c, const char *path, enum file_kind kind, off_t safe,
                      off_t size)
{
    off_t keep = safe + (off_t)(next_random(c) % (uint64_t)(size - safe + 1));
    uint64_t how = next_random(c) % 3;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return;
    if (kind != FILE_MANIFEST && how < 2)
        scribble(fd, keep, size, how == 0);
    else if (ftruncate(fd, keep) != 0)
        perror("crash: truncate");
    close(fd);
}

/* With c NULL: everything that is there is safe. */
static void each_file(const char *folder, struct crash *c)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    struct stat st;
    unsigned number;
    char path[512];

    while (dir && (entry = readdir(dir))) {
        enum file_kind kind = file_kind(entry->d_name, &number);
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (kind == FILE_OTHER || stat(path, &st) != 0)
            continue;
        uint64_t safe = atomic_load(&synced[number]);
        if (!c)
            atomic_store(&synced[number], (uint64_t)st.st_size);
        else if (safe < (uint64_t)st.st_size)
            lose_tail(c, path, kind, (off_t)safe, st.st_size);
    }
    if (dir)
        closedir(dir);
}

void power_init(void)
{
    synced = shared_memory(MAX_FILES * sizeof(*synced));
}

void power_reset(void)
{
    memset((void *)synced, 0, MAX_FILES * sizeof(*synced));
}

void power_on(const char *folder)
{
    each_file(folder, NULL);
}

void power_loss(struct crash *c, const char *folder)
{
    each_file(folder, c);
}
