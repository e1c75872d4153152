/* The history of a commit: its ancestors, the newest first, and never a parent before a child.
 *
 * Times alone do not give such an order, because clocks differ: a child may be older than its
 * parent. Generations do, because a child's generation is above that of its parents. So the walk
 * has two heaps:
 *
 * - The first heap has the commits that are still to be *explored*, the highest generation first.
 *   To explore a commit is to count it as a child of each of its parents. When all commits down to
 *   some generation are explored, all children of the commits of that generation are counted.
 * - The second heap has the commits that are *ready*: all their children were returned. The newest
 *   of them is returned next.
 *
 * Git orders its log by the same idea. A history whose generations are wrong still ends and has
 * each commit once; only its order may be wrong. */
#include "lake/graph.h"
#include "lake/id_set.h"
#include "lake/iter_int.h"

struct history_iter {
    struct lake_iter iter;
    struct graph graph;
    struct lake_repo repo; /* a copy with the members that the walk needs */
    char from[LAKE_ID_LEN];
    int64_t since_ms;
    struct graph_heap unexplored, ready;
    struct id_set given;  /* commits that were returned; their nodes are dropped */
    char id[LAKE_ID_LEN]; /* the commit that was returned last */
    bool begun;
    int failed;        /* an error of the walk, which stays until the next seek */
    struct buf sought; /* id that a seek asked for, the next to be returned; empty: none */
    struct lake_commit commit;
};

static struct history_iter *history_iter_of(struct lake_iter *it)
{
    return container_of(it, struct history_iter, iter);
}

/* Finds a parent of the node. NULL: the parent is not part of the walk, because it is too old, or
 * because wrong generations made the walk return it earlier. */
static int history_parent(struct history_iter *it, const struct graph_node *n, unsigned i,
                          struct graph_node **out, struct err *err)
{
    *out = NULL;
    if (id_set_has(&it->given, str_n(n->parents[i], LAKE_ID_LEN)))
        return 0;
    int code = graph_parent(&it->graph, n, i, out, err);
    if (code < 0 || (*out)->created_ms < it->since_ms)
        *out = NULL;
    return code;
}

/* Counts the node as a child of its parents. */
static int history_explore(struct history_iter *it, struct graph_node *n, struct err *err)
{
    struct graph_node *parent;
    int code = 0;

    for (unsigned i = 0; i < n->parent_count && code == 0; i++) {
        code = history_parent(it, n, i, &parent, err);
        if (!parent)
            continue;
        parent->children++;
        if (!parent->queued)
            graph_push(&it->unexplored, parent);
        parent->queued = true;
    }
    return code;
}

/* Explores all commits whose generation is at least this one. */
static int history_explore_to(struct history_iter *it, int32_t generation, struct err *err)
{
    int code = 0;

    while (code == 0 && graph_top(&it->unexplored) &&
           graph_top(&it->unexplored)->generation >= generation)
        code = history_explore(it, graph_pop(&it->unexplored), err);
    return code;
}

/* Takes the node out of the walk, because its commit is returned now. Parents whose other children
 * were all returned become ready. */
static int history_pass(struct history_iter *it, struct graph_node *n, struct err *err)
{
    struct graph_node *parent;
    int code = 0;

    memcpy(it->id, n->id, sizeof(it->id));
    id_set_add(&it->given, graph_id(n));
    for (unsigned i = 0; i < n->parent_count && code == 0; i++) {
        code = history_parent(it, n, i, &parent, err);
        if (!parent)
            continue;
        code = history_explore_to(it, parent->generation, err);
        if (parent->children > 0)
            parent->children--;
        if (parent->children == 0 && !parent->ready)
            graph_push(&it->ready, parent);
        parent->ready |= parent->children == 0;
    }
    graph_drop(&it->graph, n);
    return code;
}

static int history_begin(struct history_iter *it, struct err *err)
{
    struct graph_node *first;
    int code = graph_get(&it->graph, str_n(it->from, LAKE_ID_LEN), &first, err);

    it->begun = code == 0;
    if (code < 0 || first->created_ms < it->since_ms)
        return code;
    first->queued = first->ready = true;
    graph_push(&it->unexplored, first);
    graph_push(&it->ready, first);
    return history_explore_to(it, first->generation, err);
}

/* Moves to the next commit of the walk and sets it->id to its id. */
static int history_step(struct history_iter *it, struct err *err)
{
    int code = it->failed ? err_code(err, it->failed) : it->begun ? 0 : history_begin(it, err);

    if (code == 0) {
        struct graph_node *n = graph_pop(&it->ready);
        code = n ? history_pass(it, n, err) : ERR_END;
    }
    it->failed = code;
    return code;
}

static int history_iter_next(struct lake_iter *iter, struct lake_item *out, struct err *err)
{
    struct history_iter *it = history_iter_of(iter);
    int code;

    out->id = str_n(it->id, sizeof(it->id));
    do
        code = history_step(it, err);
    while (code == 0 && it->sought.len && !str_eq(out->id, buf_str(&it->sought)));
    buf_reset(&it->sought);
    if (code < 0)
        return code;
    out->commit = &it->commit;
    return lake_commit_get(iter->lake, &iter->arena, &it->repo, out->id, &it->commit, err);
}

size_t lake_history_commits(const struct lake_iter *iter)
{
    const struct history_iter *it = container_of(iter, struct history_iter, iter);

    return it->given.count + it->graph.nodes.len;
}

static void history_release(struct history_iter *it)
{
    graph_release(&it->graph);
    vec_release(&it->unexplored.nodes);
    vec_release(&it->ready.nodes);
    id_set_release(&it->given);
}

static void history_iter_seek(struct lake_iter *iter, struct str id)
{
    struct history_iter *it = history_iter_of(iter);
    bool first_parent = it->graph.first_parent;

    history_release(it);
    graph_init(&it->graph, iter->lake, &it->repo);
    it->graph.first_parent = first_parent;
    it->begun = false;
    it->failed = 0;
    buf_reset(&it->sought);
    buf_append_str(&it->sought, id);
}

static void history_iter_close(struct lake_iter *iter)
{
    struct history_iter *it = history_iter_of(iter);

    history_release(it);
    buf_release(&it->sought);
    free((char *)it->repo.partition.p);
}

static const struct lake_iter_ops history_iter_ops = {history_iter_next, history_iter_seek,
                                                      history_iter_close};

int lake_iter_history(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                      const struct lake_history *h, struct err *err)
{
    struct history_iter *it;

    if (h->from.len != LAKE_ID_LEN)
        return err_set(err, ERR_NOT_FOUND, "commit not found");
    it = xzalloc(sizeof(*it));
    it->iter.ops = &history_iter_ops;
    it->iter.lake = l;
    it->repo.partition = str_n(str_dup(r->partition), r->partition.len);
    memcpy(it->from, h->from.p, LAKE_ID_LEN);
    it->since_ms = h->since_ms;
    it->unexplored.before = graph_is_higher;
    it->ready.before = graph_is_newer;
    graph_init(&it->graph, l, &it->repo);
    it->graph.first_parent = h->first_parent;
    *out = &it->iter;
    return 0;
}
