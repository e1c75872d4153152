/* Functions that tell whether two objects are the same (docs/replication.md, C6). They only look at
 * their arguments, and any thread may call them. */
#ifndef COPY_SAME_H
#define COPY_SAME_H

#include "object/bucket.h"

/* Returns whether the bytes are the same, as far as the metadata tell. The sizes must be equal.
 * If both objects have a checksum of the whole object, of the same kind, these checksums are
 * compared; otherwise the ETags are. */
bool same_bytes(const struct object_info *source, const struct object_info *copy);

/* Returns whether content headers and user metadata are the same. Their order and the case of their
 * names do not matter. A source without Content-Type equals a copy with a storage's default
 * ("binary/octet-stream"). */
bool same_headers(const struct object_meta *source, const struct object_meta *copy);

/* Returns whether both bytes and headers are the same. Tags, access control list, storage class and
 * retention are not compared. */
bool same_object(const struct object_info *source, const struct object_info *copy);

/* Returns whether the tags are the same as sets: "a=1&b=2" equals "b=2&a=1", and "a=%41" equals
 * "a=A". */
bool same_tags(struct str a, struct str b);

#endif
