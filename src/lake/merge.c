/* Merges trees: walks base, source and dest side by side. The result gets whole nodes where only
 * one side has changed, and single records where both sides have. docs/lake-trees.md, "Merge", has
 * the table of cases and the steps M1 to M5, and says why equal nodes may be skipped. */
#include "lake/tree_build.h"

#include <stdio.h>

enum merge_side { MERGE_BASE, MERGE_SOURCE, MERGE_DEST, MERGE_SIDES };

struct merge {
    const struct tree_merge *how;
    struct tree_spine sides[MERGE_SIDES];
    struct tree_builder builder;
    /* number of conflicts that no strategy has decided; after the first one nothing is built any
     * more */
    uint64_t conflicts;
};

static const struct tree_item *merge_item(const struct merge *m, enum merge_side side)
{
    return m->sides[side].end ? NULL : &m->sides[side].item;
}

static bool merge_same_node(const struct tree_item *a, const struct tree_item *b)
{
    return a && b && a->level > 0 && a->level == b->level && node_id_eq(&a->child.id, &b->child.id);
}

static int merge_next(struct merge *m, enum merge_side side, struct err *err)
{
    return tree_spine_next(&m->sides[side], err);
}

static int merge_next_two(struct merge *m, enum merge_side a, enum merge_side b, struct err *err)
{
    int code = merge_next(m, a, err);
    return code ? code : merge_next(m, b, err);
}

/* --- nodes --- */

/* Adds the current item of `side` to the result and moves the side to its next item. If the item is
 * a node that the builder cannot take over by id, enters the node instead. The item can be the last
 * one of the result only if the other side has no more items. */
static int merge_take(struct merge *m, enum merge_side side, struct err *err)
{
    enum merge_side other = side == MERGE_SOURCE ? MERGE_DEST : MERGE_SOURCE;
    struct tree_spine *s = &m->sides[side];

    if (m->conflicts)
        return tree_spine_next(s, err);
    return tree_builder_take(&m->builder, s, m->sides[other].end, err);
}

/* M1: source and dest are at equal nodes, so the result gets this node, whatever the base has. If
 * the node is the last one of its tree on only one side, it is not marked as a tail: on the other
 * side records follow it, so it ended by the rule of splitting, and may also be in the middle of
 * the result. */
static int merge_take_both(struct merge *m, struct err *err)
{
    struct tree_item node = m->sides[MERGE_DEST].item;
    bool tail = node.tail && m->sides[MERGE_SOURCE].item.tail;
    int code;

    node.tail = tail;
    if (m->conflicts)
        return merge_next_two(m, MERGE_SOURCE, MERGE_DEST, err);
    if (!tree_builder_can_take(&m->builder, &node, tail)) {
        code = tree_spine_enter(&m->sides[MERGE_SOURCE], err);
        return code ? code : tree_spine_enter(&m->sides[MERGE_DEST], err);
    }
    code = tree_builder_item(&m->builder, &node, err);
    return code ? code : merge_next_two(m, MERGE_SOURCE, MERGE_DEST, err);
}

/* M1 to M3: takes or skips a node that is equal on two sides. *done: there was such a node. */
static int merge_pairs(struct merge *m, bool *done, struct err *err)
{
    const struct tree_item *b = merge_item(m, MERGE_BASE), *s = merge_item(m, MERGE_SOURCE),
                           *d = merge_item(m, MERGE_DEST);

    *done = true;
    if (merge_same_node(s, d))
        return merge_take_both(m, err);
    if (merge_same_node(b, s)) /* M2: later steps take the items of dest */
        return merge_next_two(m, MERGE_BASE, MERGE_SOURCE, err);
    if (merge_same_node(b, d)) /* M3: later steps take the items of source */
        return merge_next_two(m, MERGE_BASE, MERGE_DEST, err);
    *done = false;
    return 0;
}

/* --- the front --- */

/* M4: returns the front, which is the side whose item begins first. */
static enum merge_side merge_front(const struct merge *m)
{
    enum merge_side front = MERGE_SIDES;

    for (enum merge_side side = MERGE_BASE; side < MERGE_SIDES; side++)
        if (!m->sides[side].end && (front == MERGE_SIDES ||
                                    str_cmp(m->sides[side].item.min, m->sides[front].item.min) < 0))
            front = side;
    return front;
}

/* M5: compares the front's item with the items that overlap it, and returns the side whose item has
 * the highest level. *alone: no other item overlaps the front's item. */
static enum merge_side merge_highest(const struct merge *m, enum merge_side front, bool *alone)
{
    enum merge_side highest = front;

    *alone = true;
    for (enum merge_side side = MERGE_BASE; side < MERGE_SIDES; side++) {
        const struct tree_item *item = merge_item(m, side);
        if (side == front || !item || str_cmp(item->min, m->sides[front].item.max) > 0)
            continue;
        *alone = false;
        if (item->level > m->sides[highest].item.level)
            highest = side;
    }
    return highest;
}

/* --- records --- */

struct merge_records {
    struct tree_record *at[MERGE_SIDES]; /* NULL: the side does not have the key */
};

static bool merge_same(const struct merge_records *r, enum merge_side a, enum merge_side b)
{
    if (!r->at[a] || !r->at[b])
        return r->at[a] == r->at[b];
    return str_eq(r->at[a]->identity, r->at[b]->identity);
}

/* Decides which side wins when both sides changed the key in different ways. MERGE_SIDES: no side
 * wins, so this is a conflict. */
static enum merge_side merge_decide(const struct merge *m, struct str key)
{
    static const enum merge_side winner[] = {[TREE_NO_STRATEGY] = MERGE_SIDES,
                                             [TREE_SOURCE_WINS] = MERGE_SOURCE,
                                             [TREE_DEST_WINS] = MERGE_DEST};
    enum tree_strategy choice = TREE_NO_STRATEGY;

    if (m->how->choose)
        choice = m->how->choose(m->how->ctx, key);
    return winner[choice == TREE_NO_STRATEGY ? m->how->strategy : choice];
}

/* Returns the side whose record the result gets; MERGE_SIDES: a conflict. */
static enum merge_side merge_judge(const struct merge *m, const struct merge_records *r,
                                   struct str key)
{
    if (merge_same(r, MERGE_SOURCE, MERGE_BASE) || merge_same(r, MERGE_SOURCE, MERGE_DEST))
        return MERGE_DEST;
    if (merge_same(r, MERGE_DEST, MERGE_BASE))
        return MERGE_SOURCE;
    return merge_decide(m, key);
}

/* Merges one key. On every side that has the key, the spine is at its record. */
static int merge_key(struct merge *m, enum merge_side front, struct err *err)
{
    struct merge_records r = {0};
    struct str key = m->sides[front].item.max;
    int code = 0;

    for (enum merge_side side = MERGE_BASE; side < MERGE_SIDES; side++)
        if (!m->sides[side].end && str_eq(m->sides[side].item.min, key))
            r.at[side] = &m->sides[side].item.record;
    enum merge_side winner = merge_judge(m, &r, key);
    if (winner == MERGE_SIDES) {
        m->conflicts++;
        if (m->how->conflict)
            m->how->conflict(m->how->ctx, key);
    } else if (r.at[winner] && !m->conflicts) {
        code = tree_builder_item(&m->builder, &m->sides[winner].item, err);
    }
    for (enum merge_side side = MERGE_BASE; side < MERGE_SIDES && code == 0; side++)
        if (r.at[side])
            code = merge_next(m, side, err);
    return code;
}

static int merge_step(void *ctx, struct err *err)
{
    struct merge *m = ctx;
    bool done, alone;

    if (m->sides[MERGE_SOURCE].end && m->sides[MERGE_DEST].end)
        return ERR_END;
    int code = merge_pairs(m, &done, err);

    if (code || done)
        return code;
    enum merge_side front = merge_front(m), highest = merge_highest(m, front, &alone);
    if (alone && front == MERGE_BASE) /* both sides removed the item */
        return merge_next(m, front, err);
    if (alone)
        return merge_take(m, front, err);
    if (m->sides[highest].item.level > 0)
        return tree_spine_enter(&m->sides[highest], err);
    return merge_key(m, front, err);
}

/* --- the whole --- */

static int merge_run(struct merge *m, struct tree_result *out, struct err *err)
{
    int code = tree_work(merge_step, m, err);

    if (code == 0 && m->conflicts)
        code = err_set(err, ERR_CONFLICT, "conflict found: %llu paths",
                       (unsigned long long)m->conflicts);
    if (code == 0)
        code = tree_builder_finish(&m->builder, out->root, err);
    return code;
}

static int merge_trees(struct tree_store *t, const struct tree_merge *how,
                       const struct tree_write_options *o, struct tree_result *out, struct err *err)
{
    const struct str roots[] = {
        [MERGE_BASE] = how->base, [MERGE_SOURCE] = how->source, [MERGE_DEST] = how->dest};
    struct merge *m = xzalloc(sizeof(*m));
    int code = 0;

    m->how = how;
    tree_builder_init(&m->builder, t, o);
    m->builder.sources[0] = &m->sides[MERGE_SOURCE];
    m->builder.sources[1] = &m->sides[MERGE_DEST];
    for (enum merge_side side = MERGE_BASE; side < MERGE_SIDES && code == 0; side++)
        code = tree_spine_open(&m->sides[side], t, roots[side], err);
    if (code == 0)
        code = merge_run(m, out, err);
    tree_builder_release(&m->builder);
    out->nodes = m->builder.written;
    for (enum merge_side side = MERGE_BASE; side < MERGE_SIDES; side++)
        tree_spine_close(&m->sides[side]);
    free(m);
    return code;
}

int tree_merge(struct tree_store *t, const struct tree_merge *m, const struct tree_write_options *o,
               struct tree_result *out, struct err *err)
{
    struct tree_result result = {0};
    struct str whole = str_eq(m->dest, m->base) ? m->source : m->dest;
    int code = 0;

    if (str_eq(m->source, m->base) || str_eq(m->dest, m->base) || str_eq(m->source, m->dest))
        snprintf(result.root, sizeof(result.root), STR_FMT, STR_ARG(whole));
    else
        code = merge_trees(t, m, o, &result, err);
    if (code == 0)
        *out = result;
    return code;
}
