/* Bodies of the lake's objects: their bytes, in the bucket of the repository's namespace.
 *
 * A body is put at a new address before its entry is staged, and never changes. When the entry is
 * refused, the caller removes the body again, unless it is the body of an upload in parts, which
 * others may finish too. A body that is left over is collected by age.
 *
 * Any thread may call; calls may block. Results are in the arena, and bodies that were opened live
 * until they are closed. Errors: those of lake/place.h and of the storage, and ERR_GONE: the entry
 * is there, but its bytes are not. */
#ifndef LAKE_BODY_H
#define LAKE_BODY_H

#include "lake/lake.h"
#include "object/bucket.h"

/* Puts a body at a new address and fills the entry's address, size, ETag, time and checksum. Of
 * `o`, verify, md5 and etag are used as a storage uses them; of its meta the content type, the
 * checksum and the storage class. `size` UINT64_MAX: not known. */
int lake_body_put(struct lake *l, struct arena *a, const struct lake_repo *r, struct reader *body,
                  uint64_t size, const struct put_options *o, struct lake_entry *entry,
                  struct err *err) MUST_CHECK;

/* A body that is to be copied into a repository's namespace. */
struct lake_body_source {
    struct bucket *bucket;
    const struct object_info *info; /* with the key in that bucket */
};
/* Copies an object to a new address without moving its bytes through weir, and fills the entry as
 * lake_body_put() does. ERR_UNSUPPORTED: the object is not on the storage of the namespace, so the
 * caller reads and puts. */
int lake_body_copy(struct lake *l, struct arena *a, const struct lake_repo *r,
                   const struct lake_body_source *from, const struct put_options *o,
                   struct lake_entry *entry, struct err *err) MUST_CHECK;

/* Opens the bytes of an entry. Of *out it fills body, first, len, partial and part_checksum.
 * `range` may be NULL. */
int lake_body_get(struct lake *l, struct arena *a, const struct lake_repo *r,
                  const struct lake_entry *entry, const struct object_range *range,
                  struct get_result *out, struct err *err) MUST_CHECK;
/* The same without waiting, neither here nor where the body is read. ERR_AGAIN: that cannot be. */
int lake_body_get_now(struct lake *l, struct arena *a, const struct lake_repo *r,
                      const struct lake_entry *entry, const struct object_range *range,
                      struct get_result *out, struct err *err) MUST_CHECK;

/* Removes the body of an entry that was not staged. A failure is logged: the body is collected
 * later. */
void lake_body_remove(struct lake *l, struct arena *a, const struct lake_repo *r,
                      const struct lake_entry *entry);

/* Whether nothing was staged by a lake_stage() that ended with this code and said `may_be_there`,
 * so that its body can be removed. After a failure of the key-value store the entry may be there.
 */
bool lake_body_is_free(int stage_code, bool may_be_there);

/* --- bodies that pass through weir, for body.c and upload.c --- */

/* Reads a client's body for a storage: hashes it where the storage does not, and makes the last
 * checks before anything is visible. */
struct lake_place;
struct body_pass;
struct body_pass *body_pass_new(struct arena *a, struct lake_place *p, struct reader *from,
                                const struct put_options *asked);
/* The reader for the storage, and the options of its call, into which the caller puts the meta. */
struct reader *body_pass_reader(struct body_pass *b);
struct put_options body_pass_options(struct body_pass *b);
/* The checksum that verify() has found. */
struct object_checksum body_pass_checksum(const struct body_pass *b);
/* The ETag: what the caller gave, else the MD5 where it was computed here, else `stored`. */
struct str body_pass_etag(const struct body_pass *b, struct str stored);

#endif
