/* Declarations that the files of the sharded bucket share. */
#ifndef SHARD_BUCKET_INT_H
#define SHARD_BUCKET_INT_H

#include "shard/bucket.h"

struct sharded_bucket {
    struct bucket bucket;
    struct sharded *sharded; /* a reference */
    bool untapped;           /* set before other threads have the reference (place_hide()) */
    _Atomic(unsigned) refs;
};

extern const struct bucket_ops sharded_bucket_ops;

static inline bool bucket_is_sharded(const struct bucket *b)
{
    return b->ops == &sharded_bucket_ops;
}

static inline struct sharded_bucket *sharded_bucket_of(struct bucket *b)
{
    BUG_ON(!bucket_is_sharded(b));
    return container_of(b, struct sharded_bucket, bucket);
}

/* --- calls of one shard --- */

/* A call of the shard that owns a key, or that owns the first keys after a given key. The owner
 * stays the same from shard_call_begin() to shard_call_end(). */
struct shard_call {
    struct pass pass;
    struct bucket *shard; /* a reference */
    /* Set only by shard_call_begin_after(): the keys for which this shard is the owner. */
    struct shard_window window;
    /* The bucket is not sharded any more, so `shard` is the bucket that now has the name, and there
     * is no pass. */
    bool plain;
};

/* `key` must stay valid until shard_call_end(), which the caller must call after an error too.
 * `may_wait` false: the call fails with ERR_AGAIN where it would wait. ERR_BUSY: the key stayed
 * closed for too long. ERR_NO_BUCKET: the bucket was removed. */
int shard_call_begin(struct shard_call *c, struct sharded_bucket *b, struct str key,
                     enum pass_use use, bool may_wait, struct err *err) MUST_CHECK;
int shard_call_begin_after(struct shard_call *c, struct sharded_bucket *b, struct str after,
                           struct err *err) MUST_CHECK;
void shard_call_end(struct shard_call *c);

/* Opens the shard at this place: *out is a reference. */
int shard_open(struct sharded_bucket *b, const struct shard_place *p, struct bucket **out,
               struct err *err) MUST_CHECK;
/* Opens place 0: the bucket on the home that has the name and the documents of the sharded bucket.
 * ERR_NO_BUCKET: the bucket was removed. */
int shard_open_home(struct sharded_bucket *b, struct bucket **out, struct err *err) MUST_CHECK;
/* Called when no pass was given; `code` is the error with which it was refused. If the bucket is
 * not sharded any more, opens the bucket that has the name now; that is this bucket, made plain or
 * sharded again. ERR_BUSY: the name still leads to `b`, which is about to become plain.
 * ERR_NO_BUCKET: the bucket was removed; another bucket may have its name. Any other `code` is
 * returned as it is. */
int shard_open_anew(struct sharded_bucket *b, int code, struct bucket **out,
                    struct err *err) MUST_CHECK;

/* --- operations of struct bucket_ops --- */

int sharded_head(struct bucket *b, struct arena *a, struct str key, struct str version,
                 const struct object_conditions *c, struct get_result *out, struct err *err);
int sharded_get(struct bucket *b, struct arena *a, struct str key, struct str version,
                const struct object_conditions *c, const struct object_range *range,
                struct get_result *out, struct err *err);
int sharded_head_now(struct bucket *b, struct arena *a, struct str key, struct str version,
                     const struct object_conditions *c, struct get_result *out, struct err *err);
int sharded_get_now(struct bucket *b, struct arena *a, struct str key, struct str version,
                    const struct object_conditions *c, const struct object_range *range,
                    struct get_result *out, struct err *err);
int sharded_put(struct bucket *b, struct arena *a, struct str key, struct reader *body,
                uint64_t size, const struct put_options *o, struct put_result *out,
                struct err *err);
int sharded_remove(struct bucket *b, struct arena *a, struct str key,
                   const struct remove_options *o, struct remove_result *out, struct err *err);
int sharded_set_meta(struct bucket *b, struct arena *a, struct str key, struct str version,
                     enum meta_set set, const struct object_meta *meta,
                     const struct meta_options *o, struct err *err);
int sharded_object_parts(struct bucket *b, struct arena *a, const struct object_info *object,
                         uint32_t after, size_t limit, struct part_list *out, struct err *err);

int sharded_copy(struct bucket *b, struct arena *a, struct str key, struct bucket *from,
                 const struct object_info *source, const struct put_options *o,
                 struct put_result *out, struct err *err);
int sharded_upload_part_copy(struct bucket *b, struct arena *a, const struct upload_info *upload,
                             uint32_t number, struct bucket *from, const struct object_info *source,
                             const struct object_range *range, struct upload_part *out,
                             struct err *err);

int sharded_lend(struct bucket *b, struct str key,
                 int (*fn)(void *ctx, struct bucket *part, struct err *err), void *ctx,
                 struct err *err);

int sharded_upload_begin(struct bucket *b, struct arena *a, struct str key,
                         const struct object_meta *meta, struct str *id, struct err *err);
int sharded_upload_part(struct bucket *b, struct arena *a, const struct upload_info *upload,
                        uint32_t number, struct reader *body, uint64_t size,
                        const struct put_options *o, struct upload_part *out, struct err *err);
int sharded_upload_finish(struct bucket *b, struct arena *a, const struct upload_info *upload,
                          const struct upload_part *parts, size_t count,
                          const struct put_options *o, struct put_result *out, struct err *err);
int sharded_upload_abort(struct bucket *b, const struct upload_info *upload, struct err *err);
int sharded_list_parts(struct bucket *b, struct arena *a, const struct upload_info *upload,
                       uint32_t after, size_t limit, struct part_list *out, struct err *err);

int sharded_list(struct bucket *b, struct arena *a, const struct list_options *o,
                 struct list_result *out, struct err *err);
int sharded_list_versions(struct bucket *b, struct arena *a, const struct list_options *o,
                          struct list_result *out, struct err *err);
int sharded_list_uploads(struct bucket *b, struct arena *a, const struct list_options *o,
                         struct upload_list *out, struct err *err);

#endif
