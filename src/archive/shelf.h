/* A shelf: the objects of one account, on the satellite that has the account's slot.
 *
 * Every call finds its bucket in the same way as an S3 request of the satellite's user
 * (s3/place/place.h). So changes of a replicated bucket are replicated, a bucket is found while it
 * is switched, and default encryption is applied (docs/archive.md, H1 to H6).
 *
 * While a slot moves, its objects are on two satellites. A change is made on the satellite that the
 * slot goes to. A read tries that satellite, then the one that the slot leaves, and then both
 * again, so that it finds an object that moves at the same time. shelf_open_claimed() first moves
 * all objects of the account; after that they are on one satellite.
 *
 *     a sync, under a lock:  shelf_open_claimed() ─► shelf_read(), shelf_put() ─► shelf_close()
 *     any other reader:      shelf_open()         ─► shelf_head(), shelf_get() ─► shelf_close()
 *
 * A shelf that was opened by shelf_open() belongs to one thread. Several threads may use a shelf
 * that was opened by shelf_open_claimed(), each with an arena of its own. Results are in the arena
 * of the call. Calls block. Errors are those of object/bucket.h, and these:
 *     ERR_BUSY         the account's lock was lost, or the bucket is being switched: nothing was
 *                      changed
 *     ERR_UNAVAILABLE  the satellite is down, or the store, which knows the newest table, is down
 *     ERR_CORRUPT      the satellites disagree about the table (archive/satellites.h) */
#ifndef ARCHIVE_SHELF_H
#define ARCHIVE_SHELF_H

#include "archive/names.h"
#include "object/bucket.h"

struct lock;
struct satellites;

struct shelf {
    struct str satellite; /* the satellite to which changes are written */
    struct str user;      /* id of the satellite's user */
    struct str bucket;    /* bucket of the forge's host */
    struct str leaves;    /* the satellite that the slot leaves; empty: the slot does not move */
    uint32_t epoch;       /* epoch (number) of the table */
    /* The lock of the account; borrowed. Every change calls lock_held() before its first byte and
     * before its last byte. NULL: the caller holds no lock. */
    struct lock *lock;
    uint64_t fence; /* fence of the lock, which the caller writes into metadata */
    /* The members below are for shelf*.c alone. */
    struct satellites *satellites;
    struct archive_account account;
    struct str leaves_user;
    struct arena *arena;
    bool claimed; /* the account is locked and on one satellite, so `satellite` stays the same */
};

/* Opens the shelf of an account. The arena must live until shelf_close(). If the archive has no
 * table of slots yet, no object is found, and the first change makes the table. */
int shelf_open(struct shelf *out, struct satellites *s, struct arena *a,
               const struct archive_account *c, struct err *err) MUST_CHECK;
/* Like shelf_open(), but in this bucket, and not in that of the account's forge. A move uses it for
 * the buckets of forges that weir does not know any more. */
int shelf_open_in(struct shelf *out, struct satellites *s, struct arena *a,
                  const struct archive_account *c, struct str bucket, struct err *err) MUST_CHECK;
/* Opens the shelf of an account whose lock the caller holds, for a sync. If the slot of the account
 * moves, all objects of the account are moved first. */
int shelf_open_claimed(struct shelf *out, struct satellites *s, struct arena *a,
                       const struct archive_account *c, struct lock *lock,
                       struct err *err) MUST_CHECK;
void shelf_close(struct shelf *s); /* {0} is fine */

/* --- reading --- */

/* Reads the description of an object. ERR_NOT_FOUND: there is no such object. */
int shelf_head(struct shelf *s, struct arena *a, struct str key, struct object_info *out,
               struct err *err) MUST_CHECK;

struct shelf_body {
    struct reader *body; /* plain bytes; closed by shelf_body_close() */
    struct object_info info;
    uint64_t first, len; /* offset and length of the body in the object, in bytes */
};
/* Opens the bytes of a range, or of the whole object if `range` is NULL. */
int shelf_get(struct shelf *s, struct arena *a, struct str key, const struct object_range *range,
              struct shelf_body *out, struct err *err) MUST_CHECK;
/* Like shelf_get(), but only if the object still has the ETag of `of`. ERR_PRECONDITION: the object
 * has changed. */
int shelf_get_if(struct shelf *s, struct arena *a, const struct object_info *of,
                 const struct object_range *range, struct shelf_body *out,
                 struct err *err) MUST_CHECK;
void shelf_body_close(struct shelf_body *b); /* {0} is fine */

/* Appends the bytes of a small object. ERR_TOO_LARGE: the object has more than `max` bytes. `info`
 * may be NULL. */
int shelf_read(struct shelf *s, struct arena *a, struct str key, size_t max, struct buf *out,
               struct object_info *info, struct err *err) MUST_CHECK;

/* Lists keys in the account's bucket, on both satellites while the slot moves. The caller must give
 * a prefix that only this account's keys have. */
int shelf_list(struct shelf *s, struct arena *a, const struct list_options *o,
               struct list_result *out, struct err *err) MUST_CHECK;

/* --- writing --- */

/* Puts an object. `o` has headers, conditions and verify(). An ETag in a condition has its quotes,
 * because S3 endpoints may refuse it without them. This function sets owner and encryption. If
 * `size` is UINT64_MAX, the size is not known. */
int shelf_put(struct shelf *s, struct arena *a, struct str key, struct reader *body, uint64_t size,
              const struct put_options *o, struct put_result *out, struct err *err) MUST_CHECK;
/* The header x-amz-meta-mtime with a time in ms since 1970, in the arena. rclone shows this time as
 * the object's time. It stays the same when the object moves to another satellite. */
struct http_header shelf_mtime(struct arena *a, int64_t ms);
/* Puts a small object. If `c` is NULL, there are no conditions. `mtime_ms` becomes the object's
 * time (shelf_mtime()); 0: the object gets no such time. `out` may be NULL. */
int shelf_put_bytes(struct shelf *s, struct arena *a, struct str key, struct str bytes,
                    const struct object_conditions *c, const char *type, int64_t mtime_ms,
                    struct put_result *out, struct err *err) MUST_CHECK;
/* Copies an object of the shelf to another key, by a copy within the satellite if the satellite can
 * do that. `source` is the result of shelf_head(). If the object has changed since, the copy fails
 * with ERR_CONFLICT. If `o` is NULL, the copy gets the headers of the source. */
int shelf_copy(struct shelf *s, struct arena *a, struct str to, struct str from,
               const struct object_info *source, const struct put_options *o,
               struct err *err) MUST_CHECK;
/* Removes an object. A missing object is not an error. If `c` is NULL, there are no conditions. */
int shelf_remove(struct shelf *s, struct arena *a, struct str key,
                 const struct object_conditions *c, struct err *err) MUST_CHECK;

/* --- uploads in parts (object/bucket.h) --- */

/* Begins an upload. *out describes it, with owner and encryption; pass it to the other calls. */
int shelf_upload_begin(struct shelf *s, struct arena *a, struct str key,
                       const struct object_meta *meta, struct upload_info *out,
                       struct err *err) MUST_CHECK;
int shelf_upload_part(struct shelf *s, struct arena *a, const struct upload_info *upload,
                      uint32_t number, struct reader *body, uint64_t size, struct upload_part *out,
                      struct err *err) MUST_CHECK;
/* Makes a part from a range of the object `source` of the shelf. ERR_UNSUPPORTED: the satellite
 * cannot copy parts, or the bytes are encrypted; the caller must read the range and upload it. */
int shelf_upload_part_copy(struct shelf *s, struct arena *a, const struct upload_info *upload,
                           uint32_t number, const struct object_info *source,
                           const struct object_range *range, struct upload_part *out,
                           struct err *err) MUST_CHECK;
/* Finishes the upload, which makes the object visible. If `c` is NULL, there are no conditions. */
int shelf_upload_finish(struct shelf *s, struct arena *a, const struct upload_info *upload,
                        const struct upload_part *parts, size_t count,
                        const struct object_conditions *c, struct put_result *out,
                        struct err *err) MUST_CHECK;
/* Aborts an upload. A missing upload is not an error. */
int shelf_upload_abort(struct shelf *s, const struct upload_info *upload,
                       struct err *err) MUST_CHECK;
/* Aborts the account's uploads that began more than `older_than_ms` ago. `aborted` (may be NULL)
 * becomes their number. */
int shelf_abort_uploads(struct shelf *s, uint64_t older_than_ms, size_t *aborted,
                        struct err *err) MUST_CHECK;

#endif
