/* Bodies of the lake's objects: their bytes, stored in the bucket of the repository's namespace.
 *
 * A body is put at a new address before its entry is staged, and never changes. When the entry is
 * refused, the caller removes the body again. Only the body of an upload in parts is kept then,
 * because other requests may finish the same upload. The collector removes a body that is left over
 * once the body is old enough.
 *
 * Any thread may call these functions; they may block. Results are in the arena; a body that was
 * opened stays valid until it is closed. Errors: those of lake/place.h and of the storage, and
 * ERR_GONE: the entry exists, but its bytes do not. */
#ifndef LAKE_BODY_H
#define LAKE_BODY_H

#include "lake/lake.h"
#include "object/bucket.h"

/* Puts a body at a new address and fills the entry's address, size, ETag, time and checksum. The
 * members verify, md5 and etag of `o` have the same effect as in the put of a storage. From the
 * meta of `o` only the content type, the checksum and the storage class are used. `size`
 * UINT64_MAX: the size is not known. */
int lake_body_put(struct lake *l, struct arena *a, const struct lake_repo *r, struct reader *body,
                  uint64_t size, const struct put_options *o, struct lake_entry *entry,
                  struct err *err) MUST_CHECK;

/* A body that is to be copied into a repository's namespace. */
struct lake_body_source {
    struct bucket *bucket;
    const struct object_info *info; /* the object's info, with its key in that bucket */
};
/* Copies an object to a new address without moving its bytes through weir, and fills the entry as
 * lake_body_put() does. ERR_UNSUPPORTED: the object is not on the storage of the namespace, or the
 * namespace's bucket encrypts new objects; the caller must read the object and put it. */
int lake_body_copy(struct lake *l, struct arena *a, const struct lake_repo *r,
                   const struct lake_body_source *from, const struct put_options *o,
                   struct lake_entry *entry, struct err *err) MUST_CHECK;

/* Opens the bytes of an entry. Fills the members body, first, len, partial and part_checksum of
 * *out. `range` may be NULL. */
int lake_body_get(struct lake *l, struct arena *a, const struct lake_repo *r,
                  const struct lake_entry *entry, const struct object_range *range,
                  struct get_result *out, struct err *err) MUST_CHECK;
/* Like lake_body_get(), but neither this call nor reading the body waits. ERR_AGAIN: one of them
 * would have to wait; the caller uses lake_body_get() then. */
int lake_body_get_now(struct lake *l, struct arena *a, const struct lake_repo *r,
                      const struct lake_entry *entry, const struct object_range *range,
                      struct get_result *out, struct err *err) MUST_CHECK;

/* Finds the object that an entry with a full address names, makes the checks of each read
 * (lake/address.h), and gives the ETag that the object has now. */
int lake_body_etag(struct lake *l, struct arena *a, const struct lake_repo *r,
                   const struct lake_entry *entry, struct str *out, struct err *err) MUST_CHECK;

/* Removes the body of an entry that was not staged. A failure is only logged, because the collector
 * removes the body later. */
void lake_body_remove(struct lake *l, struct arena *a, const struct lake_repo *r,
                      const struct lake_entry *entry);

/* Whether a body can be removed because its entry was surely not staged. The arguments are the code
 * of lake_stage() and the `may_be_there` that it set. After a failure of the key-value store the
 * entry may have been staged all the same. */
bool lake_body_is_free(int stage_code, bool may_be_there);

/* --- bodies that pass through weir, for body.c and upload.c --- */

/* A body on its way from a client to a storage. weir computes its MD5 if the storage does not.
 * After the last byte, and before the object becomes visible, the body is checked. */
struct object_place;
struct body_pass;
struct body_pass *body_pass_new(struct arena *a, struct object_place *p, struct reader *from,
                                const struct put_options *asked);
/* body_pass_reader() returns the reader from which the storage takes the bytes, and
 * body_pass_options() the options for the put. The caller sets the meta in the options. */
struct reader *body_pass_reader(struct body_pass *b);
struct put_options body_pass_options(struct body_pass *b);
/* Returns the checksum that the last check computed. */
struct object_checksum body_pass_checksum(const struct body_pass *b);
/* Returns the ETag: the one that the caller gave, else the MD5 if it was computed here, else
 * `stored`. */
struct str body_pass_etag(const struct body_pass *b, struct str stored);

#endif
