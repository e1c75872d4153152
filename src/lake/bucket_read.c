/* Reads objects of the lake's buckets. */
#include "lake/address.h"
#include "lake/body.h"
#include "lake/bucket_int.h"
#include "lake/names.h"
#include "object/condition.h"

/* A read of one key. */
struct bucket_read {
    struct lake_bucket *b;
    struct arena *a;
    struct str key, version;
    const struct object_conditions *conditions;
    bool now; /* the read must not wait; where it would have to, it returns ERR_AGAIN */
    struct lake_object found;
};

/* Finds the entry of the key. */
static int bucket_read_entry(struct bucket_read *r, struct err *err)
{
    struct lake_bucket *b = r->b;
    struct lake_at at = lake_bucket_at(b, r->key);
    int code =
        b->ref.len || at.path.len ? lake_check_path(at.path, err) : err_code(err, ERR_NOT_FOUND);

    if (code < 0)
        return code;
    code = (r->now ? lake_stat_now : lake_stat)(b->lake, r->a, &b->repo, at.ref, at.path, &r->found,
                                                err);
    if (code != ERR_INVALID && code != ERR_NOT_FOUND)
        return code;
    /* an invalid ref expression counts as a missing ref */
    code = lake_bucket_check_there(b, r->a, err);
    return code < 0 ? code : err_code(err, ERR_NOT_FOUND);
}

/* Finds the entry of the key, fills out->info, and judges the conditions. */
static int bucket_find(struct bucket_read *r, struct get_result *out, struct err *err)
{
    const struct lake_entry *entry = &r->found.entry;
    int code = lake_bucket_check_version(r->version, err);

    *out = (struct get_result){0};
    if (code == 0)
        code = bucket_read_entry(r, err);
    if (code == 0)
        code = lake_entry_info(entry, r->a, arena_str(r->a, r->key), false, &out->info, err);
    if (code < 0)
        return code;
    if (!out->info.meta.owner.len)
        out->info.meta.owner = r->b->repo.owner;
    out->len = entry->size;
    struct condition_state state = {true, entry->etag, entry->modified_ms, entry->size};
    return conditions_judge_read(r->conditions, &state, err);
}

static int bucket_open(struct bucket_read *r, const struct object_range *range,
                       struct get_result *out, struct err *err)
{
    int code = bucket_find(r, out, err);

    return code < 0 ? code
                    : (r->now ? lake_body_get_now : lake_body_get)(
                          r->b->lake, r->a, &r->b->repo, &r->found.entry, range, out, err);
}

int lake_bucket_head(struct bucket *bucket, struct arena *a, struct str key, struct str version,
                     const struct object_conditions *c, struct get_result *out, struct err *err)
{
    struct bucket_read r = {lake_bucket_of(bucket), a, key, version, c};

    return bucket_find(&r, out, err);
}

int lake_bucket_head_now(struct bucket *bucket, struct arena *a, struct str key, struct str version,
                         const struct object_conditions *c, struct get_result *out, struct err *err)
{
    struct bucket_read r = {lake_bucket_of(bucket), a, key, version, c, .now = true};

    return bucket_find(&r, out, err);
}

int lake_bucket_get(struct bucket *bucket, struct arena *a, struct str key, struct str version,
                    const struct object_conditions *c, const struct object_range *range,
                    struct get_result *out, struct err *err)
{
    struct bucket_read r = {lake_bucket_of(bucket), a, key, version, c};

    return bucket_open(&r, range, out, err);
}

int lake_bucket_get_now(struct bucket *bucket, struct arena *a, struct str key, struct str version,
                        const struct object_conditions *c, const struct object_range *range,
                        struct get_result *out, struct err *err)
{
    struct bucket_read r = {lake_bucket_of(bucket), a, key, version, c, .now = true};

    return bucket_open(&r, range, out, err);
}

/* Lists the parts of an object by the sizes in its entry. */
static int parts_of_entry(const struct lake_entry *e, struct arena *a, uint32_t after, size_t limit,
                          struct part_list *out, struct err *err)
{
    size_t first = size_min(after, e->part_count);

    out->count = size_min(limit, e->part_count - first);
    out->more = first + out->count < e->part_count;
    out->parts = arena_array(a, out->count + 1, sizeof(*out->parts));
    if (!out->parts)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < out->count; i++)
        out->parts[i] = (struct upload_part){.number = (uint32_t)(first + i + 1),
                                             .size = e->part_sizes[first + i]};
    return 0;
}

/* Lists the parts of an object by its body. The storage also knows their numbers and checksums. */
static int parts_of_body(struct object_place *p, const struct lake_entry *e, struct arena *a,
                         uint32_t after, size_t limit, struct part_list *out, struct err *err)
{
    struct get_result head = {0};
    int code = p->bucket->ops->head(p->bucket, a, p->key, STR_EMPTY, NULL, &head, err);

    if (code == 0)
        code = lake_address_check(p, e, &head.info, err);
    return code < 0
               ? code
               : p->bucket->ops->object_parts(p->bucket, a, &head.info, after, limit, out, err);
}

int lake_bucket_object_parts(struct bucket *bucket, struct arena *a,
                             const struct object_info *object, uint32_t after, size_t limit,
                             struct part_list *out, struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);
    struct bucket_read r = {b, a, object->key};
    const struct lake_entry *entry = &r.found.entry;
    struct get_result head;
    struct object_place p;
    int code = bucket_find(&r, &head, err);

    *out = (struct part_list){0};
    if (code == 0 && !str_eq(entry->etag, object->etag))
        code = err_code(err, ERR_NOT_FOUND);
    if (code < 0 || entry->part_count == 0)
        return code;
    code = lake_address_open(&p, b->lake, a, &b->repo, entry, PLACE_READ, err);
    if (code < 0)
        return code;
    code = p.bucket->ops->object_parts ? parts_of_body(&p, entry, a, after, limit, out, err)
                                       : parts_of_entry(entry, a, after, limit, out, err);
    return object_place_end(&p, code, err);
}
