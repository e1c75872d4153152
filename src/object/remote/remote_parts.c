/* Finds the parts that an object was made of. S3 has no request that lists them: a HEAD with a part
 * number gives the size of one part, and a HEAD without a part number gives the number of parts. */
#include "object/remote/remote_int.h"

enum {
    GAPS_MAX = 1000 /* after this many part numbers without a part, the search ends */
};

/* The object whose parts are asked for. */
struct part_source {
    struct remote_bucket *b;
    struct arena *a;
    const struct object_info *object;
};

/* The peer's answer about one part number. */
struct part_answer {
    enum { PART_TOLD, PART_MISSING, PART_NOT_TOLD /* the peer gives no sizes of parts */ } kind;
    uint64_t size; /* for PART_TOLD: the part's size in bytes */
    bool is_last; /* for PART_TOLD: the part ends where the object ends; false also if the peer does
                     not say */
};

static bool part_ends_object(const struct ask *q)
{
    struct str range = ask_answer(q, "Content-Range"), last, size;
    uint64_t end, all;

    return str_cut(range, '-', &range, &last) && str_cut(last, '/', &last, &size) &&
           str_u64(last, &end) == 0 && str_u64(size, &all) == 0 && end + 1 == all;
}

static int part_head(struct part_answer *out, const struct part_source *s, uint32_t number,
                     struct err *err)
{
    struct ask q;

    ask_init_bucket(&q, s->b, "HEAD", s->object->key);
    ask_param_u64(&q, "partNumber", number);
    if (!s->object->is_latest)
        ask_param_given(&q, "versionId", s->object->version);
    ask_header(&q, "If-Match", arena_fmt(&q.a, "\"" STR_FMT "\"", STR_ARG(s->object->etag)));
    *out = (struct part_answer){.kind = PART_NOT_TOLD};
    int code = ask_send(&q, err), status = q.head ? q.head->status : 0;
    if (code == 0 && status == 206 && q.head->has_length)
        *out = (struct part_answer){PART_TOLD, q.head->content_length, part_ends_object(&q)};
    else if (status == 412 || status == 404)
        code = err_set(err, ERR_NOT_FOUND, "the object has changed");
    else if (status == 416 || status == 400)
        code = 0, out->kind = PART_MISSING;
    else if (status && status < 500)
        code = 0;
    ask_release(&q);
    return code;
}

static void part_add(struct part_list *out, uint32_t number, uint64_t size)
{
    out->parts[out->count++] = (struct upload_part){.number = number, .size = size};
}

/* Lists the parts of an object whose parts are all as large as the first, except the last, with no
 * number left out. Most objects are like this. Then two requests are enough: for the first and for
 * the last part. *fits false: the object is not like this. */
static int parts_if_even(struct part_list *out, const struct part_source *s, uint64_t first,
                         size_t limit, bool *fits, struct err *err)
{
    uint32_t count = s->object->part_count;
    uint64_t size = s->object->size, before;
    struct part_answer last = {0};

    *fits = first && first <= size && count > 1 && first <= size / (count - 1);
    before = *fits ? first * (count - 1) : 0;
    *fits = *fits && size > before && size - before <= first;
    int code = *fits ? part_head(&last, s, count, err) : 0;
    *fits = *fits && code == 0 && last.kind == PART_TOLD && last.size == size - before;
    for (uint32_t i = 1; *fits && i <= count && out->count < limit; i++)
        part_add(out, i, i < count ? first : last.size);
    out->more = *fits && out->count < count;
    return code;
}

static int parts_one_by_one(struct part_list *out, const struct part_source *s, uint32_t after,
                            size_t limit, struct err *err)
{
    struct part_answer part = {0};
    uint32_t number = after, gaps = 0;
    int code = 0;

    while (code == 0 && out->count < limit && !part.is_last && number < OBJECT_MAX_PARTS &&
           gaps <= GAPS_MAX) {
        code = part_head(&part, s, ++number, err);
        if (code < 0 || part.kind == PART_NOT_TOLD)
            return code;
        if (part.kind == PART_TOLD)
            part_add(out, number, part.size);
        else
            gaps++;
    }
    bool all = part.is_last || (after == 0 && out->count == s->object->part_count);
    out->more = out->count == limit && !all && number < OBJECT_MAX_PARTS;
    return code;
}

int remote_object_parts(struct bucket *bucket, struct arena *a, const struct object_info *object,
                        uint32_t after, size_t limit, struct part_list *out, struct err *err)
{
    struct part_source s = {remote_bucket_of(bucket), a, object};
    struct part_answer first = {0};
    bool fits = false;
    int code = remote_key_check(object->key, err);

    *out = (struct part_list){0};
    limit = size_min(size_min(limit, object->part_count), OBJECT_MAX_PARTS);
    if (code < 0 || limit == 0)
        return code;
    out->parts = arena_array(a, limit, sizeof(*out->parts));
    if (!out->parts)
        return err_code(err, ERR_NO_MEMORY);
    if (after == 0) {
        code = part_head(&first, &s, 1, err);
        if (code == 0 && first.kind == PART_TOLD)
            code = parts_if_even(out, &s, first.size, limit, &fits, err);
    }
    if (code < 0 || fits || first.kind == PART_NOT_TOLD)
        return code;
    return parts_one_by_one(out, &s, after, limit, err);
}
