/* Whether two objects are the same: docs/replication.md C6. Pure, any thread. */
#ifndef COPY_SAME_H
#define COPY_SAME_H

#include "object/bucket.h"

/* The bytes: size, and ETag or a checksum of the whole of the same kind. When both have such a
 * checksum and it differs, nothing else counts. */
bool same_bytes(const struct object_info *source, const struct object_info *copy);

/* Content headers and user metadata, in any order, names in any case. A Content-Type that was not
 * given at the source is what storages say instead ("binary/octet-stream"). */
bool same_headers(const struct object_meta *source, const struct object_meta *copy);

/* Both. Tags, access control list, storage class and retention are not looked at. */
bool same_object(const struct object_info *source, const struct object_info *copy);

/* Tags as sets: "a=1&b=2" is "b=2&a=1", and "a=%41" is "a=A". */
bool same_tags(struct str a, struct str b);

#endif
