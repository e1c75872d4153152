/* Allocates memory in whole pages, and maps files. */
#include "os/pages.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The mapped files, for pages_file_at(). `from` is stored last: an entry is valid once `from` is
 * not NULL. */
static struct mapped {
    _Atomic(char *) from;
    size_t size;
    char path[512];
} mapped[8];
static _Atomic(bool) mapped_taken[ARRAY_SIZE(mapped)];

static void mapping_remember(char *from, size_t size, const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(mapped); i++)
        if (!atomic_exchange(&mapped_taken[i], true)) {
            mapped[i].size = size;
            snprintf(mapped[i].path, sizeof(mapped[i].path), "%s", path);
            atomic_store(&mapped[i].from, from);
            return;
        }
}

static void mapping_forget(const char *from)
{
    for (size_t i = 0; i < ARRAY_SIZE(mapped); i++)
        if (atomic_load(&mapped[i].from) == from) {
            atomic_store(&mapped[i].from, NULL);
            atomic_store(&mapped_taken[i], false);
        }
}

const char *pages_file_at(const void *address)
{
    for (size_t i = 0; i < ARRAY_SIZE(mapped); i++) {
        const char *from = atomic_load(&mapped[i].from);
        if (from && (const char *)address >= from && (const char *)address < from + mapped[i].size)
            return mapped[i].path;
    }
    return NULL;
}

void *pages_new(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    BUG_ON(p == MAP_FAILED);
    return p;
}

void pages_free(void *p, size_t size)
{
    if (!p)
        return;
    mapping_forget(p);
    BUG_ON(munmap(p, size) != 0);
}

/* Sets the size of the file and reserves that room on the disk. Without reserved room, writing to a
 * mapped page while the disk is full would kill the process. */
static int take_room(int fd, size_t size, const char *path, struct err *err)
{
    int code = ftruncate(fd, (off_t)size) < 0 ? errno : posix_fallocate(fd, 0, (off_t)size);

    return code ? err_errno(err, code, "making room for %s", path) : 0;
}

int pages_map(void **out, const char *path, size_t size, bool *whole, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;

    if (fd < 0)
        return err_errno(err, errno, "opening %s", path);
    *whole = fstat(fd, &st) == 0 && st.st_size == (off_t)size;
    int code = take_room(fd, size, path, err);
    if (code == 0) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
            code = err_errno(err, errno, "mapping %s", path);
        else
            mapping_remember(*out = p, size, path);
    }
    fd_close(&fd);
    return code;
}
