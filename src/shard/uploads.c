/* Uploads of a sharded bucket. An upload is on the shard that owns its key. When the key moves to
 * another shard, the upload and its parts move along, and the upload keeps its id. */
#include "shard/bucket_int.h"

int sharded_upload_begin(struct bucket *b, struct arena *a, struct str key,
                         const struct object_meta *meta, struct str *id, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), key, PASS_WRITE, true, err);

    if (code == 0)
        code = call.shard->ops->upload_begin(call.shard, a, key, meta, id, err);
    shard_call_end(&call);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int sharded_upload_part(struct bucket *b, struct arena *a, const struct upload_info *upload,
                        uint32_t number, struct reader *body, uint64_t size,
                        const struct put_options *o, struct upload_part *out, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), upload->key, PASS_WRITE, true, err);

    if (code == 0)
        code = call.shard->ops->upload_part(call.shard, a, upload, number, body, size, o, out, err);
    shard_call_end(&call);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int sharded_upload_finish(struct bucket *b, struct arena *a, const struct upload_info *upload,
                          const struct upload_part *parts, size_t count,
                          const struct put_options *o, struct put_result *out, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), upload->key, PASS_WRITE, true, err);

    if (code == 0)
        code = call.shard->ops->upload_finish(call.shard, a, upload, parts, count, o, out, err);
    shard_call_end(&call);
    return code;
}

int sharded_upload_abort(struct bucket *b, const struct upload_info *upload, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), upload->key, PASS_WRITE, true, err);

    if (code == 0)
        code = call.shard->ops->upload_abort(call.shard, upload, err);
    shard_call_end(&call);
    return code;
}

int sharded_list_parts(struct bucket *b, struct arena *a, const struct upload_info *upload,
                       uint32_t after, size_t limit, struct part_list *out, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), upload->key, PASS_READ, true, err);

    if (code == 0)
        code = call.shard->ops->list_parts(call.shard, a, upload, after, limit, out, err);
    shard_call_end(&call);
    return code;
}
