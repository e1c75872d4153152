/* A shelf as a struct bucket. */
#include "archive/shelf_bucket.h"

#include "archive/shelf_int.h"

static struct shelf_bucket *shelf_bucket_of(struct bucket *b)
{
    return container_of(b, struct shelf_bucket, bucket);
}

/* --- reading --- */

static int shelf_bucket_head(struct bucket *b, struct arena *a, struct str key, struct str version,
                             const struct object_conditions *c, struct get_result *out,
                             struct err *err)
{
    BUG_ON(version.len || c);
    *out = (struct get_result){0};
    return shelf_head(shelf_bucket_of(b)->shelf, a, key, &out->info, err);
}

/* The ETag of a condition, without its quotes. */
static struct str condition_etag(const struct object_conditions *c)
{
    struct str etag = c ? c->if_match : STR_EMPTY;

    BUG_ON(c && (c->if_none_match.len || c->if_modified_since_ms || c->if_unmodified_since_ms));
    BUG_ON(etag.len == 1);
    return etag.len ? str_n(etag.p + 1, etag.len - 2) : etag;
}

static int shelf_bucket_get(struct bucket *b, struct arena *a, struct str key, struct str version,
                            const struct object_conditions *c, const struct object_range *range,
                            struct get_result *out, struct err *err)
{
    struct shelf *s = shelf_bucket_of(b)->shelf;
    struct object_info of = {.key = key, .etag = condition_etag(c)};
    struct shelf_body got = {0};

    BUG_ON(version.len);
    int code = of.etag.len ? shelf_get_if(s, a, &of, range, &got, err)
                           : shelf_get(s, a, key, range, &got, err);
    if (code == 0)
        *out = (struct get_result){.info = got.info,
                                   .body = got.body,
                                   .first = got.first,
                                   .len = got.len,
                                   .partial = range != NULL};
    return code;
}

static int shelf_bucket_parts(struct bucket *b, struct arena *a, const struct object_info *object,
                              uint32_t after, size_t limit, struct part_list *out, struct err *err)
{
    struct shelf *s = shelf_bucket_of(b)->shelf;
    struct object_place p;

    *out = (struct part_list){0};
    /* While the slot moves, the caller must not copy parts, so it gets an empty list. */
    if (shelf_has(s, SHELF_FROM))
        return 0;
    int code = shelf_open_read(&p, s, a, SHELF_TO, object->key, err);
    if (code < 0)
        return code;
    if (p.bucket->ops->object_parts)
        code = p.bucket->ops->object_parts(p.bucket, a, object, after, limit, out, err);
    return object_place_end(&p, code, err);
}

/* --- writing --- */

static int shelf_bucket_put(struct bucket *b, struct arena *a, struct str key, struct reader *body,
                            uint64_t size, const struct put_options *o, struct put_result *out,
                            struct err *err)
{
    return shelf_put(shelf_bucket_of(b)->shelf, a, key, body, size, o, out, err);
}

static int shelf_bucket_upload_begin(struct bucket *b, struct arena *a, struct str key,
                                     const struct object_meta *meta, struct str *id,
                                     struct err *err)
{
    struct shelf_bucket *sb = shelf_bucket_of(b);
    int code = shelf_upload_begin(sb->shelf, a, key, meta, &sb->upload, err);

    if (code == 0)
        *id = sb->upload.id;
    return code;
}

/* The description of the upload that the shelf made when the upload began. */
static const struct upload_info *shelf_bucket_upload(const struct shelf_bucket *sb,
                                                     const struct upload_info *given)
{
    BUG_ON(!str_eq(sb->upload.id, given->id));
    return &sb->upload;
}

static int shelf_bucket_upload_part(struct bucket *b, struct arena *a,
                                    const struct upload_info *upload, uint32_t number,
                                    struct reader *body, uint64_t size, const struct put_options *o,
                                    struct upload_part *out, struct err *err)
{
    struct shelf_bucket *sb = shelf_bucket_of(b);

    BUG_ON(o->verify);
    return shelf_upload_part(sb->shelf, a, shelf_bucket_upload(sb, upload), number, body, size, out,
                             err);
}

static int shelf_bucket_upload_part_copy(struct bucket *b, struct arena *a,
                                         const struct upload_info *upload, uint32_t number,
                                         struct bucket *from, const struct object_info *source,
                                         const struct object_range *range, struct upload_part *out,
                                         struct err *err)
{
    struct shelf_bucket *sb = shelf_bucket_of(b);

    BUG_ON(from != b);
    return shelf_upload_part_copy(sb->shelf, a, shelf_bucket_upload(sb, upload), number, source,
                                  range, out, err);
}

static int shelf_bucket_upload_finish(struct bucket *b, struct arena *a,
                                      const struct upload_info *upload,
                                      const struct upload_part *parts, size_t count,
                                      const struct put_options *o, struct put_result *out,
                                      struct err *err)
{
    struct shelf_bucket *sb = shelf_bucket_of(b);

    BUG_ON(o->verify);
    return shelf_upload_finish(sb->shelf, a, shelf_bucket_upload(sb, upload), parts, count,
                               &o->conditions, out, err);
}

static int shelf_bucket_upload_abort(struct bucket *b, const struct upload_info *upload,
                                     struct err *err)
{
    struct shelf_bucket *sb = shelf_bucket_of(b);

    return shelf_upload_abort(sb->shelf, shelf_bucket_upload(sb, upload), err);
}

static const struct bucket_ops shelf_bucket_ops = {
    .head = shelf_bucket_head,
    .get = shelf_bucket_get,
    .put = shelf_bucket_put,
    .upload_begin = shelf_bucket_upload_begin,
    .upload_part = shelf_bucket_upload_part,
    .upload_part_copy = shelf_bucket_upload_part_copy,
    .upload_finish = shelf_bucket_upload_finish,
    .upload_abort = shelf_bucket_upload_abort,
    .object_parts = shelf_bucket_parts,
};

int shelf_bucket_init(struct shelf_bucket *out, struct shelf *s, struct err *err)
{
    struct arena a = {0};
    struct object_place p;
    int code = shelf_open_read(&p, s, &a, SHELF_TO, STR("-"), err);

    *out =
        (struct shelf_bucket){.bucket = {.ops = &shelf_bucket_ops, .name = s->bucket}, .shelf = s};
    if (code == 0) {
        out->bucket.can = bucket_can(p.bucket, STORAGE_ANY_LENGTH) ? STORAGE_ANY_LENGTH : 0;
        code = object_place_end(&p, 0, err);
    }
    arena_release(&a);
    return code == ERR_NOT_FOUND ? 0 : code; /* the first change makes the bucket */
}
