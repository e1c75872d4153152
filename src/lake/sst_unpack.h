/* Snappy's format, in which blocks of lakeFS's tables are compressed. */
#ifndef LAKE_SST_UNPACK_H
#define LAKE_SST_UNPACK_H

#include "base/buf.h"

/* Appends the unpacked bytes. Returns false when the bytes are malformed or unpack to more than
 * `max` bytes. */
bool sst_unpack(struct buf *out, struct str packed, size_t max);

#endif
