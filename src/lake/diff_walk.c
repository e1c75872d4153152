/* Walks over the paths that differ between a tree and a ref. */
#include "lake/diff_walk.h"

#include <stdlib.h>

/* The walk joins two sorted sources: the difference of the two trees, and the staged rows above the
 * right tree. If both have a path, the staged row is the right side. */
struct diff_walk {
    struct diff_options o;
    struct tree_diff *trees; /* NULL: the trees are equal */
    struct layers *staged;   /* NULL: nothing is staged */
    struct tree_difference difference;
    struct layers_row row;
    bool has_difference, has_row; /* the walk has not returned `difference` or `row` yet */
    bool trees_ended, staged_ended;
    struct arena work; /* memory of the records of the present path */
};

int diff_walk_open(struct diff_walk **out, struct lake *l, const struct diff_options *o,
                   struct err *err)
{
    struct diff_walk *w = xzalloc(sizeof(*w));
    struct layers_options layers = {.view = o->view,
                                    .tokens = o->tokens,
                                    .token_count = o->token_count,
                                    .prefix = o->prefix,
                                    .shows_tombstones = true};
    int code = 0;

    w->o = *o;
    w->trees_ended = str_eq(o->left, o->right);
    w->staged_ended = o->token_count == 0;
    if (!w->trees_ended)
        code = tree_diff_open(&w->trees, o->store, o->left, o->right, o->prefix, err);
    if (code == 0 && !w->staged_ended)
        code = layers_open(&w->staged, l, &layers, err);
    if (code < 0) {
        diff_walk_close(w);
        return code;
    }
    *out = w;
    return 0;
}

/* Reads the next item of each source whose last item was returned. */
static int diff_walk_read(struct diff_walk *w, struct err *err)
{
    int code = 0;

    if (!w->has_difference && !w->trees_ended) {
        code = tree_diff_next(w->trees, &w->difference, err);
        w->trees_ended = code == ERR_END;
        w->has_difference = code == 0;
        if (code < 0 && code != ERR_END)
            return code;
    }
    if (!w->has_row && !w->staged_ended) {
        code = layers_next(w->staged, &w->row, err);
        w->staged_ended = code == ERR_END;
        w->has_row = code == 0;
    }
    return code == ERR_END ? 0 : code;
}

/* Finds a path in a tree. If the path is absent, the identity is empty. */
static int diff_walk_find(struct diff_walk *w, struct str root, struct str path,
                          struct tree_record *out, struct err *err)
{
    *out = (struct tree_record){0};
    if (root.len == 0)
        return 0;
    int code = tree_get(w->o.store, &w->work, root, path, out, err);
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Gives the smallest path of the two sources, and marks it as returned in each source that has
 * it. */
static int diff_walk_take(struct diff_walk *w, struct diff_row *out, struct err *err)
{
    int order = !w->has_row ? -1 : !w->has_difference ? 1 : str_cmp(w->difference.key, w->row.path);
    int code = 0;

    *out = (struct diff_row){0};
    if (order <= 0) {
        out->path = w->difference.key;
        out->left = w->difference.left;
        out->right = w->difference.right;
        w->has_difference = false;
    }
    if (order >= 0) {
        out->path = w->row.path;
        out->right = (struct tree_record){w->row.path, w->row.identity, w->row.data};
        w->has_row = false;
        if (order > 0)
            code = diff_walk_find(w, w->o.left, out->path, &out->left, err);
    }
    return code;
}

/* Finds the type of a difference. *shows false: the path does not differ, or the other side of a
 * three-dot comparison has made the same change. */
static int diff_walk_judge(struct diff_walk *w, struct diff_row *row, bool *shows, struct err *err)
{
    struct str left = row->left.identity, right = row->right.identity;
    struct tree_record other;

    *shows = !str_eq(left, right);
    row->type = left.len == 0 ? LAKE_ADDED : right.len == 0 ? LAKE_REMOVED : LAKE_CHANGED;
    if (!*shows || !w->o.is_three_dot)
        return 0;
    int code = diff_walk_find(w, w->o.other, row->path, &other, err);
    *shows = !str_eq(other.identity, right);
    if (!str_eq(other.identity, left))
        row->type = LAKE_CONFLICT;
    return code;
}

int diff_walk_next(struct diff_walk *w, struct diff_row *out, struct err *err)
{
    bool shows = false;
    int code = 0;

    while (code == 0 && !shows) {
        arena_reset(&w->work);
        code = diff_walk_read(w, err);
        if (code == 0 && !w->has_row && !w->has_difference)
            return ERR_END;
        if (code == 0)
            code = diff_walk_take(w, out, err);
        if (code == 0)
            code = diff_walk_judge(w, out, &shows, err);
    }
    return code;
}

void diff_walk_seek(struct diff_walk *w, struct str path)
{
    w->has_difference = w->has_row = false;
    if (w->trees) {
        tree_diff_seek(w->trees, path);
        w->trees_ended = false;
    }
    if (w->staged) {
        layers_seek(w->staged, path);
        w->staged_ended = false;
    }
}

void diff_walk_close(struct diff_walk *w)
{
    if (!w)
        return;
    tree_diff_close(w->trees);
    layers_close(w->staged);
    arena_release(&w->work);
    free(w);
}
