/* Memory in whole pages, from the system and back to it. The heap keeps what is freed between other
 * things as a gap; what is large, long-lived and grows by moving is better off here. */
#ifndef OS_PAGES_H
#define OS_PAGES_H

#include "base/base.h"

/* Zeroed; aborts when memory is out, as xcalloc() does. */
void *pages_new(size_t size) __attribute__((malloc, returns_nonnull));
/* `size` as it was asked for; NULL is fine. */
void pages_free(void *p, size_t size);

#endif
