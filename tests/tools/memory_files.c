/* Refuses to allocate space ahead for files of the file system that TESTS_IN_MEMORY names. The
 * database allocates dozens of megabytes ahead of its logs and for its ballast. A disk only takes
 * note of that; in memory each page is taken and cleared, at every start of a weir. End-to-end
 * tests preload this library (clean_env of conftest.py) where tests/run.py keeps their files in
 * memory. A file system that a test mounts itself, to fill it up, is another one. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* RocksDB calls fallocate, and programs with _FILE_OFFSET_BITS=64 call fallocate64 by that name in
 * C. */
int memory_fallocate(int fd, int mode, off_t offset, off_t bytes) __asm__("fallocate");
int memory_fallocate64(int fd, int mode, off_t offset, off_t bytes) __asm__("fallocate64");

static bool is_in_memory(int fd)
{
    const char *folder = getenv("TESTS_IN_MEMORY");
    struct stat st, memory;

    return folder && stat(folder, &memory) == 0 && fstat(fd, &st) == 0 &&
           st.st_dev == memory.st_dev;
}

int memory_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    if (is_in_memory(fd)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

int memory_fallocate64(int fd, int mode, off_t offset, off_t bytes)
{
    return memory_fallocate(fd, mode, offset, bytes);
}
