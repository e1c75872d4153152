/* Memory in whole pages, which goes back to the system when it is freed. (The heap keeps freed
 * memory between two blocks in use as a gap.) For memory that is large, long-lived and grows by
 * moving. */
#ifndef OS_PAGES_H
#define OS_PAGES_H

#include "base/err.h"

/* Zeroed; the process ends when there is no memory, as with xcalloc(). */
void *pages_new(size_t size) __attribute__((malloc, returns_nonnull));
/* `size` is the size that was asked for. NULL is fine. */
void pages_free(void *p, size_t size);

/* Maps the first `size` bytes of a file into memory. A byte that is stored there survives the
 * process, since the kernel has it at once. The file is made (0600) when it does not exist, or
 * brought to that size, and the disk keeps room for all of it; bytes that are new are zero. *whole:
 * the file had that size already. pages_free() unmaps it. File systems that never write in place
 * (btrfs, ZFS) keep no room: there, a store to a mapped page on a full disk ends the process. */
int pages_map(void **out, const char *path, size_t size, bool *whole, struct err *err) MUST_CHECK;

/* The path of the mapped file that the address is in, or NULL. A signal handler may call this. Only
 * the first eight files that are mapped at a time are known. */
const char *pages_file_at(const void *address);

#endif
