/* Intersection, union and difference of sets. */
#include "store/embedded_int.h"

/* Loads the sets named by `keys`. Keys that do not exist get TYPE_NONE. False: the call was
 * answered with an error. */
static bool load_sets(struct call *c, const struct str *keys, size_t n, struct object **out)
{
    struct object *sets = arena_array(c->arena, n, sizeof(*sets));

    for (size_t i = 0; sets && i < n; i++)
        if (!object_want(c, keys[i], TYPE_SET, &sets[i]))
            return false;
    *out = sets;
    return sets;
}

static void walk_set(struct call *c, const struct object *o, struct version_range *range,
                     struct walk *w)
{
    version_range(range, ROW_MEMBER, o->m.version);
    walk_version(w, c->run, range, false);
}

/* Adds to `items` the members of sets[base] that all other sets have (`want`), or that no other set
 * has (!want), until there are `limit` items. */
static void filter(struct call *c, struct object *sets, size_t n, size_t base, bool want,
                   uint64_t limit, struct items *items)
{
    struct version_range range;
    struct walk w;
    struct str value;

    walk_set(c, &sets[base], &range, &w);
    while (items->len < limit && walk_next(&w) && !c->arena->failed) {
        bool keep = true;
        for (size_t i = 0; i < n && keep; i++)
            if (i != base)
                keep = member_get(c, &sets[i], member_of(w.key), &value) == want;
        if (keep)
            items_push_copy(c, items, member_of(w.key));
    }
    walk_close(&w);
}

static void intersect(struct call *c, struct object *sets, size_t n, uint64_t limit,
                      struct items *items)
{
    size_t smallest = 0;

    for (size_t i = 0; i < n; i++) {
        if (sets[i].m.type == TYPE_NONE)
            return;
        if (sets[i].m.count < sets[smallest].m.count)
            smallest = i;
    }
    filter(c, sets, n, smallest, true, limit, items);
}

static void subtract(struct call *c, struct object *sets, size_t n, uint64_t limit,
                     struct items *items)
{
    if (sets[0].m.type == TYPE_SET)
        filter(c, sets, n, 0, false, limit, items);
}

/* Adds the members of all sets to `items`, each member once: a member is added with the first set
 * that has it. */
static void unite(struct call *c, struct object *sets, size_t n, uint64_t limit,
                  struct items *items)
{
    for (size_t i = 0; i < n; i++)
        if (sets[i].m.type == TYPE_SET)
            filter(c, sets, i + 1, i, false, limit, items);
}

typedef void setop_fn(struct call *c, struct object *sets, size_t n, uint64_t limit,
                      struct items *items);

static void answer_setop(struct call *c, setop_fn *op)
{
    struct object *sets;
    struct items items = {0};

    if (!load_sets(c, c->argv + 1, c->argc - 1, &sets))
        return;
    op(c, sets, c->argc - 1, UINT64_MAX, &items);
    answer_items(c, &items);
}

static void store_setop(struct call *c, setop_fn *op)
{
    struct object *sets, to;
    struct items items = {0};

    if (!load_sets(c, c->argv + 2, c->argc - 2, &sets))
        return;
    op(c, sets, c->argc - 2, UINT64_MAX, &items);
    if (c->run->code < 0 || c->arena->failed || !object_load(c, c->argv[1], &to))
        return;
    object_drop(c, &to);
    if (items.len)
        object_create(c, &to, TYPE_SET);
    for (size_t i = 0; i < items.len; i++)
        member_put(c, &to, items.p[i].str, STR_EMPTY);
    if (items.len)
        object_save(c, &to);
    answer_int(c, (int64_t)items.len);
}

void cmd_sinter(struct call *c)
{
    answer_setop(c, intersect);
}

void cmd_sunion(struct call *c)
{
    answer_setop(c, unite);
}

void cmd_sdiff(struct call *c)
{
    answer_setop(c, subtract);
}

void cmd_sinterstore(struct call *c)
{
    store_setop(c, intersect);
}

void cmd_sunionstore(struct call *c)
{
    store_setop(c, unite);
}

void cmd_sdiffstore(struct call *c)
{
    store_setop(c, subtract);
}

/* Reads the arguments of SINTERCARD: numkeys key... [LIMIT n]. *limit is 0 without LIMIT. False:
 * the call was answered with an error. */
static bool parse_card(struct call *c, int64_t *n, int64_t *limit)
{
    if (!number_parse(c->argv[1], n) || *n < 1) {
        answer_error(c, "ERR numkeys should be greater than 0");
        return false;
    }
    if (*n > (int64_t)c->argc - 2) {
        answer_error(c, "ERR Number of keys can't be greater than number of args");
        return false;
    }
    *limit = 0;
    for (size_t i = 2 + (size_t)*n; i < c->argc; i += 2) {
        if (i + 1 == c->argc || !arg_is(c, i, "limit")) {
            answer_syntax(c);
            return false;
        }
        if (!arg_positive(c, i + 1, "ERR LIMIT can't be negative", limit))
            return false;
    }
    return true;
}

void cmd_sintercard(struct call *c)
{
    struct object *sets;
    struct items items = {0};
    int64_t n, limit;

    if (!parse_card(c, &n, &limit) || !load_sets(c, c->argv + 2, (size_t)n, &sets))
        return;
    intersect(c, sets, (size_t)n, limit ? (uint64_t)limit : UINT64_MAX, &items);
    answer_int(c, (int64_t)items.len);
}
