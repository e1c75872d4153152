/* Scratch: files without a name, and memory that lies in such files.
 *
 * A scratch file is unlinked as soon as it is made, so a process that dies leaves none behind.
 * Large memory whose size a peer chose is taken from a scratch file. The kernel can write its pages
 * to the disk, so it does not use up the machine's memory. */
#ifndef OS_SCRATCH_H
#define OS_SCRATCH_H

#include "base/err.h"

enum { SCRATCH_HEAP_MAX = 1024 * 1024 }; /* bytes of the largest scratch memory on the heap */

/* Makes an empty file without a name in `folder`. The caller closes *fd. */
int scratch_file(int *fd, const char *folder, struct err *err) MUST_CHECK;

/* Memory on the heap, or mapped from a scratch file when it is larger than SCRATCH_HEAP_MAX. */
struct scratch_mem {
    unsigned char *p; /* never NULL after an init that succeeded */
    size_t size;
};

/* Allocates memory, which is not zeroed. Room on the disk is reserved, so a full disk is reported
 * here as ERR_NO_SPACE, and not later by a signal. */
int scratch_mem_init(struct scratch_mem *m, const char *folder, size_t size,
                     struct err *err) MUST_CHECK;
void scratch_mem_release(struct scratch_mem *m); /* {0} is fine */

/* The bytes of mapped memory may leave the process's resident memory; they are read again from the
 * file when they are used. Does nothing for memory on the heap. A caller that goes through much
 * memory calls this every SCRATCH_STEP bytes. */
enum { SCRATCH_STEP = 4 * 1024 * 1024 };
void scratch_mem_drop(const struct scratch_mem *m);

#endif
