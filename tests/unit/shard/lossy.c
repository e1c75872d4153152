/* A bucket that loses requests and answers. */
#include "unit/shard/lossy.h"

static struct lossy *lossy_of(struct bucket *b)
{
    return container_of(b, struct lossy, bucket);
}

/* What the caller sees of a call; 0: the call is made, and its own answer is seen. */
static int lossy_answer(enum lossy_fault fault, struct err *err)
{
    static const int codes[] = {
        [LOSSY_BEFORE] = ERR_TIMEOUT, [LOSSY_AFTER] = ERR_TIMEOUT, [LOSSY_ERROR] = ERR_UNAVAILABLE,
        [LOSSY_REFUSED] = ERR_DENIED, [LOSSY_BUSY] = ERR_CONFLICT,
    };

    return fault == LOSSY_NONE || fault == LOSSY_SILENT ? 0 : err_code(err, codes[fault]);
}

static int lossy_get(struct bucket *b, struct arena *a, struct str key, struct str version,
                     const struct object_conditions *c, const struct object_range *range,
                     struct get_result *out, struct err *err)
{
    struct lossy *l = lossy_of(b);
    enum lossy_fault fault = l->fault(l->ctx, "get");
    int code = lossy_answer(fault, err);

    if (fault == LOSSY_SILENT)
        return err_code(err, ERR_NOT_FOUND);
    return code ? code : l->inner->ops->get(l->inner, a, key, version, c, range, out, err);
}

static int lossy_put(struct bucket *b, struct arena *a, struct str key, struct reader *body,
                     uint64_t size, const struct put_options *o, struct put_result *out,
                     struct err *err)
{
    struct lossy *l = lossy_of(b);
    enum lossy_fault fault = l->fault(l->ctx, "put");
    int code = 0;

    if (fault == LOSSY_NONE || fault == LOSSY_AFTER)
        code = l->inner->ops->put(l->inner, a, key, body, size, o, out, err);
    int answer = lossy_answer(fault, err);
    return answer ? answer : code;
}

static int lossy_remove(struct bucket *b, struct arena *a, struct str key,
                        const struct remove_options *o, struct remove_result *out, struct err *err)
{
    struct lossy *l = lossy_of(b);
    enum lossy_fault fault = l->fault(l->ctx, "remove");
    int code = 0;

    if (fault == LOSSY_NONE || fault == LOSSY_AFTER)
        code = l->inner->ops->remove(l->inner, a, key, o, out, err);
    int answer = lossy_answer(fault, err);
    return answer ? answer : code;
}

static int lossy_list(struct bucket *b, struct arena *a, const struct list_options *o,
                      struct list_result *out, struct err *err)
{
    struct lossy *l = lossy_of(b);
    enum lossy_fault fault = l->fault(l->ctx, "list");
    int code = lossy_answer(fault, err);

    if (code == 0)
        code = l->inner->ops->list(l->inner, a, o, out, err);
    if (fault == LOSSY_SILENT)
        out->count = 0;
    return code;
}

static struct bucket *lossy_ref(struct bucket *b)
{
    return b;
}

static void lossy_unref(struct bucket *b)
{
}

static const struct bucket_ops lossy_ops = {
    .get = lossy_get,
    .put = lossy_put,
    .remove = lossy_remove,
    .list = lossy_list,
    .ref = lossy_ref,
    .unref = lossy_unref,
};

void lossy_init(struct lossy *l, struct bucket *inner, lossy_fn *fault, void *ctx)
{
    *l = (struct lossy){{.ops = &lossy_ops, .name = inner->name}, inner, fault, ctx};
}
