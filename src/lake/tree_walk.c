/* Visits the nodes of a tree, and reads its counts from its root. */
#include "lake/tree_spine.h"

struct walk {
    struct tree_spine spine;
    bool (*skip)(void *ctx, const struct node_visit *v);
    int (*fn)(void *ctx, const struct node_visit *v, struct err *err);
    void *ctx;
};

/* Adds up the counts that the root's records have. */
static int walk_root(struct tree_store *t, const struct node_id *id, struct tree_stats *out,
                     bool *foreign, struct err *err)
{
    struct node_cursor *c = xzalloc(sizeof(*c));
    struct node_child child;
    int code = node_cursor_open(c, t, id, err);

    *out = (struct tree_stats){0};
    if (code == 0) {
        out->height = c->node->level + 1;
        *foreign = c->node->foreign;
        if (c->node->level == 0)
            out->objects = c->node->records;
    }
    while (code == 0 && c->node->level > 0 && (code = node_cursor_next(c, err)) == 0)
        if ((code = node_cursor_child(c, &child, err)) == 0) {
            out->objects += child.count;
            out->bytes += child.bytes;
        }
    node_cursor_release(c);
    free(c);
    return code == ERR_END ? 0 : code;
}

int tree_stats(struct tree_store *t, struct str root, struct tree_stats *out, struct err *err)
{
    struct node_id id;
    bool foreign;

    *out = (struct tree_stats){0};
    if (root.len == 0)
        return 0;
    int code = node_id_parse(&id, root, err);
    return code ? code : walk_root(t, &id, out, &foreign, err);
}

/* Visits the node at the spine's position. *enter: the nodes below it are to be visited, too. */
static int walk_visit(struct walk *w, const struct node_visit *v, bool *enter, struct err *err)
{
    *enter = false;
    if (w->skip && w->skip(w->ctx, v))
        return 0;
    *enter = v->level > 0;
    return w->fn(w->ctx, v, err);
}

static int walk_step(struct walk *w, struct err *err)
{
    const struct tree_item *item = &w->spine.item;
    char text[LAKE_ID_LEN + 1];
    bool enter;

    node_id_text(text, &item->child.id);
    struct node_visit v = {str_z(text), item->level - 1, item->child.foreign, item->child.count};
    int code = walk_visit(w, &v, &enter, err);
    if (code)
        return code;
    return enter ? tree_spine_enter(&w->spine, err) : tree_spine_next(&w->spine, err);
}

int tree_walk(struct tree_store *t, struct str root,
              bool (*skip)(void *ctx, const struct node_visit *v),
              int (*fn)(void *ctx, const struct node_visit *v, struct err *err), void *ctx,
              struct err *err)
{
    struct walk w = {.skip = skip, .fn = fn, .ctx = ctx};
    struct tree_stats stats;
    struct node_id id;
    bool foreign = false, enter = false;

    if (root.len == 0)
        return 0;
    int code = node_id_parse(&id, root, err);
    if (code == 0)
        code = walk_root(t, &id, &stats, &foreign, err);
    if (code)
        return code;
    struct node_visit v = {root, stats.height - 1, foreign, stats.objects};
    code = walk_visit(&w, &v, &enter, err);
    if (code || !enter)
        return code;
    code = tree_spine_open(&w.spine, t, root, err);
    while (code == 0 && !w.spine.end)
        code = walk_step(&w, err);
    tree_spine_close(&w.spine);
    return code;
}
