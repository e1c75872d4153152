/* Copies whose source, target or both are in a sharded bucket. The source's key and the copy's key
 * are registered together, so that both stay on their shards until the copy is made. */
#include "shard/bucket_int.h"

/* The two buckets of a copy, and the passes for its two keys. */
struct copy_ends {
    struct pass both[2];        /* used if both keys are in one sharded bucket */
    struct shard_call to, from; /* used otherwise; `from` only if the source is sharded */
    struct bucket *target;      /* borrowed from `to`, or owned if has_both */
    struct bucket *source;      /* borrowed from `from` or from the caller, or owned if has_both */
    bool has_both;
};

/* Takes the passes when both keys are in the sharded bucket `b`. */
static int copy_ends_in_one(struct copy_ends *e, struct sharded_bucket *b, struct str key,
                            struct str source_key, struct err *err)
{
    struct str keys[2] = {key, source_key};
    size_t count = str_eq(key, source_key) ? 1 : 2;
    int code = pass_take_all(b->sharded->table, keys, count, PASS_WRITE, e->both, err);

    e->has_both = true;
    if (code < 0) {
        code = shard_open_anew(b, code, &e->target, err);
        if (code == 0)
            e->source = e->target->ops->ref(e->target);
        return code;
    }
    code = shard_open(b, pass_place(&e->both[0]), &e->target, err);
    if (code == 0)
        code = shard_open(b, pass_place(&e->both[count - 1]), &e->source, err);
    return code;
}

static int copy_ends_begin(struct copy_ends *e, struct bucket *to, struct str key,
                           struct bucket *from, struct str source_key, struct err *err)
{
    struct sharded_bucket *b = sharded_bucket_of(to);
    struct sharded_bucket *other = bucket_is_sharded(from) ? sharded_bucket_of(from) : NULL;
    int code;

    *e = (struct copy_ends){0};
    if (other && other->sharded == b->sharded)
        return copy_ends_in_one(e, b, key, source_key, err);
    code = shard_call_begin(&e->to, b, key, PASS_WRITE, true, err);
    if (code == 0 && other)
        code = shard_call_begin(&e->from, other, source_key, PASS_READ, true, err);
    e->target = e->to.shard;
    e->source = other ? e->from.shard : from;
    return code;
}

static void copy_ends_end(struct copy_ends *e)
{
    if (e->has_both && e->target)
        e->target->ops->unref(e->target);
    if (e->has_both && e->source)
        e->source->ops->unref(e->source);
    pass_leave(&e->both[0]);
    pass_leave(&e->both[1]);
    shard_call_end(&e->from);
    shard_call_end(&e->to);
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int sharded_copy(struct bucket *b, struct arena *a, struct str key, struct bucket *from,
                 const struct object_info *source, const struct put_options *o,
                 struct put_result *out, struct err *err)
{
    struct copy_ends e;
    int code = copy_ends_begin(&e, b, key, from, source->key, err);

    if (code == 0)
        code = e.target->ops->copy(e.target, a, key, e.source, source, o, out, err);
    copy_ends_end(&e);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int sharded_upload_part_copy(struct bucket *b, struct arena *a, const struct upload_info *upload,
                             uint32_t number, struct bucket *from, const struct object_info *source,
                             const struct object_range *range, struct upload_part *out,
                             struct err *err)
{
    struct copy_ends e;
    int code = copy_ends_begin(&e, b, upload->key, from, source->key, err);

    if (code == 0)
        code = e.target->ops->upload_part_copy(e.target, a, upload, number, e.source, source, range,
                                               out, err);
    copy_ends_end(&e);
    return code;
}

int sharded_lend(struct bucket *b, struct str key,
                 int (*fn)(void *ctx, struct bucket *part, struct err *err), void *ctx,
                 struct err *err)
{
    struct shard_call call;
    int code = shard_call_begin(&call, sharded_bucket_of(b), key, PASS_READ, true, err);

    if (code == 0)
        code = fn(ctx, call.shard, err);
    shard_call_end(&call);
    return code;
}
