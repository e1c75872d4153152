/* A bucket over others, split by key range. Operations on a key go to the part that holds it,
 * changes of the bucket itself to all parts, listings through object/merge.h. */
#include "unit/object/fake_bucket.h"

#include "object/local/local.h"
#include "object/merge.h"

#include <stdlib.h>

struct fake_bucket {
    struct bucket bucket;
    _Atomic(size_t) refs;
    struct fake_parts parts;
    struct buf name, bound;
};

static const struct bucket_ops fake_ops;

static struct fake_bucket *fake_of(struct bucket *b)
{
    BUG_ON(b->ops != &fake_ops);
    return container_of(b, struct fake_bucket, bucket);
}

struct bucket *fake_bucket_part(struct bucket *b, struct str key)
{
    if (b->ops != &fake_ops)
        return b;
    const struct fake_parts *p = &fake_of(b)->parts;
    return p->buckets[p->count > 1 && str_cmp(key, p->bound) >= 0];
}

struct bucket *fake_bucket_new(struct str name, const struct fake_parts *parts)
{
    struct fake_bucket *f = xzalloc(sizeof(*f));

    *f = (struct fake_bucket){.refs = 1, .parts = *parts};
    buf_append_str(&f->name, name);
    buf_append_str(&f->bound, parts->bound);
    f->parts.bound = buf_str(&f->bound);
    f->bucket = (struct bucket){
        .ops = &fake_ops, .name = buf_str(&f->name), .home = parts->home, .can = parts->can};
    return &f->bucket;
}

static struct bucket *fake_ref(struct bucket *b)
{
    atomic_fetch_add(&fake_of(b)->refs, 1);
    return b;
}

static void fake_unref(struct bucket *b)
{
    struct fake_bucket *f = fake_of(b);

    if (atomic_fetch_sub(&f->refs, 1) > 1)
        return;
    for (size_t i = 0; i < f->parts.count; i++)
        f->parts.buckets[i]->ops->unref(f->parts.buckets[i]);
    buf_release(&f->name);
    buf_release(&f->bound);
    free(f);
}

/* --- the bucket --- */

static int fake_info(struct bucket *b, struct arena *a, struct bucket_info *out, struct err *err)
{
    struct bucket *first = fake_of(b)->parts.buckets[0];
    int code = first->ops->info(first, a, out, err);

    if (code == 0)
        out->name = arena_str(a, b->name);
    return code;
}

static int fake_usage(struct bucket *b, struct bucket_usage *out, struct err *err)
{
    const struct fake_parts *p = &fake_of(b)->parts;
    int code = 0;

    *out = (struct bucket_usage){0};
    for (size_t i = 0; i < p->count && code == 0; i++) {
        struct bucket_usage one = {0};
        code = p->buckets[i]->ops->usage(p->buckets[i], &one, err);
        out->objects += one.objects;
        out->bytes += one.bytes;
        out->old_versions += one.old_versions;
        out->old_bytes += one.old_bytes;
    }
    return code;
}

static int fake_get_document(struct bucket *b, struct arena *a, const char *name, struct str *out,
                             struct err *err)
{
    struct bucket *first = fake_of(b)->parts.buckets[0];

    return first->ops->get_document(first, a, name, out, err);
}

static int fake_set_document(struct bucket *b, const char *name, struct str document,
                             struct err *err)
{
    struct bucket *first = fake_of(b)->parts.buckets[0];

    return first->ops->set_document(first, name, document, err);
}

static int fake_set_versions(struct bucket *b, bool on, struct err *err)
{
    const struct fake_parts *p = &fake_of(b)->parts;
    int code = 0;

    for (size_t i = 0; i < p->count && code == 0; i++)
        code = p->buckets[i]->ops->set_versions(p->buckets[i], on, err);
    return code;
}

static int fake_set_object_lock(struct bucket *b, struct err *err)
{
    const struct fake_parts *p = &fake_of(b)->parts;
    int code = 0;

    for (size_t i = 0; i < p->count && code == 0; i++)
        code = p->buckets[i]->ops->set_object_lock(p->buckets[i], err);
    return code;
}

/* --- objects --- */

static int fake_head(struct bucket *b, struct arena *a, struct str key, struct str version,
                     const struct object_conditions *c, struct get_result *out, struct err *err)
{
    struct bucket *part = fake_bucket_part(b, key);

    return part->ops->head(part, a, key, version, c, out, err);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
static int fake_get(struct bucket *b, struct arena *a, struct str key, struct str version,
                    const struct object_conditions *c, const struct object_range *range,
                    struct get_result *out, struct err *err)
{
    struct bucket *part = fake_bucket_part(b, key);

    return part->ops->get(part, a, key, version, c, range, out, err);
}

static struct put_options fake_put_options(struct bucket *b, const struct put_options *o)
{
    struct put_options own = *o;

    if (!fake_of(b)->parts.tells)
        own.note = NULL;
    return own;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
static int fake_put(struct bucket *b, struct arena *a, struct str key, struct reader *body,
                    uint64_t size, const struct put_options *o, struct put_result *out,
                    struct err *err)
{
    struct bucket *part = fake_bucket_part(b, key);
    struct put_options own = fake_put_options(b, o);

    return part->ops->put(part, a, key, body, size, &own, out, err);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
static int fake_copy(struct bucket *b, struct arena *a, struct str key, struct bucket *from,
                     const struct object_info *source, const struct put_options *o,
                     struct put_result *out, struct err *err)
{
    struct bucket *part = fake_bucket_part(b, key);
    struct put_options own = fake_put_options(b, o);

    return part->ops->copy(part, a, key, fake_bucket_part(from, source->key), source, &own, out,
                           err);
}

static int fake_remove(struct bucket *b, struct arena *a, struct str key,
                       const struct remove_options *o, struct remove_result *out, struct err *err)
{
    struct bucket *part = fake_bucket_part(b, key);
    struct remove_options own = *o;

    if (!fake_of(b)->parts.tells)
        own.note = NULL;
    return part->ops->remove(part, a, key, &own, out, err);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
static int fake_set_meta(struct bucket *b, struct arena *a, struct str key, struct str version,
                         enum meta_set set, const struct object_meta *meta,
                         const struct meta_options *o, struct err *err)
{
    struct bucket *part = fake_bucket_part(b, key);
    struct meta_options own = o ? *o : (struct meta_options){0};

    if (!fake_of(b)->parts.tells)
        own.note = NULL;
    return part->ops->set_meta(part, a, key, version, set, meta, &own, err);
}

static int fake_object_parts(struct bucket *b, struct arena *a, const struct object_info *object,
                             uint32_t after, size_t limit, struct part_list *out, struct err *err)
{
    struct bucket *part = fake_bucket_part(b, object->key);

    return part->ops->object_parts(part, a, object, after, limit, out, err);
}

/* --- listings --- */

static struct merge fake_merge(struct bucket *b)
{
    const struct fake_parts *p = &fake_of(b)->parts;

    return (struct merge){.buckets = p->buckets, .count = p->count};
}

static int fake_list(struct bucket *b, struct arena *a, const struct list_options *o,
                     struct list_result *out, struct err *err)
{
    struct merge m = fake_merge(b);

    return merge_list(&m, a, o, false, out, err);
}

static int fake_list_versions(struct bucket *b, struct arena *a, const struct list_options *o,
                              struct list_result *out, struct err *err)
{
    struct merge m = fake_merge(b);

    return merge_list(&m, a, o, true, out, err);
}

static int fake_list_uploads(struct bucket *b, struct arena *a, const struct list_options *o,
                             struct upload_list *out, struct err *err)
{
    struct merge m = fake_merge(b);

    return merge_uploads(&m, a, o, out, err);
}

/* --- uploads --- */

static int fake_upload_begin(struct bucket *b, struct arena *a, struct str key,
                             const struct object_meta *meta, struct str *id, struct err *err)
{
    struct bucket *part = fake_bucket_part(b, key);

    return part->ops->upload_begin(part, a, key, meta, id, err);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
static int fake_upload_part(struct bucket *b, struct arena *a, const struct upload_info *upload,
                            uint32_t number, struct reader *body, uint64_t size,
                            const struct put_options *o, struct upload_part *out, struct err *err)
{
    struct bucket *part = fake_bucket_part(b, upload->key);

    return part->ops->upload_part(part, a, upload, number, body, size, o, out, err);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
static int fake_upload_part_copy(struct bucket *b, struct arena *a,
                                 const struct upload_info *upload, uint32_t number,
                                 struct bucket *from, const struct object_info *source,
                                 const struct object_range *range, struct upload_part *out,
                                 struct err *err)
{
    struct bucket *part = fake_bucket_part(b, upload->key);

    return part->ops->upload_part_copy(part, a, upload, number, fake_bucket_part(from, source->key),
                                       source, range, out, err);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
static int fake_upload_finish(struct bucket *b, struct arena *a, const struct upload_info *upload,
                              const struct upload_part *parts, size_t count,
                              const struct put_options *o, struct put_result *out, struct err *err)
{
    struct bucket *part = fake_bucket_part(b, upload->key);
    struct put_options own = fake_put_options(b, o);

    return part->ops->upload_finish(part, a, upload, parts, count, &own, out, err);
}

static int fake_upload_abort(struct bucket *b, const struct upload_info *upload, struct err *err)
{
    struct bucket *part = fake_bucket_part(b, upload->key);

    return part->ops->upload_abort(part, upload, err);
}

static int fake_list_parts(struct bucket *b, struct arena *a, const struct upload_info *upload,
                           uint32_t after, size_t limit, struct part_list *out, struct err *err)
{
    struct bucket *part = fake_bucket_part(b, upload->key);

    return part->ops->list_parts(part, a, upload, after, limit, out, err);
}

static void fake_untap(struct bucket *b)
{
    const struct fake_parts *p = &fake_of(b)->parts;

    for (size_t i = 0; i < p->count; i++)
        local_untap(p->buckets[i]);
}

static const struct bucket_ops fake_ops = {
    .info = fake_info,
    .usage = fake_usage,
    .head = fake_head,
    .get = fake_get,
    .put = fake_put,
    .copy = fake_copy,
    .remove = fake_remove,
    .list = fake_list,
    .list_versions = fake_list_versions,
    .set_meta = fake_set_meta,
    .upload_begin = fake_upload_begin,
    .upload_part = fake_upload_part,
    .upload_part_copy = fake_upload_part_copy,
    .upload_finish = fake_upload_finish,
    .upload_abort = fake_upload_abort,
    .list_parts = fake_list_parts,
    .object_parts = fake_object_parts,
    .list_uploads = fake_list_uploads,
    .get_document = fake_get_document,
    .set_document = fake_set_document,
    .set_versions = fake_set_versions,
    .set_object_lock = fake_set_object_lock,
    .untap = fake_untap,
    .ref = fake_ref,
    .unref = fake_unref,
};
