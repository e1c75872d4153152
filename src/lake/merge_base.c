/* The merge base of two commits: their best common ancestor, which is not an ancestor of another
 * common ancestor. */
#include "lake/graph.h"

enum { FROM_LEFT = 1, FROM_RIGHT = 2, FROM_BOTH = FROM_LEFT | FROM_RIGHT };

/* Marks the node as reached from a side, or from both. */
static void base_reach(struct graph_heap *h, struct graph_node *n, unsigned from)
{
    if ((n->marks | from) == n->marks)
        return;
    n->marks |= from;
    if (!n->queued)
        graph_push(h, n);
    n->queued = true;
}

static int base_begin(struct graph *g, struct graph_heap *h, struct str id, unsigned from,
                      struct err *err)
{
    struct graph_node *n;
    int code = graph_get(g, id, &n, err);

    if (code == 0)
        base_reach(h, n, from);
    return code;
}

/* Takes commits by generation. All children of a commit come before it, so its marks are complete
 * when it is taken. The first commit with both marks has no descendant with both. */
static int base_walk(struct graph *g, struct graph_heap *h, struct graph_node **out,
                     struct err *err)
{
    struct graph_node *parent;
    int code = 0;

    while (code == 0 && (*out = graph_pop(h)) && (*out)->marks != FROM_BOTH) {
        (*out)->queued = false;
        for (unsigned i = 0; i < (*out)->parent_count && code == 0; i++) {
            code = graph_parent(g, *out, i, &parent, err);
            if (code == 0)
                base_reach(h, parent, (*out)->marks);
        }
    }
    if (code == 0 && !*out)
        code = err_set(err, ERR_NOT_FOUND, "no merge base");
    return code;
}

static int base_of_commits(struct lake *l, struct arena *a, const struct lake_repo *r,
                           struct str left, struct str right, struct lake_commit *out,
                           struct err *err)
{
    struct graph_heap h = {.before = graph_is_higher};
    struct graph_node *base = NULL;
    struct graph g;

    graph_init(&g, l, r);
    int code = base_begin(&g, &h, left, FROM_LEFT, err);
    if (code == 0)
        code = base_begin(&g, &h, right, FROM_RIGHT, err);
    if (code == 0)
        code = base_walk(&g, &h, &base, err);
    if (code == 0)
        code = lake_commit_get(l, a, r, graph_id(base), out, err);
    vec_release(&h.nodes);
    graph_release(&g);
    return code;
}

int lake_merge_base(struct lake *l, struct arena *a, const struct lake_repo *r, struct str left,
                    struct str right, struct lake_commit *out, struct err *err)
{
    struct str ids[2];
    int code = lake_ref_commit(l, a, r, left, &ids[0], err);

    if (code == 0)
        code = lake_ref_commit(l, a, r, right, &ids[1], err);
    return code < 0 ? code : base_of_commits(l, a, r, ids[0], ids[1], out, err);
}
