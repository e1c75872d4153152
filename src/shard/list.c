/* Listings of a sharded bucket: the segments are listed one after another (docs/sharding.md,
 * "Listings").
 *
 * The segments are in the order of their keys, so nothing is merged. The walk calls the owner of
 * the first key that it has not handled yet, takes the entries of the owner's segment, and
 * continues after the segment. Each call of a shard has a pass of its own, and looks up the owner
 * again. So the map may change while a page is made: the place that the walk has reached is a key,
 * which means the same under every map.
 *
 *     prefix "p/"       ....|p/a    p/f|p/g  ....  p/q|p/r   q...|
 *     segments       1      |    2     |      3      |     4     |   5       1 and 5 are not asked
 *
 * Keys that a shard has outside the segment belong to another segment of the same shard, or are
 * garbage (H10). So entries after the segment's end are dropped. The shard does not say which keys
 * made it list a common prefix. If such a prefix reaches over the end of the segment, the shard is
 * therefore asked for the first key under it.
 *
 * Once a common prefix was listed, or if the client's `after` names it, the whole prefix counts as
 * handled: segments inside it are not asked. One case is special: a segment ends exactly at a
 * common prefix that is not handled yet. A shard that begins its listing after this prefix would
 * skip the keys under it, so these keys are asked for first. */
#include "shard/list_int.h"

/* --- strings --- */

static struct str listing_common(const struct listing *l, struct str key)
{
    const struct list_options *o = l->o;

    if (o->delimiter.len == 0 || !str_starts(key, o->prefix))
        return STR_EMPTY;
    ptrdiff_t at = str_find(str_skip(key, o->prefix.len), o->delimiter);
    return at < 0 ? STR_EMPTY : str_head(key, o->prefix.len + (size_t)at + o->delimiter.len);
}

/* Whether the string is a common prefix as a whole. */
static bool listing_is_common(const struct listing *l, struct str s)
{
    return s.len > 0 && listing_common(l, s).len == s.len;
}

/* Appends 0xFF up to the length of the longest key. */
static struct str key_fill(struct arena *a, struct str head)
{
    size_t len = size_max(head.len, OBJECT_KEY_MAX);
    char *p = arena_alloc(a, len + 1);

    if (!p)
        return STR_EMPTY;
    if (head.len)
        memcpy(p, head.p, head.len);
    memset(p + head.len, 0xff, len - head.len);
    return str_n(p, len);
}

/* Returns a string below `key` such that no key is between the two. */
static struct str key_before(struct arena *a, struct str key)
{
    struct str copy = arena_str(a, key);

    if (copy.len == 0)
        return STR_EMPTY;
    unsigned char last = (unsigned char)copy.p[copy.len - 1];
    if (last == 0)
        return str_head(copy, copy.len - 1);
    ((char *)copy.p)[copy.len - 1] = (char)(last - 1);
    return key_fill(a, copy);
}

/* Whether the window ends inside the common prefix. */
static bool window_ends_in(const struct shard_window *w, struct str prefix)
{
    return w->upto.len > 0 && str_starts(w->upto, prefix);
}

static bool window_ends_before(const struct shard_window *w, struct str key)
{
    return w->upto.len > 0 && str_cmp(key, w->upto) > 0;
}

/* --- taking entries --- */

static size_t listing_room(const struct listing *l)
{
    return l->limit - l->found.len;
}

/* Adds the entry to the page. If the page is full, only notes that there is more. */
static void listing_take(struct listing *l, const struct listed *e)
{
    if (listing_room(l) == 0) {
        l->more = l->ended = true;
        return;
    }
    vec_push(&l->found, *e);
    l->after = e->key;
    l->after_version = l->by_version ? e->version : STR_EMPTY;
    l->at_boundary = false;
}

/* Sets *out to whether the shard has a key under the prefix, in the segment and after the place
 * that the walk has reached. */
static int segment_has(struct listing *l, struct shard_call *c, struct str prefix, bool *out,
                       struct err *err)
{
    struct list_options o = {.prefix = prefix, .limit = 1};
    struct listed_page page;

    if (str_starts(l->after, prefix)) {
        o.after = l->after;
        o.after_version = l->after_version;
    }
    int code = l->ask(c->shard, l->a, &o, &page, err);
    *out = code == 0 && page.count && !window_ends_before(&c->window, page.entries[0].key);
    return code;
}

/* Takes those entries of the shard's page that are in the segment. *inside: all entries were. */
static int segment_take(struct listing *l, struct shard_call *c, const struct listed_page *page,
                        bool *inside, struct err *err)
{
    int code = 0;

    *inside = true;
    for (size_t i = 0; code == 0 && i < page->count && *inside && !l->ended; i++) {
        const struct listed *e = &page->entries[i];
        *inside = !window_ends_before(&c->window, e->key);
        if (*inside && e->is_prefix && window_ends_in(&c->window, e->key))
            code = segment_has(l, c, e->key, inside, err);
        if (code == 0 && *inside)
            listing_take(l, e);
    }
    return code;
}

/* --- one segment --- */

/* Whether the shard has no garbage after the place that the walk has reached, so that all its keys
 * there belong to this segment or to another one of its segments. */
static bool segment_is_clean(const struct listing *l, const struct shard_call *c)
{
    struct shard_window rest = {l->after, STR_EMPTY};

    if (c->plain)
        return true;
    const struct shard_place *p = pass_place(&c->pass);
    for (size_t i = 0; i < p->unclean_count; i++)
        if (window_overlaps(&p->unclean[i], &rest))
            return false;
    return true;
}

/* Called when the walk has reached a boundary that is itself a common prefix. Lists the prefix if
 * the segment has a key under it. *over: the segment has no other keys. */
static int segment_probe(struct listing *l, struct shard_call *c, bool *over, struct err *err)
{
    struct list_entry *entry = arena_new(l->a, struct list_entry);
    struct str prefix = l->after;
    bool any = false;
    int code = entry ? segment_has(l, c, prefix, &any, err) : err_code(err, ERR_NO_MEMORY);

    if (code < 0)
        return code;
    *entry = (struct list_entry){.is_prefix = true, .info.key = prefix};
    if (any)
        listing_take(l, &(struct listed){.key = prefix, .entry = entry, .is_prefix = true});
    *over = l->ended || window_ends_in(&c->window, prefix);
    l->at_boundary = !any && *over;
    return 0;
}

static int segment_list(struct listing *l, struct shard_call *c, struct err *err)
{
    bool over = false;
    int code = 0;

    if (l->at_boundary && listing_is_common(l, l->after))
        code = segment_probe(l, c, &over, err);
    while (code == 0 && !over && !l->ended) {
        struct list_options o = *l->o;
        struct listed_page page;
        bool inside = false;
        o.after = l->after;
        o.after_version = l->after_version;
        o.limit = size_max(listing_room(l), 1);
        code = l->ask(c->shard, l->a, &o, &page, err);
        if (code == 0)
            code = segment_take(l, c, &page, &inside, err);
        over = code < 0 || !inside || !page.more || page.count == 0;
        if (!over && listing_room(l) == 0 && (!c->window.upto.len || segment_is_clean(l, c)))
            l->more = l->ended = true;
    }
    return code;
}

/* Moves the walk to the end of the segment. If the segment ends in a common prefix that is handled
 * already, moves the walk to the end of that prefix. */
static void listing_leave_segment(struct listing *l, const struct shard_window *w)
{
    bool in_prefix = !l->at_boundary && listing_is_common(l, l->after);

    if (w->upto.len == 0 ||
        (!str_starts(w->upto, l->o->prefix) && str_cmp(w->upto, l->o->prefix) > 0)) {
        l->ended = true;
    } else if (in_prefix && window_ends_in(w, l->after)) {
        l->done = key_fill(l->a, l->after);
    } else {
        l->done = l->after = arena_str(l->a, w->upto);
        l->after_version = STR_EMPTY;
        l->at_boundary = true;
    }
}

static int listing_segment(struct listing *l, struct err *err)
{
    struct shard_call c;
    int code = shard_call_begin_after(&c, l->b, l->done, err);

    if (code == 0)
        code = segment_list(l, &c, err);
    if (code == 0 && arena_error(l->a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0 && !l->ended)
        listing_leave_segment(l, &c.window);
    if (code == 0 && arena_error(l->a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    shard_call_end(&c);
    return code;
}

/* Sets the place where the listing begins, which is before the first key that may be listed. */
static void listing_start(struct listing *l)
{
    const struct list_options *o = l->o;
    struct str after = str_head(o->after, OBJECT_KEY_MAX);

    l->after = after;
    l->after_version = l->by_version && after.len ? o->after_version : STR_EMPTY;
    if (str_cmp(after, o->prefix) < 0)
        l->done = key_before(l->a, o->prefix);
    else if (l->after_version.len) /* more versions of `after` may follow */
        l->done = key_before(l->a, after);
    else
        l->done = listing_is_common(l, after) ? key_fill(l->a, after) : after;
}

int listing_run(struct listing *l, struct err *err)
{
    int code = 0;

    listing_start(l);
    l->ended = l->limit == 0 || l->o->prefix.len > OBJECT_KEY_MAX;
    while (code == 0 && !l->ended)
        code = listing_segment(l, err);
    return code;
}

/* --- objects and versions --- */

static int entries_page(struct list_result *list, struct arena *a, struct listed_page *out,
                        struct err *err)
{
    *out = (struct listed_page){.count = list->count, .more = list->more};
    out->entries = arena_array(a, list->count + 1, sizeof(*out->entries));
    if (!out->entries)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < list->count; i++) {
        const struct list_entry *e = &list->entries[i];
        out->entries[i] = (struct listed){
            .key = e->info.key, .version = e->info.version, .entry = e, .is_prefix = e->is_prefix};
    }
    return 0;
}

int listing_ask_objects(struct bucket *shard, struct arena *a, const struct list_options *o,
                        struct listed_page *out, struct err *err)
{
    struct list_result list;
    int code = shard->ops->list(shard, a, o, &list, err);

    return code < 0 ? code : entries_page(&list, a, out, err);
}

static int versions_ask(struct bucket *shard, struct arena *a, const struct list_options *o,
                        struct listed_page *out, struct err *err)
{
    struct list_result list;
    int code = shard->ops->list_versions(shard, a, o, &list, err);

    return code < 0 ? code : entries_page(&list, a, out, err);
}

static int entries_fill(const struct listing *l, struct list_result *out, struct err *err)
{
    out->entries = arena_array(l->a, l->found.len + 1, sizeof(*out->entries));
    if (!out->entries)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < l->found.len; i++)
        out->entries[out->count++] = *l->found.items[i].entry;
    if (l->found.len) {
        out->next = vec_last(&l->found)->key;
        out->next_version = vec_last(&l->found)->version;
    }
    out->more = l->more;
    return 0;
}

static int sharded_list_entries(struct listing *l, struct list_result *out, struct err *err)
{
    int code = listing_run(l, err);

    *out = (struct list_result){0};
    if (code == 0)
        code = entries_fill(l, out, err);
    vec_release(&l->found);
    return code;
}

int sharded_list(struct bucket *b, struct arena *a, const struct list_options *o,
                 struct list_result *out, struct err *err)
{
    struct listing l = {.b = sharded_bucket_of(b),
                        .ask = listing_ask_objects,
                        .a = a,
                        .o = o,
                        .limit = size_min(o->limit, OBJECT_LIST_MAX)};

    return sharded_list_entries(&l, out, err);
}

int sharded_list_versions(struct bucket *b, struct arena *a, const struct list_options *o,
                          struct list_result *out, struct err *err)
{
    struct listing l = {.b = sharded_bucket_of(b),
                        .ask = versions_ask,
                        .a = a,
                        .o = o,
                        .by_version = true,
                        .limit = size_min(o->limit, OBJECT_LIST_MAX)};

    return sharded_list_entries(&l, out, err);
}
