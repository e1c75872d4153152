/* Files without a name, and memory in them. */
#include "os/scratch.h"

#include "base/ids.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int scratch_file(int *fd, const char *folder, struct err *err)
{
    char id[ID_HEX_LEN + 1];
    struct buf path = {0};

    id_hex(id);
    buf_appendf(&path, "%s/scratch-%s", folder, id);
    int made = open(path.p, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int code = made < 0 ? err_errno(err, errno, "cannot make %s", path.p) : 0;
    if (code == 0) {
        unlink(path.p);
        *fd = made;
    }
    buf_release(&path);
    return code;
}

static int scratch_map(struct scratch_mem *m, const char *folder, size_t size, struct err *err)
{
    int fd = -1, code = scratch_file(&fd, folder, err);

    if (code < 0)
        return code;
    int failed = posix_fallocate(fd, 0, (off_t)size);
    if (failed)
        code = err_errno(err, failed, "making room for %zu bytes in %s", size, folder);
    void *p = code == 0 ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;
    if (p == MAP_FAILED)
        code = err_errno(err, errno, "mapping %zu bytes in %s", size, folder);
    fd_close(&fd);
    if (code == 0)
        *m = (struct scratch_mem){p, size};
    return code;
}

int scratch_mem_init(struct scratch_mem *m, const char *folder, size_t size, struct err *err)
{
    if (size > SCRATCH_HEAP_MAX)
        return scratch_map(m, folder, size, err);
    *m = (struct scratch_mem){xrealloc(NULL, size_max(size, 1)), size};
    return 0;
}

void scratch_mem_drop(const struct scratch_mem *m)
{
    /* The pages are shared with the file, so the file keeps what was written to them. */
    if (m->p && m->size > SCRATCH_HEAP_MAX)
        BUG_ON(madvise(m->p, m->size, MADV_DONTNEED) != 0);
}

void scratch_mem_release(struct scratch_mem *m)
{
    if (m->p && m->size > SCRATCH_HEAP_MAX)
        BUG_ON(munmap(m->p, m->size) != 0);
    else
        free(m->p);
    *m = (struct scratch_mem){0};
}
