/* Merged listings of uploads. No upload is in two buckets, so the caller need not choose. */
#include "object/merge.h"

#include "base/vec.h"

/* An upload, or a common prefix of uploads. */
struct upload_entry {
    struct str key, id;
    const struct upload_info *upload; /* NULL: the entry is a common prefix */
};

struct upload_gathering {
    struct arena *a;
    VEC(struct upload_entry) all; /* entries of all buckets */
    bool cut;
    struct str end_key, end_id; /* where the shortest page ends; set when `cut` */
};

static int upload_order(const void *one, const void *two)
{
    const struct upload_entry *a = one, *b = two;
    int order = str_cmp(a->key, b->key);

    return order ? order : str_cmp(a->id, b->id);
}

static void uploads_add_page(struct upload_gathering *g, const struct upload_list *page)
{
    for (size_t i = 0; i < page->count; i++)
        vec_push(&g->all, ((struct upload_entry){page->uploads[i].key, page->uploads[i].id,
                                                 &page->uploads[i]}));
    for (size_t i = 0; i < page->prefix_count; i++)
        vec_push(&g->all, ((struct upload_entry){.key = page->prefixes[i]}));
    if (!page->more)
        return;
    struct upload_entry end = {page->next_key, page->next_id, NULL};
    struct upload_entry have = {g->end_key, g->end_id, NULL};
    if (!g->cut || upload_order(&end, &have) < 0) {
        g->end_key = end.key;
        g->end_id = end.id;
    }
    g->cut = true;
}

/* Sorts the entries, keeps each prefix once, and drops entries after the end. */
static void uploads_put_in_order(struct upload_gathering *g)
{
    struct upload_entry end = {g->end_key, g->end_id, NULL};
    size_t kept = 0;

    if (g->all.len)
        qsort(g->all.items, g->all.len, sizeof(*g->all.items), upload_order);
    for (size_t i = 0; i < g->all.len; i++) {
        const struct upload_entry *e = &g->all.items[i];
        if (g->cut && upload_order(e, &end) > 0)
            break;
        if (kept && !e->upload && upload_order(e, &g->all.items[kept - 1]) == 0)
            continue;
        g->all.items[kept++] = *e;
    }
    g->all.len = kept;
}

static int uploads_fill(const struct upload_gathering *g, size_t limit, struct upload_list *out,
                        struct err *err)
{
    size_t count = size_min(g->all.len, limit);

    *out = (struct upload_list){.more = g->all.len > limit || g->cut};
    out->uploads = arena_array(g->a, count + 1, sizeof(*out->uploads));
    out->prefixes = arena_array(g->a, count + 1, sizeof(*out->prefixes));
    if (!out->uploads || !out->prefixes)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < count; i++) {
        const struct upload_entry *e = &g->all.items[i];
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
    struct upload_gathering g = {.a = a};
    struct list_options page = *o;
    size_t limit = size_min(o->limit, OBJECT_LIST_MAX);
    int code = 0;

    *out = (struct upload_list){0};
    page.limit = limit;
    for (size_t i = 0; i < m->count && code == 0 && limit > 0; i++) {
        struct upload_list *list = arena_new(a, struct upload_list);
        struct bucket *b = m->buckets[i];
        code = list ? b->ops->list_uploads(b, a, &page, list, err) : err_code(err, ERR_NO_MEMORY);
        if (code == 0)
            uploads_add_page(&g, list);
    }
    uploads_put_in_order(&g);
    if (code == 0)
        code = uploads_fill(&g, limit, out, err);
    vec_release(&g.all);
    return code;
}
