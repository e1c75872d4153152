/* Merged listings of uploads: those of both sides, which have nothing in common. */
#include "replica/switch/merge.h"

#include "base/vec.h"

/* An upload, or a common prefix. */
struct entry {
    struct str key, id;
    const struct upload_info *upload; /* NULL: a prefix */
};

struct gathering {
    struct arena *a;
    VEC(struct entry) all; /* of both sides, up to: */
    bool cut;
    struct str end_key, end_id; /* that is known of both; when cut */
};

static int by_key_and_id(const void *one, const void *two)
{
    const struct entry *a = one, *b = two;
    int order = str_cmp(a->key, b->key);

    return order ? order : str_cmp(a->id, b->id);
}

static void add_page(struct gathering *g, const struct upload_list *page)
{
    for (size_t i = 0; i < page->count; i++)
        vec_push(&g->all,
                 ((struct entry){page->uploads[i].key, page->uploads[i].id, &page->uploads[i]}));
    for (size_t i = 0; i < page->prefix_count; i++)
        vec_push(&g->all, ((struct entry){.key = page->prefixes[i]}));
    if (!page->more)
        return;
    struct entry end = {page->next_key, page->next_id, NULL};
    struct entry have = {g->end_key, g->end_id, NULL};
    if (!g->cut || by_key_and_id(&end, &have) < 0) {
        g->end_key = end.key;
        g->end_id = end.id;
    }
    g->cut = true;
}

/* In order, each prefix once, nothing behind the end. */
static void put_in_order(struct gathering *g)
{
    struct entry end = {g->end_key, g->end_id, NULL};
    size_t kept = 0;

    if (g->all.len)
        qsort(g->all.items, g->all.len, sizeof(*g->all.items), by_key_and_id);
    for (size_t i = 0; i < g->all.len; i++) {
        const struct entry *e = &g->all.items[i];
        if (g->cut && by_key_and_id(e, &end) > 0)
            break;
        if (kept && !e->upload && by_key_and_id(e, &g->all.items[kept - 1]) == 0)
            continue;
        g->all.items[kept++] = *e;
    }
    g->all.len = kept;
}

static int fill(const struct gathering *g, size_t limit, struct upload_list *out, struct err *err)
{
    size_t count = size_min(g->all.len, limit);

    *out = (struct upload_list){.more = g->all.len > limit || g->cut};
    out->uploads = arena_array(g->a, count + 1, sizeof(*out->uploads));
    out->prefixes = arena_array(g->a, count + 1, sizeof(*out->prefixes));
    if (!out->uploads || !out->prefixes)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < count; i++) {
        const struct entry *e = &g->all.items[i];
        if (e->upload)
            out->uploads[out->count++] = *e->upload;
        else
            out->prefixes[out->prefix_count++] = e->key;
        out->next_key = e->key;
        out->next_id = e->id;
    }
    return 0;
}

int merge_uploads(const struct merge *m, struct arena *a, const struct list_options *o,
                  struct upload_list *out, struct err *err)
{
    struct gathering g = {.a = a};
    struct list_options page = *o;
    size_t limit = size_min(o->limit, OBJECT_LIST_MAX);
    int code = 0;

    *out = (struct upload_list){0};
    page.limit = limit;
    for (int side = 0; side < SIDES && code == 0 && limit > 0; side++) {
        struct upload_list *list = arena_new(a, struct upload_list);
        struct bucket *b = m->sides[side];
        code = list ? b->ops->list_uploads(b, a, &page, list, err) : err_code(err, ERR_NO_MEMORY);
        if (code == 0)
            add_page(&g, list);
    }
    put_in_order(&g);
    if (code == 0)
        code = fill(&g, limit, out, err);
    vec_release(&g.all);
    return code;
}
