/* Uploads in parts to the lake's buckets.
 *
 * An upload to the lake consists of an upload to the namespace's bucket, at a new address, and a
 * record in the repository's partition: uploads/<ref>/<path> NUL <id>. Parts go directly to the
 * namespace's bucket. To finish the upload, weir first finishes the upload to the namespace's
 * bucket, then stages the entry. The record of a finished upload is kept for a day, so that
 * finishing again gives the same answer. */
#ifndef LAKE_UPLOAD_H
#define LAKE_UPLOAD_H

#include "lake/bucket_int.h"

enum { LAKE_UPLOAD_KEPT_MS = MS_PER_DAY };

/* The record of an upload. */
struct lake_upload {
    struct str address, data_id; /* address of the parts, and the id of the upload there */
    struct str entry;            /* the encoded lake_entry of the future object */
    struct str initiator;
    int64_t started_ms;
    int64_t finished_ms; /* 0: the upload is not finished */
    /* The answer of a finished upload, and a digest of its parts. */
    struct str etag, parts;
    uint64_t size;
    int64_t modified_ms;
    /* These are not in the record. */
    struct kv_name name;
    struct str stamp;
};

/* --- records (upload_record.c) --- */

/* Returns the name of an upload's row. */
struct kv_name lake_upload_name(struct lake_bucket *b, struct arena *a, struct str key,
                                struct str id);
/* Splits "<key> NUL <id>", the row's name without its kind. */
bool lake_upload_split(struct str name, struct str *key, struct str *id);
/* Appends the encoded record. */
void lake_upload_encode(struct buf *out, const struct lake_upload *u);
/* Reads an encoded record. Its strings point into `in`. ERR_CORRUPT: the bytes are not a record. */
int lake_upload_decode(struct lake_upload *out, struct str in, struct err *err) MUST_CHECK;
/* Reads the record. ERR_NOT_FOUND: there is no such upload. */
int lake_upload_read(struct lake_upload *out, struct lake_bucket *b, struct arena *a,
                     const struct upload_info *upload, struct err *err) MUST_CHECK;
/* Puts the record: as a new row, or in place of the row that was read. */
int lake_upload_write(struct lake_upload *u, struct lake_bucket *b, struct arena *a, bool is_new,
                      struct err *err) MUST_CHECK;
/* Fills the info that S3 shows. */
int lake_upload_info(const struct lake_upload *u, struct arena *a, struct str key, struct str id,
                     struct upload_info *out, struct err *err) MUST_CHECK;

/* --- operations, by their names in struct bucket_ops --- */

int lake_upload_begin(struct bucket *b, struct arena *a, struct str key,
                      const struct object_meta *meta, struct str *id, struct err *err);
int lake_upload_part(struct bucket *b, struct arena *a, const struct upload_info *upload,
                     uint32_t number, struct reader *body, uint64_t size,
                     const struct put_options *o, struct upload_part *out, struct err *err);
int lake_upload_part_copy(struct bucket *b, struct arena *a, const struct upload_info *upload,
                          uint32_t number, struct bucket *from, const struct object_info *source,
                          const struct object_range *range, struct upload_part *out,
                          struct err *err);
int lake_upload_finish(struct bucket *b, struct arena *a, const struct upload_info *upload,
                       const struct upload_part *parts, size_t count, const struct put_options *o,
                       struct put_result *out, struct err *err);
int lake_upload_abort(struct bucket *b, const struct upload_info *upload, struct err *err);
int lake_upload_list_parts(struct bucket *b, struct arena *a, const struct upload_info *upload,
                           uint32_t after, size_t limit, struct part_list *out, struct err *err);
int lake_upload_list(struct bucket *b, struct arena *a, const struct list_options *o,
                     struct upload_list *out, struct err *err);

/* Removes the records of all uploads that were finished more than a day ago. A failure is only
 * logged; the next sweep tries again. */
void lake_uploads_sweep(struct lake_space *s);

#endif
