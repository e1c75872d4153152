/* Which parts an object is copied by: those that it was made of. */
#include "copy/copy_int.h"

#include "http/upstream.h"

enum {
    PARTS_PAGE = 1000,
    NAMED_MAX = 128, /* bytes of a path in an error */
    GAPS_MAX = 1000, /* numbers that no part has, until the storage is asked no more */
};
#define PART_MISSING (UINT64_MAX - 1)

static int plan_room(struct copy_plan *out, struct copying *w, size_t count, struct err *err)
{
    out->parts = arena_array(w->a, count + 1, sizeof(*out->parts));
    out->count = 0;
    return out->parts ? 0 : err_code(err, ERR_NO_MEMORY);
}

static void plan_add(struct copy_plan *p, uint32_t number, uint64_t size)
{
    BUG_ON(!p->parts); /* plan_room() comes first */
    const struct copy_part *last = p->count ? &p->parts[p->count - 1] : NULL;

    p->parts[p->count++] = (struct copy_part){
        .number = number, .first = last ? last->first + last->size : 0, .size = size};
}

/* All bytes, in parts whose numbers go up. */
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

/* --- what the storage tells --- */

static int plan_told(struct copy_plan *out, struct copying *w, struct err *err)
{
    struct bucket *from = w->c->from;
    struct part_list page = {.more = true};
    uint32_t after = 0;
    int code = 0;

    while (code == 0 && page.more && out->count < w->source.part_count) {
        code = from->ops->object_parts(from, w->a, &w->source, after, PARTS_PAGE, &page, err);
        for (size_t i = 0; code == 0 && i < page.count && out->count < w->source.part_count; i++)
            plan_add(out, page.parts[i].number, page.parts[i].size);
        if (code == 0 && page.count == 0)
            break;
        if (code == 0)
            after = page.parts[page.count - 1].number;
    }
    return code == ERR_NOT_FOUND ? err_set(err, ERR_CONFLICT, "the source changed") : code;
}

/* --- HEAD ?partNumber --- */

/* *size UINT64_MAX: the storage does not say how large parts are; PART_MISSING: no part has that
 * number. */
static int head_part(struct copying *w, uint32_t number, uint64_t *size, struct err *err)
{
    struct storage *s = w->c->from->storage;
    struct http_header is = {STR("If-Match"), w->source_is.if_match};
    struct buf path = BUF_INIT(HTTP_MAX_HEAD), query = BUF_INIT(HTTP_MAX_HEAD);
    struct exchange *e = NULL;

    buf_append_char(&path, '/');
    url_encode(&path, w->c->from->name, false);
    buf_append_char(&path, '/');
    url_encode(&path, w->c->key, true);
    buf_appendf(&query, "partNumber=%u", number);
    if (w->c->version.len) {
        buf_append_z(&query, "&versionId=");
        url_encode(&query, w->c->version, false);
    }
    struct forward_request r = {.user = w->c->user,
                                .method = STR("HEAD"),
                                .path = buf_str(&path),
                                .query = buf_str(&query),
                                .headers = &is,
                                .header_count = 1,
                                .idempotent = true};
    int code = s->ops->forward(s, &r, &e, err);
    *size = UINT64_MAX;
    if (code == 0) {
        const struct http_head *head = exchange_head(e);
        if (head->status == 412 || head->status == 404)
            code = err_set(err, ERR_CONFLICT, "the source changed while it was copied");
        else if (head->status == 206 && head->has_length)
            *size = head->content_length;
        else if (head->status == 416 || head->status == 400)
            *size = PART_MISSING;
        else if (head->status >= 500)
            code = err_set(err, ERR_PEER,
                           "storage " STR_FMT ", HEAD " STR_FMT " as user " STR_FMT
                           ": the storage answers %d",
                           STR_ARG(s->name), STR_ARG(str_head(r.path, NAMED_MAX)), STR_ARG(r.user),
                           head->status);
    }
    exchange_close(e);
    buf_release(&path);
    buf_release(&query);
    return code;
}

/* The usual: all parts but the last are as large as the first. */
static int plan_even(struct copy_plan *out, struct copying *w, uint64_t first, bool *fits,
                     struct err *err)
{
    uint32_t count = w->source.part_count;
    uint64_t size = w->source.size, before, last = 0;

    *fits = first && first <= size && count > 1 && first <= size / (count - 1);
    before = *fits ? first * (count - 1) : 0;
    *fits = *fits && size > before && size - before <= first;
    int code = *fits ? head_part(w, count, &last, err) : 0;
    *fits = *fits && code == 0 && last == size - before;
    for (uint32_t i = 1; *fits && i <= count; i++)
        plan_add(out, i, i < count ? first : last);
    return code;
}

/* Numbers may have gaps. */
static int plan_each(struct copy_plan *out, struct copying *w, struct err *err)
{
    uint32_t gaps = 0;
    uint64_t size = 0;
    int code = 0;

    for (uint32_t i = 1; code == 0 && out->count < w->source.part_count && gaps <= GAPS_MAX; i++) {
        code = head_part(w, i, &size, err);
        if (code == 0 && size == UINT64_MAX)
            break;
        if (code == 0 && size == PART_MISSING)
            gaps++;
        else if (code == 0)
            plan_add(out, i, size);
    }
    return code;
}

static int plan_asked(struct copy_plan *out, struct copying *w, struct err *err)
{
    uint64_t size = 0;
    bool fits = false;
    int code = head_part(w, 1, &size, err);

    if (code == 0 && size != UINT64_MAX)
        code = plan_even(out, w, size, &fits, err);
    if (code < 0 || fits || size == UINT64_MAX)
        return code;
    return plan_each(out, w, err);
}

/* --- */

static int plan_own(struct copy_plan *out, struct copying *w, struct err *err)
{
    struct bucket *from = w->c->from;
    int code = plan_room(out, w, w->source.part_count, err);

    if (code < 0)
        return code;
    if (from->ops->object_parts)
        code = plan_told(out, w, err);
    else if (bucket_can(from, STORAGE_FORWARDS))
        code = plan_asked(out, w, err);
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
