/* Writes tar archives (POSIX ustar) in memory. */
#ifndef LAKE_TAR_H
#define LAKE_TAR_H

#include "base/buf.h"

enum { TAR_BLOCK = 512, TAR_NAME_MAX = 99 };

/* Appends a file; `modified_s` is in seconds since 1970. Its name has at most TAR_NAME_MAX bytes.
 */
void tar_add(struct buf *out, const char *name, struct str bytes, int64_t modified_s);
/* Appends the end of the archive. */
void tar_end(struct buf *out);

#endif
