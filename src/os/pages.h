/* Memory in whole pages, which goes back to the system when it is freed. (The heap keeps a freed
 * block that lies between two used ones.) It is meant for memory that is large, long-lived and
 * moved when it grows. */
#ifndef OS_PAGES_H
#define OS_PAGES_H

#include "base/err.h"

/* Allocates zeroed memory; the process ends when there is none, as with xcalloc(). */
void *pages_new(size_t size) __attribute__((malloc, returns_nonnull));
/* `size` is the size that was allocated. NULL is fine. */
void pages_free(void *p, size_t size);

/* Maps the first `size` bytes of a file into memory. A byte that is stored there survives the end
 * of the process, because the kernel has it at once. The file is made (0600) when it does not
 * exist, and brought to that size; new bytes are zero, and room for all of it is reserved on the
 * disk. *whole is true when the file already had that size. pages_free() unmaps it. File systems
 * that never write in place (btrfs, ZFS) cannot reserve room: there, a store to a mapped page on a
 * full disk ends the process. */
int pages_map(void **out, const char *path, size_t size, bool *whole, struct err *err) MUST_CHECK;

/* The path of the mapped file that the address lies in, or NULL. A signal handler may call this. It
 * knows at most eight mapped files at a time. */
const char *pages_file_at(const void *address);

#endif
