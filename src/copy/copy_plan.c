/* Plans the parts in which an object is copied. They are the parts that the object was made of, if
 * its storage lists them. */
#include "copy/copy_int.h"

static int plan_room(struct copy_plan *out, struct copying *w, size_t count, struct err *err)
{
    out->parts = arena_array(w->a, count + 1, sizeof(*out->parts));
    out->count = 0;
    return out->parts ? 0 : err_code(err, ERR_NO_MEMORY);
}

static void plan_add(struct copy_plan *p, uint32_t number, uint64_t size)
{
    BUG_ON(!p->parts); /* plan_room() must be called first */
    const struct copy_part *last = p->count ? &p->parts[p->count - 1] : NULL;

    p->parts[p->count++] = (struct copy_part){
        .number = number, .first = last ? last->first + last->size : 0, .size = size};
}

/* Returns whether the parts together hold all bytes, and their numbers ascend. */
static bool plan_is_whole(const struct copy_plan *p, uint64_t size)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < p->count; i++) {
        if (i > 0 && p->parts[i].number <= p->parts[i - 1].number)
            return false;
        sum += p->parts[i].size;
    }
    return p->count > 0 && sum == size;
}

/* Adds to the plan the parts that the source's object was made of. */
static int plan_told(struct copy_plan *out, struct copying *w, struct err *err)
{
    struct bucket *from = w->c->from;
    struct part_list page = {.more = true};
    uint32_t after = 0, count = w->source.part_count;
    int code = 0;

    while (code == 0 && page.more && out->count < count) {
        code = from->ops->object_parts(from, w->a, &w->source, after, count, &page, err);
        for (size_t i = 0; code == 0 && i < page.count && out->count < count; i++)
            plan_add(out, page.parts[i].number, page.parts[i].size);
        if (code == 0 && page.count == 0)
            break;
        if (code == 0)
            after = page.parts[page.count - 1].number;
    }
    return code == ERR_NOT_FOUND ? err_set(err, ERR_CONFLICT, "the source changed") : code;
}

static int plan_own(struct copy_plan *out, struct copying *w, struct err *err)
{
    int code = plan_room(out, w, w->source.part_count, err);

    if (code == 0 && w->c->from->ops->object_parts)
        code = plan_told(out, w, err);
    if (code == 0 && !plan_is_whole(out, w->source.size))
        out->count = 0;
    return code;
}

int copy_plan(struct copy_plan *out, struct copying *w, struct err *err)
{
    uint64_t size = w->source.size, part = w->o.part_size;
    int code = 0;

    *out = (struct copy_plan){0};
    if (w->source.part_count && !w->no_own_parts)
        code = plan_own(out, w, err);
    if (code < 0 || out->count || size <= w->o.whole_max)
        return code;
    while (size / part >= OBJECT_MAX_PARTS)
        part *= 2;
    code = plan_room(out, w, size / part + 1, err);
    for (uint32_t i = 1; code == 0 && size; i++) {
        uint64_t len = size < part ? size : part;
        plan_add(out, i, len);
        size -= len;
    }
    return code;
}
