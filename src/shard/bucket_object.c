/* Operations on one key of a sharded bucket: each takes a pass for the key (table.h), and calls the
 * shard that owns the key. A read gives its pass back when the shard has answered, although the
 * body is read later: the bytes of an open body stay readable wherever the object moves. */
#include "shard/bucket_int.h"

/* --- reading --- */

int sharded_head(struct bucket *b, struct arena *a, struct str key, struct str version,
                 const struct object_conditions *c, struct get_result *out, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), key, PASS_READ, true, err);

    if (code == 0)
        code = call.shard->ops->head(call.shard, a, key, version, c, out, err);
    shard_call_end(&call);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int sharded_get(struct bucket *b, struct arena *a, struct str key, struct str version,
                const struct object_conditions *c, const struct object_range *range,
                struct get_result *out, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), key, PASS_READ, true, err);

    if (code == 0)
        code = call.shard->ops->get(call.shard, a, key, version, c, range, out, err);
    shard_call_end(&call);
    return code;
}

int sharded_head_now(struct bucket *b, struct arena *a, struct str key, struct str version,
                     const struct object_conditions *c, struct get_result *out, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), key, PASS_READ, false, err);
    struct bucket *shard = call.shard;

    if (code == 0 && shard->ops->head_now)
        code = shard->ops->head_now(shard, a, key, version, c, out, err);
    else if (code == 0)
        code = bucket_can(shard, STORAGE_AT_HAND)
                   ? shard->ops->head(shard, a, key, version, c, out, err)
                   : ERR_AGAIN;
    shard_call_end(&call);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int sharded_get_now(struct bucket *b, struct arena *a, struct str key, struct str version,
                    const struct object_conditions *c, const struct object_range *range,
                    struct get_result *out, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), key, PASS_READ, false, err);
    struct bucket *shard = call.shard;

    if (code == 0 && shard->ops->get_now)
        code = shard->ops->get_now(shard, a, key, version, c, range, out, err);
    else if (code == 0)
        code = bucket_can(shard, STORAGE_AT_HAND)
                   ? shard->ops->get(shard, a, key, version, c, range, out, err)
                   : ERR_AGAIN;
    shard_call_end(&call);
    return code;
}

int sharded_object_parts(struct bucket *b, struct arena *a, const struct object_info *object,
                         uint32_t after, size_t limit, struct part_list *out, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), object->key, PASS_READ, true, err);
    struct bucket *shard = call.shard;

    *out = (struct part_list){0};
    if (code == 0 && shard->ops->object_parts)
        code = shard->ops->object_parts(shard, a, object, after, limit, out, err);
    else if (code == 0)
        code = err_set(err, ERR_UNSUPPORTED, "the shard does not know the parts of its objects");
    shard_call_end(&call);
    return code;
}

/* --- changing --- */

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int sharded_put(struct bucket *b, struct arena *a, struct str key, struct reader *body,
                uint64_t size, const struct put_options *o, struct put_result *out, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), key, PASS_WRITE, true, err);

    if (code == 0)
        code = call.shard->ops->put(call.shard, a, key, body, size, o, out, err);
    shard_call_end(&call);
    return code;
}

int sharded_remove(struct bucket *b, struct arena *a, struct str key,
                   const struct remove_options *o, struct remove_result *out, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), key, PASS_WRITE, true, err);

    if (code == 0)
        code = call.shard->ops->remove(call.shard, a, key, o, out, err);
    shard_call_end(&call);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int sharded_set_meta(struct bucket *b, struct arena *a, struct str key, struct str version,
                     enum meta_set set, const struct object_meta *meta,
                     const struct meta_options *o, struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), key, PASS_WRITE, true, err);

    if (code == 0)
        code = call.shard->ops->set_meta(call.shard, a, key, version, set, meta, o, err);
    shard_call_end(&call);
    return code;
}
