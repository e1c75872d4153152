/* Merged listings of objects and versions.
 *
 * In rounds: a page of each side behind where the last round ended, put together key by key. Only
 * keys up to the smaller end of the pages that are cut short are judged, as the other page says
 * nothing of what is behind its end. Keys that both sides have alike need no vector. Of the others
 * the vectors are read, all at one moment, and then the pages again that they are taken from (D3):
 * what was brought over between page and vector would be missing else. */
#include "replica/switch/merge.h"

#include "base/vec.h"

enum {
    PAGE_MIN = 32,
    PROBE_PAGE = 16, /* inside a common prefix the first keys say it all */
};

/* A key with what each side has of it: a run of its page. */
struct item {
    struct str key;
    bool is_prefix;
    struct run {
        size_t first, count;
        bool whole; /* the page does not end inside it */
    } runs[SIDES];
    bool judged; /* by its vector: */
    enum side side;
};
typedef VEC(struct item) item_vec;

struct round {
    struct arena a; /* of the pages */
    struct list_result pages[SIDES];
    item_vec items;
    struct str end; /* the last key that can be judged; no p: all */
};

struct merging {
    const struct merge *m;
    const struct list_options *o;
    bool versions;
    struct arena *a; /* of the result */
    VEC(struct list_entry) found;
    size_t wanted;
    struct str after, after_version; /* where the next round begins */
    enum side inside;                /* the side that after_version is of */
    bool ended;
};

static int gather(struct merging *g, struct err *err);

enum side side_of(const struct vector *v, struct str route, struct str other)
{
    int64_t at_route = vector_at(v, &(struct place){.storage = route});
    int64_t at_other = vector_at(v, &(struct place){.storage = other});

    if (v->count == 0)
        return SIDE_EITHER;
    return at_other > at_route ? SIDE_OTHER : SIDE_ROUTE;
}

/* --- pages --- */

static int read_page(struct merging *g, struct round *r, enum side side, struct err *err)
{
    struct bucket *b = g->m->sides[side];
    struct list_options o = *g->o;
    size_t page = g->wanted < PAGE_MIN ? PAGE_MIN : g->wanted;

    o.after = g->after;
    o.after_version = g->inside == side ? g->after_version : STR_EMPTY;
    o.limit = size_min(g->m->page ? g->m->page : page, OBJECT_LIST_MAX);
    r->pages[side] = (struct list_result){0};
    return g->versions ? b->ops->list_versions(b, &r->a, &o, &r->pages[side], err)
                       : b->ops->list(b, &r->a, &o, &r->pages[side], err);
}

static const struct list_entry *entry_at(const struct round *r, enum side side, size_t i)
{
    return i < r->pages[side].count ? &r->pages[side].entries[i] : NULL;
}

/* All entries from `first` on that have the key of the first. */
static struct run run_at(const struct merging *g, const struct round *r, enum side side,
                         size_t first)
{
    const struct list_entry *e = entry_at(r, side, first), *next;
    struct run run = {.first = first};

    BUG_ON(!e);
    do {
        run.count++;
        next = entry_at(r, side, first + run.count);
    } while (next && !e->is_prefix && !next->is_prefix && str_eq(next->info.key, e->info.key));
    run.whole = next || e->is_prefix || !g->versions || !r->pages[side].more;
    return run;
}

static void find_end(struct round *r)
{
    r->end = STR_EMPTY;
    for (int side = 0; side < SIDES; side++) {
        const struct list_result *page = &r->pages[side];
        if (!page->more || page->count == 0)
            continue;
        struct str last = page->entries[page->count - 1].info.key;
        if (!r->end.p || str_cmp(last, r->end) < 0)
            r->end = last;
    }
}

static void find_items(const struct merging *g, struct round *r)
{
    size_t at[SIDES] = {0};

    find_end(r);
    r->items.len = 0;
    for (;;) {
        const struct list_entry *e[SIDES] = {entry_at(r, SIDE_ROUTE, at[0]),
                                             entry_at(r, SIDE_OTHER, at[1])};
        int order = !e[0] ? 1 : !e[1] ? -1 : str_cmp(e[0]->info.key, e[1]->info.key);
        const struct list_entry *first = order <= 0 ? e[0] : e[1];
        if (!first || (r->end.p && str_cmp(first->info.key, r->end) > 0))
            break;
        struct item item = {.key = first->info.key, .is_prefix = first->is_prefix};
        for (int side = 0; side < SIDES; side++) {
            if (e[side] != first && order != 0)
                continue;
            item.runs[side] = run_at(g, r, side, at[side]);
            at[side] += item.runs[side].count;
        }
        vec_push(&r->items, item);
    }
}

/* --- judging --- */

static bool is_alike(const struct round *r, const struct item *item)
{
    const struct run *one = &item->runs[SIDE_ROUTE], *two = &item->runs[SIDE_OTHER];
    bool alike = one->count == two->count && one->whole && two->whole;

    for (size_t i = 0; alike && i < one->count; i++) {
        const struct object_info *a = &entry_at(r, SIDE_ROUTE, one->first + i)->info;
        const struct object_info *b = &entry_at(r, SIDE_OTHER, two->first + i)->info;
        alike = str_eq(a->etag, b->etag) && a->size == b->size && a->is_marker == b->is_marker;
    }
    return alike;
}

/* *again: which pages must be read once more. */
static int judge(const struct merging *g, struct round *r, bool again[SIDES], struct err *err)
{
    const struct merge *m = g->m;
    struct thing *things = arena_array(&r->a, r->items.len + 1, sizeof(*things));
    struct vector *vectors = arena_array(&r->a, r->items.len + 1, sizeof(*vectors));
    size_t n = 0;

    if (!things || !vectors)
        return err_code(err, ERR_NO_MEMORY);
    vec_each (&r->items, struct item *, item) {
        if (item->is_prefix || is_alike(r, item))
            continue;
        item->judged = true;
        things[n++] =
            (struct thing){.kind = THING_OBJECT, .bucket = m->bucket, .object = item->key};
    }
    int code = version_read_many(m->app, &r->a, things, n, vectors, err);
    n = 0;
    vec_each (&r->items, struct item *, item) {
        if (code < 0 || !item->judged)
            continue;
        item->side = side_of(&vectors[n++], m->storages[SIDE_ROUTE], m->storages[SIDE_OTHER]);
        again[item->side == SIDE_OTHER ? SIDE_OTHER : SIDE_ROUTE] = true;
    }
    return code;
}

/* What was judged before, of the items as they are now. */
static void remember(item_vec *now, const item_vec *before)
{
    size_t at = 0;

    vec_each (now, struct item *, item) {
        while (at < before->len && str_cmp(before->items[at].key, item->key) < 0)
            at++;
        if (at < before->len && str_eq(before->items[at].key, item->key)) {
            item->judged = before->items[at].judged;
            item->side = before->items[at].side;
        }
    }
}

static int read_round(struct merging *g, struct round *r, struct err *err)
{
    bool again[SIDES] = {false};
    int code = read_page(g, r, SIDE_OTHER, err);

    if (code == 0)
        code = read_page(g, r, SIDE_ROUTE, err);
    if (code < 0)
        return code;
    find_items(g, r);
    code = judge(g, r, again, err);
    for (int side = 0; side < SIDES && code == 0; side++)
        if (again[side])
            code = read_page(g, r, side, err);
    if (code == 0 && (again[SIDE_ROUTE] || again[SIDE_OTHER])) {
        item_vec before = r->items;
        r->items = (item_vec){0};
        find_items(g, r);
        remember(&r->items, &before);
        vec_release(&before);
    }
    return code;
}

/* --- taking --- */

static struct list_entry copy_entry(struct arena *a, const struct list_entry *e)
{
    struct list_entry copy = *e;
    struct object_info *info = &copy.info;

    info->key = arena_str(a, info->key);
    info->version = arena_str(a, info->version);
    info->etag = arena_str(a, info->etag);
    info->meta = (struct object_meta){.owner = arena_str(a, e->info.meta.owner),
                                      .storage_class = arena_str(a, e->info.meta.storage_class),
                                      .tags = arena_str(a, e->info.meta.tags),
                                      .checksum = e->info.meta.checksum};
    info->meta.checksum.value = arena_str(a, e->info.meta.checksum.value);
    return copy;
}

/* Whether the prefix holds a key behind where the listing began that can be seen. */
static int holds_any(const struct merging *g, struct str prefix, bool *out, struct err *err)
{
    struct merge m = *g->m;
    struct arena a = ARENA_INIT(0);
    struct list_options o = {.prefix = prefix};
    struct merging inside = {
        .m = &m, .o = &o, .versions = g->versions, .a = &a, .wanted = 1, .inside = SIDE_EITHER};

    if (str_starts(g->o->after, prefix))
        inside.after = g->o->after;
    m.page = m.page ? m.page : PROBE_PAGE;
    int code = gather(&inside, err);
    *out = inside.found.len > 0;
    vec_release(&inside.found);
    arena_release(&a);
    return code;
}

/* The side that it is taken from; false: it is not to be seen. What was not judged was alike,
 * unless it came, or went, since: then it need not be told. */
static bool choose(const struct merging *g, const struct item *item, enum side *out)
{
    bool at_route = item->runs[SIDE_ROUTE].count > 0, at_other = item->runs[SIDE_OTHER].count > 0;

    *out = item->judged && item->side == SIDE_OTHER ? SIDE_OTHER : SIDE_ROUTE;
    if (!item->judged)
        return at_route && at_other;
    if (item->side == SIDE_EITHER && !at_route && !g->m->route_only)
        *out = SIDE_OTHER;
    return item->runs[*out].count > 0;
}

static void take_run(struct merging *g, const struct round *r, const struct item *item,
                     enum side side)
{
    const struct run *run = &item->runs[side];

    for (size_t i = 0; i < run->count && g->found.len < g->wanted; i++)
        vec_push(&g->found, copy_entry(g->a, entry_at(r, side, run->first + i)));
    if (run->whole)
        return;
    const struct list_entry *last = entry_at(r, side, run->first + run->count - 1);
    g->after_version = arena_str(g->a, last->info.version);
    g->inside = side;
}

static int take_prefix(struct merging *g, const struct item *item, struct err *err)
{
    struct list_entry e = {.is_prefix = true};
    bool any = false;
    int code = holds_any(g, item->key, &any, err);

    if (!any)
        return code;
    e.info.key = arena_str(g->a, item->key);
    vec_push(&g->found, e);
    return code;
}

/* The next round begins behind the end; inside that key when its versions were cut short. */
static int take_items(struct merging *g, const struct round *r, struct err *err)
{
    int code = 0;

    g->after_version = STR_EMPTY;
    g->inside = SIDE_EITHER;
    g->ended = !r->end.p;
    if (r->end.p)
        g->after = arena_str(g->a, r->end);
    vec_each (&r->items, const struct item *, item) {
        enum side side;
        if (code < 0 || g->found.len >= g->wanted)
            break;
        if (item->is_prefix)
            code = take_prefix(g, item, err);
        else if (choose(g, item, &side))
            take_run(g, r, item, side);
    }
    return code;
}

static int run_round(struct merging *g, struct err *err)
{
    struct round r = {.a = ARENA_INIT(0)};
    int code = read_round(g, &r, err);

    if (code == 0)
        code = take_items(g, &r, err);
    vec_release(&r.items);
    arena_release(&r.a);
    return code == 0 && arena_error(g->a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}

static int gather(struct merging *g, struct err *err)
{
    int code = 0;

    while (code == 0 && !g->ended && g->found.len < g->wanted)
        code = run_round(g, err);
    return code;
}

/* --- the whole --- */

static int has_version(struct merging *g, enum side side, bool *out, struct err *err)
{
    static const struct object_conditions none;
    struct bucket *b = g->m->sides[side];
    struct get_result got = {0};
    int code = b->ops->head(b, g->a, g->o->after, g->o->after_version, &none, &got, err);

    *out = code == 0 || (code == ERR_NOT_FOUND && got.info.is_marker);
    return code == ERR_NOT_FOUND || code == ERR_INVALID ? 0 : code;
}

/* The versions of a key are listed to their end on the side where that began. */
static int find_inside(struct merging *g, struct err *err)
{
    int code = 0;

    if (!g->o->after_version.len)
        return 0;
    for (int side = 0; side < SIDES && code == 0 && g->inside == SIDE_EITHER; side++) {
        bool has = false;
        code = has_version(g, side, &has, err);
        if (has)
            g->inside = side;
    }
    return code;
}

static int finish(struct merging *g, struct list_result *out, struct err *err)
{
    size_t count = size_min(g->found.len, g->wanted - 1);

    *out = (struct list_result){.count = count, .more = g->found.len > count};
    out->entries = arena_array(g->a, count + 1, sizeof(*out->entries));
    if (!out->entries)
        return err_code(err, ERR_NO_MEMORY);
    if (count == 0)
        return 0;
    memcpy(out->entries, g->found.items, count * sizeof(*out->entries));
    out->next = out->entries[count - 1].info.key;
    out->next_version = out->entries[count - 1].info.version;
    return 0;
}

int merge_list(const struct merge *m, struct arena *a, const struct list_options *o, bool versions,
               struct list_result *out, struct err *err)
{
    struct merging g = {.m = m,
                        .o = o,
                        .versions = versions,
                        .a = a,
                        .wanted = size_min(o->limit, OBJECT_LIST_MAX) + 1,
                        .after = o->after,
                        .after_version = o->after_version,
                        .inside = SIDE_EITHER};
    int code = 0;

    *out = (struct list_result){0};
    if (o->limit == 0)
        return 0;
    if (versions)
        code = find_inside(&g, err);
    if (code == 0)
        code = gather(&g, err);
    if (code == 0)
        code = finish(&g, out, err);
    vec_release(&g.found);
    return code;
}
