/* The part of the commit graph that a walk has seen. */
#include "lake/graph.h"

void graph_init(struct graph *g, struct lake *l, const struct lake_repo *r)
{
    *g = (struct graph){.lake = l, .repo = r};
    map_init(&g->nodes);
}

static void graph_node_free(struct graph_node *n)
{
    free(n->parents);
    free(n);
}

void graph_drop(struct graph *g, struct graph_node *n)
{
    map_remove(&g->nodes, graph_id(n));
    graph_node_free(n);
}

void graph_release(struct graph *g)
{
    size_t cursor = 0;
    struct str id;
    void *node;

    while (map_next(&g->nodes, &cursor, &id, &node))
        graph_drop(g, node);
    map_release(&g->nodes);
    arena_release(&g->work);
}

/* Copies the members of a commit that a walk needs. An id of another length than LAKE_ID_LEN is not
 * the id of a commit. */
static int graph_fill(struct graph_node *n, const struct lake_commit *c, bool first_parent,
                      struct err *err)
{
    struct str first = lake_commit_first_parent(c);

    n->created_ms = c->created_ms;
    n->generation = c->generation;
    n->parent_count = first_parent ? first.len > 0 : (unsigned)c->parent_count;
    n->parents = xcalloc(n->parent_count + 1, sizeof(*n->parents));
    for (unsigned i = 0; i < n->parent_count; i++) {
        struct str parent = first_parent ? first : c->parents[i];
        if (parent.len != LAKE_ID_LEN)
            return err_set(err, ERR_CORRUPT, "commit " STR_FMT " has a malformed parent",
                           STR_ARG(graph_id(n)));
        memcpy(n->parents[i], parent.p, LAKE_ID_LEN);
    }
    return 0;
}

int graph_get(struct graph *g, struct str id, struct graph_node **out, struct err *err)
{
    struct graph_node *n = map_get(&g->nodes, id);
    struct lake_commit c;

    *out = n;
    if (n)
        return 0;
    arena_reset(&g->work);
    int code = lake_commit_get(g->lake, &g->work, g->repo, id, &c, err);
    if (code < 0)
        return code;
    n = xzalloc(sizeof(*n));
    memcpy(n->id, id.p, LAKE_ID_LEN);
    code = graph_fill(n, &c, g->first_parent, err);
    if (code < 0) {
        graph_node_free(n);
        return code;
    }
    map_put(&g->nodes, graph_id(n), n);
    *out = n;
    return 0;
}

int graph_parent(struct graph *g, const struct graph_node *child, unsigned i,
                 struct graph_node **out, struct err *err)
{
    struct str id = str_n(child->parents[i], LAKE_ID_LEN);
    int code = graph_get(g, id, out, err);

    return code == ERR_NOT_FOUND
               ? err_set(err, ERR_CORRUPT,
                         "commit " STR_FMT ", a parent of " STR_FMT ", is missing", STR_ARG(id),
                         STR_ARG(graph_id(child)))
               : code;
}

/* --- heaps --- */

bool graph_is_newer(const struct graph_node *a, const struct graph_node *b)
{
    if (a->created_ms != b->created_ms)
        return a->created_ms > b->created_ms;
    if (a->generation != b->generation)
        return a->generation > b->generation;
    return str_cmp(graph_id(a), graph_id(b)) > 0;
}

bool graph_is_higher(const struct graph_node *a, const struct graph_node *b)
{
    return a->generation != b->generation ? a->generation > b->generation : graph_is_newer(a, b);
}

void graph_push(struct graph_heap *h, struct graph_node *n)
{
    size_t at = h->nodes.len;

    vec_push(&h->nodes, n);
    while (at > 0 && h->before(n, h->nodes.items[(at - 1) / 2])) {
        h->nodes.items[at] = h->nodes.items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->nodes.items[at] = n;
}

/* Moves the node from the top of the heap down to its place. */
static void graph_sink(struct graph_heap *h, struct graph_node *n)
{
    size_t at = 0, child = 1;

    while (child < h->nodes.len) {
        struct graph_node **items = h->nodes.items;
        if (child + 1 < h->nodes.len && h->before(items[child + 1], items[child]))
            child++;
        if (!h->before(items[child], n))
            break;
        items[at] = items[child];
        at = child;
        child = 2 * at + 1;
    }
    h->nodes.items[at] = n;
}

struct graph_node *graph_pop(struct graph_heap *h)
{
    struct graph_node *top = graph_top(h);

    if (top) {
        struct graph_node *last = vec_pop(&h->nodes);
        if (h->nodes.len)
            graph_sink(h, last);
    }
    return top;
}
