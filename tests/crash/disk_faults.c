/* Disks that fail: write, fdatasync and fsync of the whole program, RocksDB's too, fail as a file
 * asks for. FAULT_DISK names the file; it holds one line, "<number> <call> <errno> <count> <part>":
 * <call> is `write` or `sync`, <count> is how many calls fail (0: all), <part> is in the paths of
 * the files concerned. Another number begins the count anew; an empty file ends the faults. */
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *control;
static _Atomic(unsigned) current, failed;

__attribute__((constructor)) static void read_environment(void)
{
    control = getenv("FAULT_DISK");
}

static bool path_has(int fd, const char *part)
{
    char link[64], path[4096];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    if (len < 0)
        return false;
    path[len] = '\0';
    return strstr(path, part) != NULL;
}

/* The error that the call is to fail with, or 0. */
static int fault_of(int fd, const char *call)
{
    char line[512], wanted[16], part[256];
    unsigned number, count;
    int error, file = control ? open(control, O_RDONLY | O_CLOEXEC) : -1;

    if (file < 0)
        return 0;
    ssize_t len = read(file, line, sizeof(line) - 1);
    close(file);
    if (len <= 0)
        return 0;
    line[len] = '\0';
    if (sscanf(line, "%u %15s %d %u %255s", &number, wanted, &error, &count, part) != 5 ||
        strcmp(wanted, call) != 0 || !path_has(fd, part))
        return 0;
    if (atomic_exchange(&current, number) != number)
        atomic_store(&failed, 0);
    return count && atomic_fetch_add(&failed, 1) >= count ? 0 : error;
}

static bool fails(int fd, const char *call)
{
    int kept = errno, error = fault_of(fd, call);

    errno = error ? error : kept;
    return error != 0;
}

/* In the place of the C library's. */
int fdatasync(int fd)
{
    return fails(fd, "sync") ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    return fails(fd, "sync") ? -1 : (int)syscall(SYS_fsync, fd);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    return control && fails(fd, "write") ? -1 : syscall(SYS_write, fd, bytes, len);
}
