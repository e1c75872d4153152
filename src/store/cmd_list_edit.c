/* Commands that search lists or change them in the middle. A change rewrites the shorter side of
 * the list. */
#include "store/list_rows.h"

#include "base/vec.h"

typedef VEC(int64_t) positions_t;

static void delete_items(struct call *c, const struct object *o, int64_t from, int64_t to)
{
    struct row row;

    for (int64_t i = from; i < to; i++) {
        row_item(&row, o->m.version, o->m.head + i);
        run_delete(c->run, row.key);
    }
}

/* Finds the positions of the items equal to `value`, at most `limit` (0: all), from the front or
 * the back. The caller frees *out. */
static void list_find_items(struct call *c, const struct object *o, struct str value,
                            uint64_t limit, bool backward, int64_t **out, size_t *count)
{
    struct list_walk lw;
    positions_t found = {0};

    if (backward)
        list_walk_open_reverse(&lw, c, o);
    else
        list_walk_open(&lw, c, o, 0, (int64_t)o->m.count);
    while ((limit == 0 || found.len < limit) && walk_next(&lw.w))
        if (str_eq(lw.w.value, value))
            vec_push(&found, row_item_index(lw.w.key) - o->m.head);
    walk_close(&lw.w);
    *out = found.items;
    *count = found.len;
}

/* Removes the items at the positions `at`, which are in ascending order. The gaps are closed from
 * the shorter side of the list: either the items before the last of these positions move towards
 * the back, or the items after the first of them move towards the front. */
static void remove_items(struct call *c, struct object *o, const int64_t *at, size_t count)
{
    int64_t n = (int64_t)o->m.count, removed = (int64_t)count, first = at[0], last = at[count - 1];
    bool front = last + 1 <= n - first; /* the front side is the shorter */
    int64_t from = front ? 0 : first, to = front ? last + 1 : n, position;
    struct items items = list_read(c, o, from, to);
    size_t next = 0;

    if (c->run->code < 0 || c->arena->failed)
        return;
    position = front ? removed : first;
    for (int64_t i = from; i < to; i++) {
        if (next < count && at[next] == i)
            next++;
        else
            list_put(c, o, position++, items.p[i - from].str);
    }
    if (front) {
        delete_items(c, o, 0, removed);
        o->m.head += removed;
    } else {
        delete_items(c, o, n - removed, n);
    }
    o->m.count -= count;
    object_save(c, o);
}

static void reverse_order(int64_t *p, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        int64_t swap = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = swap;
    }
}

void cmd_lrem(struct call *c)
{
    struct object o;
    int64_t limit, *at;
    size_t count;

    if (!arg_int(c, 2, &limit) || !list_want(c, c->argv[1], &o))
        return;
    answer_int(c, 0);
    if (o.m.type == TYPE_NONE)
        return;
    list_find_items(c, &o, c->argv[3], limit < 0 ? 0 - (uint64_t)limit : (uint64_t)limit, limit < 0,
                    &at, &count);
    if (limit < 0)
        reverse_order(at, count);
    if (count)
        remove_items(c, &o, at, count);
    answer_int(c, (int64_t)count);
    free(at);
}

/* Trims a list to the items at the positions `start` to `stop`, when more items are removed than
 * kept. The kept items are copied to a new version of the list, and the old version is dropped. */
static void keep_few(struct call *c, struct object *o, int64_t start, int64_t stop)
{
    struct items items = list_read(c, o, start, stop + 1);
    int64_t expire_ms = o->m.expire_ms;

    if (c->run->code < 0 || c->arena->failed)
        return;
    object_drop(c, o);
    for (size_t i = 0; i < items.len; i++)
        list_push_item(c, o, false, items.p[i].str);
    o->m.expire_ms = expire_ms;
    object_save(c, o);
}

void cmd_ltrim(struct call *c)
{
    struct object o;
    int64_t start, stop, n;

    if (!arg_int(c, 2, &start) || !arg_int(c, 3, &stop) || !list_want(c, c->argv[1], &o))
        return;
    answer_ok(c);
    if (o.m.type == TYPE_NONE)
        return;
    n = (int64_t)o.m.count;
    if (!range_normalize(&start, &stop, o.m.count)) {
        object_drop(c, &o);
    } else if (stop - start + 1 < n / 2) {
        keep_few(c, &o, start, stop);
    } else {
        delete_items(c, &o, 0, start);
        delete_items(c, &o, stop + 1, n);
        o.m.head += start;
        o.m.count = (uint64_t)(stop - start + 1);
        object_save(c, &o);
    }
}

/* Inserts an item at `position`; the shorter side of the list moves by one. */
static void insert_item(struct call *c, struct object *o, int64_t position, struct str value)
{
    int64_t n = (int64_t)o->m.count;
    bool front = position < n - position;
    struct items items = list_read(c, o, front ? 0 : position, front ? position : n);

    if (c->run->code < 0 || c->arena->failed)
        return;
    if (front)
        o->m.head--;
    for (size_t i = 0; i < items.len; i++)
        list_put(c, o, front ? (int64_t)i : position + 1 + (int64_t)i, items.p[i].str);
    list_put(c, o, position, value);
    o->m.count++;
    object_save(c, o);
}

void cmd_linsert(struct call *c)
{
    struct object o;
    bool after = arg_is(c, 2, "after");
    int64_t *at;
    size_t count;

    if (!after && !arg_is(c, 2, "before")) {
        answer_syntax(c);
        return;
    }
    if (!list_want(c, c->argv[1], &o))
        return;
    answer_int(c, 0);
    if (o.m.type == TYPE_NONE)
        return;
    list_find_items(c, &o, c->argv[3], 1, false, &at, &count);
    if (count)
        insert_item(c, &o, at[0] + after, c->argv[4]);
    answer_int(c, count ? (int64_t)o.m.count : -1);
    free(at);
}

struct lpos {
    /* LPOS's options RANK, COUNT (-1: not given; 0: all matches) and MAXLEN (how many items to
     * compare; 0: all). */
    int64_t rank, count, max;
};

static bool parse_lpos(struct call *c, struct lpos *p)
{
    *p = (struct lpos){1, -1, 0};
    for (size_t i = 3; i < c->argc; i += 2) {
        bool more = i + 1 < c->argc;
        if (more && arg_is(c, i, "rank")) {
            if (!arg_int(c, i + 1, &p->rank))
                return false;
            if (p->rank == 0) {
                answer_error(c, "ERR RANK can't be zero: use 1 to start from the first match, 2 "
                                "from the second ... or use negative to start from the end of "
                                "the list");
                return false;
            }
        } else if (more && arg_is(c, i, "count")) {
            if (!arg_positive(c, i + 1, "ERR COUNT can't be negative", &p->count))
                return false;
        } else if (more && arg_is(c, i, "maxlen")) {
            if (!arg_positive(c, i + 1, "ERR MAXLEN can't be negative", &p->max))
                return false;
        } else {
            answer_syntax(c);
            return false;
        }
    }
    return true;
}

static void list_search(struct call *c, const struct object *o, const struct lpos *p,
                        struct items *items)
{
    struct list_walk lw;
    uint64_t skip = (p->rank < 0 ? 0 - (uint64_t)p->rank : (uint64_t)p->rank) - 1;
    int64_t seen = 0;
    uint64_t want = p->count < 0 ? 1 : p->count == 0 ? UINT64_MAX : (uint64_t)p->count;

    if (p->rank < 0)
        list_walk_open_reverse(&lw, c, o);
    else
        list_walk_open(&lw, c, o, 0, (int64_t)o->m.count);
    while (items->len < want && (p->max == 0 || seen++ < p->max) && walk_next(&lw.w)) {
        if (!str_eq(lw.w.value, c->argv[2]))
            continue;
        if (skip)
            skip--;
        else
            items_push(c, items, as_int(row_item_index(lw.w.key) - o->m.head));
    }
    walk_close(&lw.w);
}

void cmd_lpos(struct call *c)
{
    struct object o;
    struct lpos p;
    struct items items = {0};

    if (!parse_lpos(c, &p) || !list_want(c, c->argv[1], &o))
        return;
    if (o.m.type == TYPE_LIST)
        list_search(c, &o, &p, &items);
    if (p.count >= 0)
        answer_items(c, &items);
    else if (items.len)
        *c->reply = items.p[0];
}
