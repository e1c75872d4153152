/* Compares buckets: merges their listings key by key (copy/compare.h). */
#include "copy/compare_int.h"

#include "base/vec.h"

/* Limits for the versions of one key on one side: their number, and the bytes of memory that they
 * take. All versions of the key are held in memory, because they are numbered from the oldest.
 * copy_versions.c could not copy more versions either. */
enum { VERSIONS_LIMIT = 100000, VERSIONS_MEMORY = 64 * 1024 * 1024 };

struct side {
    struct bucket *bucket;
    struct arena page, versions; /* hold the current page, and the current key's versions */
    struct list_result list;
    size_t at;                       /* index of the next entry on the page */
    bool end;                        /* this page is the last one */
    struct buf after, after_version; /* where the next page begins */
    struct buf last;                 /* the last key that was read */
    VEC(struct object_info) of_key;  /* versions of the current key, oldest first */
    bool too_many;
};

struct comparison {
    const struct compare_options *o;
    struct compare_result *out;
    struct side sides[COMPARE_SIDES_MAX];
    struct buf key;
    uint64_t since; /* number of keys compared since reached() was called last */
};

static const char *const names[] = {
    [DIFFERENCE_MISSING] = "missing", [DIFFERENCE_MARKER] = "marker",
    [DIFFERENCE_SIZE] = "size",       [DIFFERENCE_ETAG] = "etag",
    [DIFFERENCE_CONTENT] = "content", [DIFFERENCE_UNKNOWN] = "unknown",
};
_Static_assert(ARRAY_SIZE(names) == DIFFERENCE_KINDS, "each kind has a name");

const char *difference_name(enum difference_kind kind)
{
    return names[kind];
}

int compare_watch(const struct compare_options *o, size_t side, uint64_t bytes, struct err *err)
{
    return o->watch ? o->watch(o->ctx, side, bytes, err) : 0;
}

/* --- pages --- */

static void buf_set(struct buf *b, struct str s)
{
    buf_reset(b);
    buf_append_str(b, s);
}

static int out_of_order(const struct side *s, struct err *err)
{
    return err_set(err, ERR_PEER, "the bucket " STR_FMT " is not listed in the order of bytes",
                   STR_ARG(s->bucket->name));
}

static int side_load_page(struct comparison *m, struct side *s, struct err *err)
{
    struct bucket *b = s->bucket;
    struct list_options o = {.prefix = m->o->prefix,
                             .after = buf_str(&s->after),
                             .after_version = buf_str(&s->after_version),
                             .limit = OBJECT_LIST_MAX};
    int code = compare_watch(m->o, (size_t)(s - m->sides), 0, err);

    arena_reset(&s->page);
    s->list = (struct list_result){0};
    s->at = 0;
    if (code == 0)
        code =
            (m->o->versions ? b->ops->list_versions : b->ops->list)(b, &s->page, &o, &s->list, err);
    if (code < 0)
        return code;
    s->end = !s->list.more;
    if (!s->end && str_eq(s->list.next, buf_str(&s->after)) &&
        str_eq(s->list.next_version, buf_str(&s->after_version)))
        return out_of_order(s, err); /* without this check the listing would never end */
    buf_set(&s->after, s->list.next);
    buf_set(&s->after_version, s->list.next_version);
    return 0;
}

/* Sets *out to the side's next entry, without moving past it. NULL: the listing has ended. */
static int peek(struct comparison *m, struct side *s, const struct object_info **out,
                struct err *err)
{
    int code = 0;

    while (code == 0 && s->at == s->list.count && !s->end)
        code = side_load_page(m, s, err);
    *out = code == 0 && s->at < s->list.count ? &s->list.entries[s->at].info : NULL;
    return code;
}

/* --- the versions of one key --- */

static void keep_version(struct side *s, const struct object_info *info)
{
    struct object_info kept = {.is_marker = info->is_marker,
                               .size = info->size,
                               .part_count = info->part_count,
                               .etag = arena_str(&s->versions, info->etag),
                               .version = arena_str(&s->versions, info->version)};

    if (s->of_key.len < VERSIONS_LIMIT && arena_error(&s->versions) == 0)
        vec_push(&s->of_key, kept);
    else
        s->too_many = true;
}

static void oldest_first(struct side *s)
{
    struct object_info *v = s->of_key.items;

    for (size_t i = 0, j = s->of_key.len; i + 1 < j; i++) {
        struct object_info t = v[i];
        v[i] = v[--j];
        v[j] = t;
    }
}

static int take_versions(struct comparison *m, struct side *s, struct str key, struct err *err)
{
    const struct object_info *info = NULL;
    int code = peek(m, s, &info, err);

    arena_reset(&s->versions);
    while (code == 0 && info && str_eq(info->key, key)) {
        keep_version(s, info);
        s->at++;
        code = peek(m, s, &info, err);
    }
    oldest_first(s);
    return code;
}

/* Collects the side's entries of the key, and moves past them. The strings of the entries are valid
 * until the side's next key is read. */
static int side_take(struct comparison *m, struct side *s, struct str key, struct err *err)
{
    const struct object_info *info = NULL;
    int code = peek(m, s, &info, err);

    s->of_key.len = 0;
    s->too_many = false;
    if (code < 0 || !info || !str_eq(info->key, key))
        return code;
    if (str_cmp(key, buf_str(&s->last)) <= 0)
        return out_of_order(s, err);
    buf_set(&s->last, key);
    if (m->o->versions)
        return take_versions(m, s, key, err);
    vec_push(&s->of_key, *info);
    s->at++;
    return 0;
}

/* --- the merge --- */

static int difference_tell(struct comparison *m, struct difference *d, struct err *err)
{
    d->key = buf_str(&m->key);
    d->versioned = m->o->versions;
    m->out->differences++;
    return m->o->tell(m->o->ctx, d, err);
}

static int compare_version(struct comparison *m, uint64_t index, struct err *err)
{
    struct compared c = {.o = m->o, .key = buf_str(&m->key), .bytes = &m->out->bytes};
    struct difference d = {.index = index, .sides = c.sides};
    bool same = false;

    for (size_t i = 0; i < m->o->count; i++)
        if (index < m->sides[i].of_key.len)
            c.infos[i] = &m->sides[i].of_key.items[index];
    int code = compare_one(&c, &same, &d, err);
    if (code == 0 && !same)
        code = difference_tell(m, &d, err);
    arena_release(&c.a);
    return code;
}

static int compare_key(struct comparison *m, struct err *err)
{
    struct difference_side none[COMPARE_SIDES_MAX] = {0};
    struct difference unknown = {
        .kind = DIFFERENCE_UNKNOWN, .sides = none, .why = "it has too many versions"};
    size_t versions = 0;
    bool too_many = false;
    int code = 0;

    for (size_t i = 0; i < m->o->count; i++) {
        versions = size_max(versions, m->sides[i].of_key.len);
        too_many = too_many || m->sides[i].too_many;
        none[i].found = m->sides[i].of_key.len > 0;
    }
    if (too_many)
        return difference_tell(m, &unknown, err);
    for (size_t i = 0; code == 0 && i < versions; i++)
        code = compare_version(m, i, err);
    return code;
}

static int least_key(struct comparison *m, bool *any, struct err *err)
{
    const struct object_info *info = NULL, *least = NULL;
    int code = 0;

    for (size_t i = 0; code == 0 && i < m->o->count; i++) {
        code = peek(m, &m->sides[i], &info, err);
        if (code == 0 && info && (!least || str_cmp(info->key, least->key) < 0))
            least = info;
    }
    *any = code == 0 && least;
    if (*any)
        buf_set(&m->key, least->key);
    return code;
}

static int tell_reached(struct comparison *m, struct str after, struct err *err)
{
    uint64_t keys = m->since;

    m->since = 0;
    return m->o->reached ? m->o->reached(m->o->ctx, after, keys, err) : 0;
}

static int next_key(struct comparison *m, bool *any, struct err *err)
{
    int code = least_key(m, any, err);

    for (size_t i = 0; code == 0 && *any && i < m->o->count; i++)
        code = side_take(m, &m->sides[i], buf_str(&m->key), err);
    if (code < 0 || !*any)
        return code;
    code = compare_key(m, err);
    if (code < 0)
        return code;
    m->out->keys++;
    m->since++;
    return m->since == COMPARE_STEP || (m->o->due && m->o->due(m->o->ctx))
               ? tell_reached(m, buf_str(&m->key), err)
               : 0;
}

static void sides_init(struct comparison *m)
{
    for (size_t i = 0; i < m->o->count; i++) {
        struct side *s = &m->sides[i];
        s->bucket = m->o->buckets[i];
        s->versions = ARENA_INIT(VERSIONS_MEMORY);
        buf_set(&s->after, m->o->after);
        buf_set(&s->last, m->o->after);
    }
}

static void sides_release(struct comparison *m)
{
    for (size_t i = 0; i < m->o->count; i++) {
        struct side *s = &m->sides[i];
        arena_release(&s->page);
        arena_release(&s->versions);
        buf_release(&s->after);
        buf_release(&s->after_version);
        buf_release(&s->last);
        vec_release(&s->of_key);
    }
}

int compare_buckets(struct compare_result *out, const struct compare_options *o, struct err *err)
{
    struct comparison m = {.o = o, .out = out};
    bool any = true;
    int code = 0;

    BUG_ON(o->count < 2 || o->count > COMPARE_SIDES_MAX);
    *out = (struct compare_result){0};
    sides_init(&m);
    while (code == 0 && any)
        code = next_key(&m, &any, err);
    if (code == 0)
        code = tell_reached(&m, STR_EMPTY, err);
    sides_release(&m);
    buf_release(&m.key);
    return code;
}
