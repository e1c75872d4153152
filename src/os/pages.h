/* Memory in whole pages. Use it for memory that is large and long-lived and moves when it grows:
 * freed pages return to the system. The heap would keep a freed block that lies between two used
 * blocks. */
#ifndef OS_PAGES_H
#define OS_PAGES_H

#include "base/err.h"

/* Allocates zeroed memory; the process ends when there is none, as with xcalloc(). */
void *pages_new(size_t size) __attribute__((malloc, returns_nonnull));
/* Frees or unmaps the memory. `size` is the size that was allocated. `p` may be NULL. */
void pages_free(void *p, size_t size);

/* Maps the first `size` bytes of a file into memory. A byte that is written there survives the end
 * of the process, because the kernel has it at once. A file that does not exist is made with mode
 * 0600. The file gets the size `size`: new bytes are zero, and room for all bytes is reserved on
 * the disk. *whole is true when the file already had that size. pages_free() unmaps the file. File
 * systems that never write in place (btrfs, ZFS) cannot reserve room: there, writing to a mapped
 * page while the disk is full kills the process. */
int pages_map(void **out, const char *path, size_t size, bool *whole, struct err *err) MUST_CHECK;

/* Returns the path of the mapped file at this address, or NULL. A signal handler may call this.
 * Only eight mapped files are known at a time; for an address in a further file the result is
 * NULL. */
const char *pages_file_at(const void *address);

#endif
