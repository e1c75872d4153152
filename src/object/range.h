/* The header Range of HTTP. Any thread may call. */
#ifndef OBJECT_RANGE_H
#define OBJECT_RANGE_H

#include "object/bucket.h"

/* Reads "bytes=0-9", "bytes=9-" or "bytes=-9". Returns false for anything else, such as several
 * ranges, which a server may ignore (RFC 9110 section 14.2). */
bool object_range_parse(struct str text, struct object_range *out);

#endif
