/* Walks the trees of many commits, in memory that does not grow with their number. Most nodes
 * belong to many trees, and each must be visited only once. So the nodes are visited level by
 * level, the highest level first. The children that the nodes of one level name are sorted on disk,
 * which also removes the duplicates, and are the nodes of the next level. A root may have any
 * level, so its children wait until the walk comes to theirs. */
#include "lake/gc_int.h"
#include "lake/tree_spine.h"

#include <stdlib.h>

struct gc_walk {
    const struct gc_run *run;
    struct tree_store *store;
    gc_node_fn *fn;
    void *ctx;
    /* A string for each child of a root: a byte that is smaller for a higher level, then the
     * child's id. So the strings of the highest level come first. */
    struct gc_sorter *pending;
    struct str next;                 /* the next string of `pending`; empty: there are no more */
    struct gc_sorter *nodes, *below; /* ids of the present level, and of the level below it */
    bool has_below;
};

int gc_walk_open(struct gc_walk **out, const struct gc_run *g, struct tree_store *store,
                 gc_node_fn *fn, void *ctx, struct err *err)
{
    struct gc_walk *w = xzalloc(sizeof(*w));
    int code = gc_run_sorter(g, &w->pending, GC_IDS_BYTES, err);

    w->run = g;
    w->store = store;
    w->fn = fn;
    w->ctx = ctx;
    *out = w;
    if (code < 0) {
        gc_walk_close(w);
        *out = NULL;
    }
    return code;
}

void gc_walk_close(struct gc_walk *w)
{
    if (!w)
        return;
    gc_sorter_close(w->pending);
    gc_sorter_close(w->nodes);
    gc_sorter_close(w->below);
    free(w);
}

/* --- one node --- */

typedef int walk_child_fn(struct gc_walk *w, const struct node_id *id, unsigned level,
                          struct err *err);

/* Calls add() for each child of a node. */
static int walk_children(struct gc_walk *w, struct node_cursor *c, walk_child_fn *add,
                         struct err *err)
{
    struct node_child child;
    int code = 0;

    while (code == 0 && (code = node_cursor_next(c, err)) == 0) {
        code = node_cursor_child(c, &child, err);
        if (code == 0)
            code = add(w, &child.id, c->node->level - 1, err);
    }
    return code == ERR_END ? 0 : code;
}

/* Visits a node that was opened. A node that is not of the level `level`, which its parent says, is
 * damaged. */
static int walk_visit_open(struct gc_walk *w, struct node_cursor *c, struct str text,
                           unsigned level, walk_child_fn *add, struct err *err)
{
    if (c->node->level != level)
        return node_corrupt(&c->node->id, "is not of the level that its parent says", err);
    int code = w->fn(w->ctx, text, level, err);
    return code == 0 && level > 0 ? walk_children(w, c, add, err) : code;
}

/* Visits the node. The level of a root is not known before; `level` is -1 for a root. */
static int walk_visit(struct gc_walk *w, struct str text, int level, walk_child_fn *add,
                      struct err *err)
{
    struct node_cursor *c = xzalloc(sizeof(*c));
    struct node_id id;
    int code = node_id_parse(&id, text, err);

    if (code == 0)
        code = node_cursor_open(c, w->store, &id, err);
    if (code == 0)
        code = walk_visit_open(w, c, text, level < 0 ? c->node->level : (unsigned)level, add, err);
    node_cursor_release(c);
    free(c);
    return code;
}

/* --- roots --- */

static int walk_add_pending(struct gc_walk *w, const struct node_id *id, unsigned level,
                            struct err *err)
{
    char text[1 + LAKE_ID_LEN + 1];

    text[0] = (char)(NODE_LEVEL_MAX - level);
    node_id_text(text + 1, id);
    return gc_sorter_add(w->pending, str_n(text, 1 + LAKE_ID_LEN), err);
}

int gc_walk_add(struct gc_walk *w, struct str root, struct err *err)
{
    return root.len ? walk_visit(w, root, -1, walk_add_pending, err) : 0;
}

/* --- levels --- */

static int walk_add_below(struct gc_walk *w, const struct node_id *id, unsigned level,
                          struct err *err)
{
    char text[LAKE_ID_LEN + 1];

    (void)level;
    w->has_below = true;
    node_id_text(text, id);
    return gc_sorter_add(w->below, str_n(text, LAKE_ID_LEN), err);
}

static int walk_next_pending(struct gc_walk *w, struct err *err)
{
    int code = gc_sorter_next(w->pending, &w->next, err);

    if (code == ERR_END)
        w->next = STR_EMPTY;
    return code == ERR_END ? 0 : code;
}

/* Adds the children of roots that have this level to the nodes of the level. */
static int walk_take_pending(struct gc_walk *w, unsigned level, struct err *err)
{
    int code = 0;

    while (code == 0 && w->next.len && w->next.p[0] == (char)(NODE_LEVEL_MAX - level)) {
        w->has_below = true;
        code = gc_sorter_add(w->below, str_skip(w->next, 1), err);
        if (code == 0)
            code = walk_next_pending(w, err);
    }
    return code;
}

/* Visits the nodes of a level, which are in w->below until now. */
static int walk_level(struct gc_walk *w, unsigned level, struct err *err)
{
    struct str id;
    int code = walk_take_pending(w, level, err);

    if (code < 0 || !w->has_below)
        return code;
    gc_sorter_close(w->nodes);
    w->nodes = w->below;
    w->below = NULL;
    w->has_below = false;
    code = gc_sorter_sort(w->nodes, err);
    if (code == 0)
        code = gc_run_sorter(w->run, &w->below, GC_IDS_BYTES, err);
    while (code == 0 && (code = gc_sorter_next(w->nodes, &id, err)) == 0)
        code = level > 0 ? walk_visit(w, id, (int)level, walk_add_below, err)
                         : w->fn(w->ctx, id, level, err);
    return code == ERR_END ? 0 : code;
}

int gc_walk_end(struct gc_walk *w, struct err *err)
{
    int code = gc_run_sorter(w->run, &w->below, GC_IDS_BYTES, err);

    if (code == 0)
        code = gc_sorter_sort(w->pending, err);
    if (code == 0)
        code = walk_next_pending(w, err);
    for (unsigned level = NODE_LEVEL_MAX; code == 0 && level-- > 0;)
        code = walk_level(w, level, err);
    return code;
}
