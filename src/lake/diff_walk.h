/* A walk over the paths that differ between a tree and a ref. The ref is another tree, with or
 * without staged rows above it. For the files of src/lake/ alone. */
#ifndef LAKE_DIFF_WALK_H
#define LAKE_DIFF_WALK_H

#include "lake/layers.h"

struct diff_options {
    struct tree_store *store; /* borrowed */
    struct str left, right;   /* ids of the trees' roots */
    /* A three-dot comparison: `left` is the tree of the merge base, and `other` is the tree of the
     * other side. Changes that the other side has made too are left out; paths that it changed
     * differently are conflicts. */
    bool is_three_dot;
    struct str other;
    /* Tokens whose rows lie above the tree `right`, the newest token first. A row decides for its
     * path, whatever the tree has. */
    struct kv_view *view;
    const struct str *tokens;
    size_t token_count;
    struct str prefix;
};

/* A path that differs. A side that does not have the path has an empty identity. */
struct diff_row {
    int type; /* as in struct lake_difference */
    struct str path;
    struct tree_record left, right;
};

struct diff_walk;
/* The strings of the options are borrowed until the walk is closed, the tokens until this function
 * returns. */
int diff_walk_open(struct diff_walk **out, struct lake *l, const struct diff_options *o,
                   struct err *err) MUST_CHECK;
/* Gives the next path. ERR_END: there are no more. The strings are borrowed until the next call. */
int diff_walk_next(struct diff_walk *w, struct diff_row *out, struct err *err) MUST_CHECK;
void diff_walk_seek(struct diff_walk *w, struct str path);
void diff_walk_close(struct diff_walk *w); /* NULL is fine */

#endif
