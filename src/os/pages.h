/* Memory in whole pages, from the system and back to it. The heap keeps what is freed between other
 * things as a gap; what is large, long-lived and grows by moving is better off here. */
#ifndef OS_PAGES_H
#define OS_PAGES_H

#include "base/err.h"

/* Zeroed; aborts when memory is out, as xcalloc() does. */
void *pages_new(size_t size) __attribute__((malloc, returns_nonnull));
/* `size` as it was asked for; NULL is fine. */
void pages_free(void *p, size_t size);

/* A file as memory, `size` bytes of it: what is stored there is the kernel's at once, and outlives
 * the process. Made (0600), or brought to that size, with room on the disk for all of it; bytes
 * that were not there are zero. *whole: it had that size. To be given back by pages_free(). File
 * systems that never write in place (btrfs, ZFS) keep no room: there a full disk ends who stores.
 */
int pages_map(void **out, const char *path, size_t size, bool *whole, struct err *err) MUST_CHECK;

/* The path of the mapped file that the address is in, or NULL. May be called by a signal's handler;
 * of the files that are mapped at a time it knows the first eight. */
const char *pages_file_at(const void *address);

#endif
