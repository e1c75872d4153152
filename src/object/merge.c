/* Merged listings of objects and versions.
 *
 * The listing is made in rounds. A round reads a page of each bucket, which begins where the
 * previous round ended, and merges the pages key by key. If a bucket has more entries than fit its
 * page, the page says nothing about keys after its last key. So a round handles only keys up to the
 * smallest last key of such pages.
 *
 * Keys whose entries are the same in all buckets need no choice. For the other keys the caller
 * chooses a bucket. Then the pages of the chosen buckets are read again: otherwise an object that
 * came to its bucket between the first reading and the choice would be missing. Objects move only
 * to buckets with lower indexes, so the pages are read from the last bucket to the first. */
#include "object/merge.h"

#include "base/vec.h"

enum {
    PAGE_MIN = 32,
    PROBE_PAGE = 16, /* page size inside a common prefix, where the first few keys are enough */
    NOT_INSIDE = -1,
};

/* The entries of one key on a bucket's page. */
struct key_run {
    size_t first, count;
    bool whole; /* all entries of the key are on this page */
};

/* A key, or a common prefix, with the entries that each bucket has for it. */
struct merge_item {
    struct str key;
    bool is_prefix;
    struct key_run *runs; /* the runs of this key, one for each bucket */
    bool chosen;          /* the caller was asked, and has set `from` */
    int from;             /* index of the bucket to list the key from, or MERGE_FIRST */
};
typedef VEC(struct merge_item) item_vec;

struct merge_round {
    struct arena a;            /* holds the pages */
    struct list_result *pages; /* one for each bucket */
    item_vec items;
    struct str end; /* the last key that this round handles; p NULL: it handles all keys */
};

struct merging {
    const struct merge *m;
    const struct list_options *o;
    bool versions;
    struct arena *a; /* holds the result */
    VEC(struct list_entry) found;
    size_t wanted;
    struct str after, after_version; /* where the next round begins */
    int inside;                      /* index of the bucket that has after_version, or NOT_INSIDE */
    bool ended;
};

static int merge_gather(struct merging *g, struct err *err);

/* --- reading pages --- */

static int round_read_page(struct merging *g, struct merge_round *r, size_t bucket, struct err *err)
{
    struct bucket *b = g->m->buckets[bucket];
    struct list_options o = *g->o;
    size_t page = g->wanted < PAGE_MIN ? PAGE_MIN : g->wanted;

    o.after = g->after;
    o.after_version = g->inside == (int)bucket ? g->after_version : STR_EMPTY;
    o.limit = size_min(g->m->page ? g->m->page : page, OBJECT_LIST_MAX);
    r->pages[bucket] = (struct list_result){0};
    return g->versions ? b->ops->list_versions(b, &r->a, &o, &r->pages[bucket], err)
                       : b->ops->list(b, &r->a, &o, &r->pages[bucket], err);
}

static const struct list_entry *page_entry(const struct merge_round *r, size_t bucket, size_t i)
{
    return i < r->pages[bucket].count ? &r->pages[bucket].entries[i] : NULL;
}

/* Returns the run of entries that begins at `first` and has one key. */
static struct key_run page_run(const struct merging *g, const struct merge_round *r, size_t bucket,
                               size_t first)
{
    const struct list_entry *e = page_entry(r, bucket, first), *next;
    struct key_run run = {.first = first};

    BUG_ON(!e);
    do {
        run.count++;
        next = page_entry(r, bucket, first + run.count);
    } while (next && !e->is_prefix && !next->is_prefix && str_eq(next->info.key, e->info.key));
    run.whole = next || e->is_prefix || !g->versions || !r->pages[bucket].more;
    return run;
}

static void round_find_end(const struct merging *g, struct merge_round *r)
{
    r->end = STR_EMPTY;
    for (size_t i = 0; i < g->m->count; i++) {
        const struct list_result *page = &r->pages[i];
        if (!page->more || page->count == 0)
            continue;
        struct str last = page->entries[page->count - 1].info.key;
        if (!r->end.p || str_cmp(last, r->end) < 0)
            r->end = last;
    }
}

/* Returns the entry with the lowest key among the entries at the indexes `at` of the pages; NULL:
 * all pages have ended. */
static const struct list_entry *round_least(const struct merging *g, const struct merge_round *r,
                                            const size_t *at)
{
    const struct list_entry *least = NULL;

    for (size_t i = 0; i < g->m->count; i++) {
        const struct list_entry *e = page_entry(r, i, at[i]);
        if (e && (!least || str_cmp(e->info.key, least->info.key) < 0))
            least = e;
    }
    return least;
}

static int round_find_items(const struct merging *g, struct merge_round *r, struct err *err)
{
    size_t count = g->m->count, *at = arena_array(&r->a, count, sizeof(*at));
    const struct list_entry *least;

    round_find_end(g, r);
    r->items.len = 0;
    while (at && (least = round_least(g, r, at))) {
        struct merge_item item = {.key = least->info.key, .is_prefix = least->is_prefix};
        if (r->end.p && str_cmp(item.key, r->end) > 0)
            break;
        item.runs = arena_array(&r->a, count, sizeof(*item.runs));
        if (!item.runs)
            break;
        for (size_t i = 0; i < count; i++) {
            const struct list_entry *e = page_entry(r, i, at[i]);
            if (!e || !str_eq(e->info.key, item.key))
                continue;
            item.runs[i] = page_run(g, r, i, at[i]);
            at[i] += item.runs[i].count;
        }
        vec_push(&r->items, item);
    }
    return arena_error(&r->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* --- choosing a bucket for each key --- */

static bool runs_are_alike(const struct merge_round *r, const struct merge_item *item, size_t other)
{
    const struct key_run *one = &item->runs[0], *two = &item->runs[other];
    bool alike = one->count == two->count && one->whole && two->whole;

    for (size_t i = 0; alike && i < one->count; i++) {
        const struct object_info *a = &page_entry(r, 0, one->first + i)->info;
        const struct object_info *b = &page_entry(r, other, two->first + i)->info;
        alike = str_eq(a->etag, b->etag) && a->size == b->size && a->is_marker == b->is_marker;
    }
    return alike;
}

/* Whether all buckets have the same entries of the key. */
static bool item_is_alike(const struct merging *g, const struct merge_round *r,
                          const struct merge_item *item)
{
    bool alike = true;

    for (size_t i = 1; i < g->m->count && alike; i++)
        alike = runs_are_alike(r, item, i);
    return alike;
}

/* Marks the pages from which the key may be taken. With MERGE_FIRST the last bucket's page need not
 * be read again: a key that was only in the last bucket has not moved before that page was read. */
static void item_mark(const struct merge_item *item, bool *again, size_t count)
{
    if (item->from != MERGE_FIRST)
        again[item->from] = true;
    for (size_t i = 0; item->from == MERGE_FIRST && i + 1 < count; i++)
        again[i] = true;
}

/* Asks the caller which bucket each key is listed from, and sets in `again` which pages must be
 * read once more. */
static int round_choose(const struct merging *g, struct merge_round *r, bool *again,
                        struct err *err)
{
    const struct merge *m = g->m;
    struct merge_key *keys = arena_array(&r->a, r->items.len + 1, sizeof(*keys));
    size_t n = 0;

    if (!keys)
        return err_code(err, ERR_NO_MEMORY);
    vec_each (&r->items, struct merge_item *, item) {
        if (item->is_prefix || item_is_alike(g, r, item))
            continue;
        item->chosen = true;
        keys[n++] = (struct merge_key){item->key, MERGE_FIRST};
    }
    int code = m->choose(m->ctx, &r->a, keys, n, err);
    n = 0;
    vec_each (&r->items, struct merge_item *, item) {
        if (code < 0 || !item->chosen)
            continue;
        item->from = keys[n++].from;
        BUG_ON(item->from != MERGE_FIRST && (item->from < 0 || (size_t)item->from >= m->count));
        item_mark(item, again, m->count);
    }
    return code;
}

/* Copies the choices of the items in `before` to the items in `now` that have the same keys. */
static void items_remember(item_vec *now, const item_vec *before)
{
    size_t at = 0;

    vec_each (now, struct merge_item *, item) {
        while (at < before->len && str_cmp(before->items[at].key, item->key) < 0)
            at++;
        if (at < before->len && str_eq(before->items[at].key, item->key)) {
            item->chosen = before->items[at].chosen;
            item->from = before->items[at].from;
        }
    }
}

static int round_read_again(struct merging *g, struct merge_round *r, const bool *again,
                            struct err *err)
{
    bool any = false;
    int code = 0;

    for (size_t i = 0; i < g->m->count && code == 0; i++) {
        any |= again[i];
        if (again[i])
            code = round_read_page(g, r, i, err);
    }
    if (code < 0 || !any)
        return code;
    item_vec before = r->items;
    r->items = (item_vec){0};
    code = round_find_items(g, r, err);
    items_remember(&r->items, &before);
    vec_release(&before);
    return code;
}

static int round_read(struct merging *g, struct merge_round *r, struct err *err)
{
    size_t count = g->m->count;
    bool *again = arena_array(&r->a, count, sizeof(*again));
    int code = 0;

    r->pages = arena_array(&r->a, count, sizeof(*r->pages));
    if (!again || !r->pages)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = count; i > 0 && code == 0; i--)
        code = round_read_page(g, r, i - 1, err);
    if (code == 0)
        code = round_find_items(g, r, err);
    if (code < 0 || !g->m->choose)
        return code;
    code = round_choose(g, r, again, err);
    return code < 0 ? code : round_read_again(g, r, again, err);
}

/* --- taking keys into the result --- */

static struct list_entry entry_copy(struct arena *a, const struct list_entry *e)
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

/* Sets *out to whether the listing has any key under the prefix after the place where it began.
 * Without choose() the answer is true: a bucket has listed the prefix because of a key under it,
 * and each key of each bucket is listed. */
static int prefix_holds_any(const struct merging *g, struct str prefix, bool *out, struct err *err)
{
    struct merge m = *g->m;
    struct arena a = ARENA_INIT(0);
    struct list_options o = {.prefix = prefix};
    struct merging inside = {
        .m = &m, .o = &o, .versions = g->versions, .a = &a, .wanted = 1, .inside = NOT_INSIDE};

    *out = true;
    if (!m.choose)
        return 0;
    if (str_starts(g->o->after, prefix))
        inside.after = g->o->after;
    m.page = m.page ? m.page : PROBE_PAGE;
    int code = merge_gather(&inside, err);
    *out = inside.found.len > 0;
    vec_release(&inside.found);
    arena_release(&a);
    return code;
}

/* Sets *out to the bucket from which the key is listed. False: the key is not listed. If the caller
 * was not asked about the key, all buckets had the same entries of it. If that has changed since,
 * the key was put or removed meanwhile, and may be left out. */
static bool item_source(const struct merging *g, const struct merge_item *item, size_t *out)
{
    size_t has = 0, first = 0;

    for (size_t i = g->m->count; i > 0; i--)
        if (item->runs[i - 1].count) {
            has++;
            first = i - 1;
        }
    *out = item->chosen && item->from != MERGE_FIRST ? (size_t)item->from : first;
    if (g->m->choose && !item->chosen)
        return has == g->m->count;
    return item->runs[*out].count > 0;
}

static void take_run(struct merging *g, const struct merge_round *r, const struct merge_item *item,
                     size_t bucket)
{
    const struct key_run *run = &item->runs[bucket];

    for (size_t i = 0; i < run->count && g->found.len < g->wanted; i++)
        vec_push(&g->found, entry_copy(g->a, page_entry(r, bucket, run->first + i)));
    if (run->whole)
        return;
    const struct list_entry *last = page_entry(r, bucket, run->first + run->count - 1);
    g->after_version = arena_str(g->a, last->info.version);
    g->inside = (int)bucket;
}

static int take_prefix(struct merging *g, const struct merge_item *item, struct err *err)
{
    struct list_entry e = {.is_prefix = true};
    bool any = false;
    int code = prefix_holds_any(g, item->key, &any, err);

    if (!any)
        return code;
    e.info.key = arena_str(g->a, item->key);
    vec_push(&g->found, e);
    return code;
}

/* Adds the round's keys to the result. The next round begins after the last key, or inside that key
 * if some of its versions are not in the result yet. */
static int round_take(struct merging *g, const struct merge_round *r, struct err *err)
{
    int code = 0;

    g->after_version = STR_EMPTY;
    g->inside = NOT_INSIDE;
    g->ended = !r->end.p;
    if (r->end.p)
        g->after = arena_str(g->a, r->end);
    vec_each (&r->items, const struct merge_item *, item) {
        size_t bucket;
        if (code < 0 || g->found.len >= g->wanted)
            break;
        if (item->is_prefix)
            code = take_prefix(g, item, err);
        else if (item_source(g, item, &bucket))
            take_run(g, r, item, bucket);
    }
    return code;
}

static int round_run(struct merging *g, struct err *err)
{
    struct merge_round r = {.a = ARENA_INIT(0)};
    int code = round_read(g, &r, err);

    if (code == 0)
        code = round_take(g, &r, err);
    vec_release(&r.items);
    arena_release(&r.a);
    return code == 0 && arena_error(g->a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}

static int merge_gather(struct merging *g, struct err *err)
{
    int code = 0;

    while (code == 0 && !g->ended && g->found.len < g->wanted)
        code = round_run(g, err);
    return code;
}

/* --- the whole listing --- */

static int has_after_version(struct merging *g, size_t bucket, bool *out, struct err *err)
{
    static const struct object_conditions none;
    struct bucket *b = g->m->buckets[bucket];
    struct get_result got = {0};
    int code = b->ops->head(b, g->a, g->o->after, g->o->after_version, &none, &got, err);

    *out = code == 0 || (code == ERR_NOT_FOUND && got.info.is_marker);
    return code == ERR_NOT_FOUND || code == ERR_INVALID ? 0 : code;
}

/* Finds the bucket that has the version after_version. The page before listed this key from that
 * bucket, so the key's remaining versions are listed from there too. */
static int merge_find_inside(struct merging *g, struct err *err)
{
    int code = 0;

    if (!g->o->after_version.len)
        return 0;
    for (size_t i = 0; i < g->m->count && code == 0 && g->inside == NOT_INSIDE; i++) {
        bool has = false;
        code = has_after_version(g, i, &has, err);
        if (has)
            g->inside = (int)i;
    }
    return code;
}

static int merge_finish(struct merging *g, struct list_result *out, struct err *err)
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
                        .inside = NOT_INSIDE};
    int code = 0;

    *out = (struct list_result){0};
    if (o->limit == 0)
        return 0;
    if (versions)
        code = merge_find_inside(&g, err);
    if (code == 0)
        code = merge_gather(&g, err);
    if (code == 0)
        code = merge_finish(&g, out, err);
    vec_release(&g.found);
    return code;
}
