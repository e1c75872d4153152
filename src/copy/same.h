/* Whether two objects are the same (docs/replication.md, C6). The functions are pure; any thread.
 */
#ifndef COPY_SAME_H
#define COPY_SAME_H

#include "object/bucket.h"

/* Whether the bytes are the same: by size, and by a checksum of the whole object if both have one
 * of the same kind, else by ETag. */
bool same_bytes(const struct object_info *source, const struct object_info *copy);

/* Whether content headers and user metadata are the same, in any order, with names in any case. A
 * source without Content-Type equals a copy with a storage's default ("binary/octet-stream"). */
bool same_headers(const struct object_meta *source, const struct object_meta *copy);

/* Whether both bytes and headers are the same. Tags, access control list, storage class and
 * retention are not compared. */
bool same_object(const struct object_info *source, const struct object_info *copy);

/* Compares tags as sets: "a=1&b=2" is "b=2&a=1", and "a=%41" is "a=A". */
bool same_tags(struct str a, struct str b);

#endif
