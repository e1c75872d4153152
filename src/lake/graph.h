/* The part of the commit graph that a walk has seen, and heaps of its nodes. A walk belongs to one
 * thread. */
#ifndef LAKE_GRAPH_H
#define LAKE_GRAPH_H

#include "base/map.h"
#include "base/vec.h"
#include "lake/lake_int.h"

/* A commit of the graph. Its id is the key of the map. */
struct graph_node {
    char id[LAKE_ID_LEN];
    int64_t created_ms;
    int32_t generation;
    unsigned parent_count;
    char (*parents)[LAKE_ID_LEN];
    /* These members are for the walk: */
    /* in a walk over a history: number of the commit's children that the walk has seen and not
     * returned yet (gc_retain.c uses the member for another purpose) */
    unsigned children;
    /* in a search for merge bases: the set of sides from which the commit was reached */
    unsigned marks;
    bool queued; /* the commit is or was in the walk's first heap */
    bool ready;  /* in a walk over a history: the commit is or was in the heap of ready commits */
};

struct graph {
    struct lake *lake;
    const struct lake_repo *repo; /* borrowed */
    bool first_parent;            /* nodes have only their first parent */
    struct map nodes;
    struct arena work; /* emptied for every commit that is read */
};

void graph_init(struct graph *g, struct lake *l, const struct lake_repo *r);
void graph_release(struct graph *g);

static inline struct str graph_id(const struct graph_node *n)
{
    return str_n(n->id, LAKE_ID_LEN);
}

/* Finds the node of a commit, and reads the commit if the graph does not have it yet.
 * ERR_NOT_FOUND: there is no such commit. */
int graph_get(struct graph *g, struct str id, struct graph_node **out, struct err *err) MUST_CHECK;
/* Like graph_get(), but for a parent of a node. ERR_CORRUPT: the commit is missing. */
int graph_parent(struct graph *g, const struct graph_node *child, unsigned i,
                 struct graph_node **out, struct err *err) MUST_CHECK;
/* Frees a node that the walk does not need any more. It must be in no heap. */
void graph_drop(struct graph *g, struct graph_node *n);

/* Whether `a` comes out of the heap before `b`. */
typedef bool graph_before_fn(const struct graph_node *a, const struct graph_node *b);
/* Orders by time, the newest first, then by generation, then by id. */
graph_before_fn graph_is_newer;
/* Orders by generation, the highest first, so that children come before their parents; then by
 * time. */
graph_before_fn graph_is_higher;

struct graph_heap {
    graph_before_fn *before;
    VEC(struct graph_node *) nodes;
};
void graph_push(struct graph_heap *h, struct graph_node *n);
struct graph_node *graph_pop(struct graph_heap *h); /* NULL: the heap is empty */

static inline struct graph_node *graph_top(const struct graph_heap *h) /* NULL: the heap is empty */
{
    return h->nodes.len ? h->nodes.items[0] : NULL;
}

#endif
