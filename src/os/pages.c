/* Memory in whole pages. */
#include "os/pages.h"

#include <sys/mman.h>

void *pages_new(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    BUG_ON(p == MAP_FAILED);
    return p;
}

void pages_free(void *p, size_t size)
{
    if (p)
        BUG_ON(munmap(p, size) != 0);
}
