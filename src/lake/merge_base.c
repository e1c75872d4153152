/* Finds the merge bases of two commits: common ancestors that are not ancestors of another common
 * ancestor. */
#include "lake/merge_base.h"

#include "lake/graph.h"

enum {
    FROM_LEFT = 1,
    FROM_RIGHT = 2,
    FROM_BOTH = FROM_LEFT | FROM_RIGHT,
    /* the commit is an ancestor of a merge base that was found, so it is not a merge base itself */
    FROM_BASE = 4,
    FROM_KINDS = 8,
};

/* The walk takes commits from the heap, the highest generation first. So a commit is taken after
 * all of its children, and its marks are complete: if it has the marks of both sides, but not
 * FROM_BASE, it is a merge base.
 *
 * A further merge base can be found only while the heap has a commit with the marks of both
 * sides, or a commit of the left side and a commit of the right side. When it has neither, the
 * walk ends. */
struct base_walk {
    struct graph graph;
    struct graph_heap heap;
    size_t waiting[FROM_KINDS]; /* number of commits in the heap, by their marks */
};

static void base_walk_release(struct base_walk *w)
{
    vec_release(&w->heap.nodes);
    graph_release(&w->graph);
}

/* Adds marks to a commit, and puts the commit into the heap unless it is there already. */
static void base_reach(struct base_walk *w, struct graph_node *n, unsigned from)
{
    if ((n->marks | from) == n->marks)
        return;
    if (n->queued)
        w->waiting[n->marks]--;
    n->marks |= from;
    w->waiting[n->marks]++;
    if (!n->queued)
        graph_push(&w->heap, n);
    n->queued = true;
}

static int base_begin(struct base_walk *w, struct str id, unsigned from, struct err *err)
{
    struct graph_node *n;
    int code = graph_get(&w->graph, id, &n, err);

    if (code == 0)
        base_reach(w, n, from);
    return code;
}

static int base_pass(struct base_walk *w, struct graph_node *n, unsigned from, struct err *err)
{
    struct graph_node *parent;
    int code = 0;

    for (unsigned i = 0; i < n->parent_count && code == 0; i++) {
        code = graph_parent(&w->graph, n, i, &parent, err);
        if (code == 0)
            base_reach(w, parent, from);
    }
    return code;
}

/* Finds the next base; NULL: there are no more. */
static int base_next(struct base_walk *w, struct graph_node **out, struct err *err)
{
    int code = 0;

    *out = NULL;
    while (code == 0 &&
           (w->waiting[FROM_BOTH] || (w->waiting[FROM_LEFT] && w->waiting[FROM_RIGHT]))) {
        struct graph_node *n = graph_pop(&w->heap);
        bool is_base = n->marks == FROM_BOTH;
        n->queued = false;
        w->waiting[n->marks]--;
        code = base_pass(w, n, is_base ? FROM_BOTH | FROM_BASE : n->marks, err);
        if (is_base && code == 0) {
            *out = n;
            break;
        }
    }
    return code;
}

int lake_merge_bases(struct lake *l, struct arena *a, const struct lake_repo *r,
                     const struct str *left, size_t left_count, struct str right,
                     struct merge_bases *out, struct err *err)
{
    struct base_walk w = {.heap = {.before = graph_is_higher}};
    struct graph_node *base = NULL;
    int code = 0;

    *out = (struct merge_bases){0};
    graph_init(&w.graph, l, r);
    for (size_t i = 0; i < left_count && code == 0; i++)
        code = base_begin(&w, left[i], FROM_LEFT, err);
    if (code == 0)
        code = base_begin(&w, right, FROM_RIGHT, err);
    if (code == 0)
        code = base_next(&w, &base, err);
    while (code == 0 && base && out->count < MERGE_BASES_MAX) {
        out->ids[out->count++] = arena_str(a, graph_id(base));
        code = base_next(&w, &base, err);
    }
    out->has_more = code == 0 && base;
    base_walk_release(&w);
    if (code == 0 && out->count == 0)
        code = err_set(err, ERR_NOT_FOUND, "no merge base");
    return code == 0 && arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}

int lake_merge_base(struct lake *l, struct arena *a, const struct lake_repo *r, struct str left,
                    struct str right, struct lake_commit *out, struct err *err)
{
    struct merge_bases bases = {0};
    struct str ids[2];
    int code = lake_ref_commit(l, a, r, left, &ids[0], err);

    if (code == 0)
        code = lake_ref_commit(l, a, r, right, &ids[1], err);
    if (code == 0)
        code = lake_merge_bases(l, a, r, &ids[0], 1, ids[1], &bases, err);
    return code < 0 ? code : lake_commit_get(l, a, r, bases.ids[0], out, err);
}
