/* Uploads in parts to the lake's buckets (repositories as S3 buckets).
 *
 * An upload to the lake consists of an upload to the namespace's bucket, at a new address, and a
 * record in the repository's partition: uploads/<ref>/<path> NUL <id>. Clients send parts, and weir
 * passes them to the upload in the namespace's bucket. To finish the upload, weir first finishes
 * that upload, then stages the entry. The record of a finished upload is kept for a day, so that a
 * client that finishes again gets the same answer. */
#ifndef LAKE_UPLOAD_H
#define LAKE_UPLOAD_H

#include "lake/bucket_int.h"

enum { LAKE_UPLOAD_KEPT_MS = MS_PER_DAY };

/* The record of an upload. */
struct lake_upload {
    struct str address, data_id; /* where the parts are stored, and the id of the upload there */
    struct str entry;            /* the encoded lake_entry of the object to be made */
    struct str initiator;
    int64_t started_ms;
    int64_t finished_ms; /* 0: the upload is not finished */
    /* Set when the upload is finished. The answer that the client got is etag, size and
     * modified_ms; `parts` is a digest of the parts that the client named. */
    struct str etag, parts;
    uint64_t size;
    int64_t modified_ms;
    /* Not in the record: the name of its row, and the row as it was read. */
    struct kv_name name;
    struct str stamp;
};

/* --- records (upload_record.c) --- */

/* Returns the name of an upload's row. */
struct kv_name lake_upload_name(struct lake_bucket *b, struct arena *a, struct str key,
                                struct str id);
/* Splits the part of the row's name after "uploads/": "<key> NUL <id>". */
bool lake_upload_split(struct str name, struct str *key, struct str *id);
/* Appends the encoded record. */
void lake_upload_encode(struct buf *out, const struct lake_upload *u);
/* Reads an encoded record. Its strings point into `in`. ERR_CORRUPT: the bytes are not a record. */
int lake_upload_decode(struct lake_upload *out, struct str in, struct err *err) MUST_CHECK;
/* Reads the record. ERR_NOT_FOUND: there is no such upload. */
int lake_upload_read(struct lake_upload *out, struct lake_bucket *b, struct arena *a,
                     const struct upload_info *upload, struct err *err) MUST_CHECK;
/* Puts the record as a new row (is_new), or replaces the row that was read. */
int lake_upload_write(struct lake_upload *u, struct lake_bucket *b, struct arena *a, bool is_new,
                      struct err *err) MUST_CHECK;
/* Fills the description of the upload that S3 clients get. */
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
 * logged; the next call of this function tries again. */
void lake_uploads_sweep(struct lake_space *s);

#endif
