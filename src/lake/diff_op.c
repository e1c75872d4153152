/* Lists differences between refs, and the uncommitted changes of a branch. */
#include "lake/diff_walk.h"
#include "lake/merge_base.h"
#include "lake/names.h"
#include "lake/page.h"
#include "lake/read.h"

/* --- a page --- */

struct differing {
    struct arena *arena;
    struct diff_walk *walk;
    struct diff_row row; /* the row that the walk returned last */
    struct lake_differences *out;
};

static int differing_next(void *ctx, struct str *path, struct err *err)
{
    struct differing *g = ctx;
    int code = diff_walk_next(g->walk, &g->row, err);

    *path = g->row.path;
    return code;
}

static void differing_seek(void *ctx, struct str path)
{
    diff_walk_seek(((struct differing *)ctx)->walk, path);
}

/* Copies a side of the row. A side that does not have the path stays empty. */
static int differing_side(struct differing *g, struct str path, const struct tree_record *from,
                          struct lake_object *out, struct err *err)
{
    if (from->identity.len == 0 || base_tree_conflicts(from->identity))
        return 0;
    struct str identity = arena_str(g->arena, from->identity);
    struct str data = arena_str(g->arena, from->data);
    int code = arena_error(g->arena);
    return code < 0 ? err_code(err, code)
                    : lake_object_read(out, g->arena, path, identity, data, err);
}

static int differing_add(void *ctx, struct str path, bool is_prefix, struct err *err)
{
    struct differing *g = ctx;
    struct lake_difference *item = &g->out->items[g->out->count++];

    *item = (struct lake_difference){.path = path, .is_prefix = is_prefix};
    item->type = is_prefix ? LAKE_PREFIX_CHANGED : g->row.type;
    if (is_prefix)
        return 0;
    int code = differing_side(g, path, &g->row.left, &item->left, err);
    return code < 0 ? code : differing_side(g, path, &g->row.right, &item->right, err);
}

static int differing_fill(struct lake *l, struct arena *a, struct diff_options *d,
                          const struct lake_list_options *o, struct lake_differences *out,
                          struct err *err)
{
    struct differing g = {.arena = a, .out = out};
    struct page_source source = {differing_next, differing_seek, differing_add, &g};
    struct str from;
    int code = page_start(a, o, &from, err);

    *out = (struct lake_differences){.next = o->after};
    if (code < 0)
        return code == ERR_END ? 0 : code;
    out->items = arena_array(a, page_limit(o) + 1, sizeof(*out->items));
    if (!out->items)
        return err_code(err, ERR_NO_MEMORY);
    d->prefix = o->prefix;
    code = diff_walk_open(&g.walk, l, d, err);
    if (code == 0 && from.len)
        diff_walk_seek(g.walk, from);
    if (code == 0)
        code = page_fill(a, o, &source, &out->more, &out->next, err);
    diff_walk_close(g.walk);
    return code;
}

/* --- comparing two refs --- */

/* A comparison of two refs. `right` may be a branch with its staged rows. */
struct comparing {
    struct str left, right; /* ref expressions; `left` empty: the head of the branch */
    bool is_three_dot;
    struct lake_ref right_ref;
    const struct lake_list_options *o;
};

/* Finds the left tree. For a three-dot comparison this is the tree of the merge base. *base then
 * has that tree until the caller releases it. */
static int comparing_left(struct comparing *c, struct lake *l, struct arena *a,
                          const struct lake_repo *r, struct str right_commit,
                          struct base_tree *base, struct diff_options *d, struct err *err)
{
    struct str left, tree;

    if (c->left.len == 0) {
        d->left = d->right;
        return 0;
    }
    int code = lake_ref_commit(l, a, r, c->left, &left, err);
    if (code == 0)
        code = lake_commit_tree(l, a, r, left, &tree, err);
    if (code == 0 && c->is_three_dot)
        code = base_tree_find(base, d->store, l, a, r, left, right_commit, err);
    if (code < 0)
        return code;
    d->is_three_dot = c->is_three_dot;
    d->left = c->is_three_dot ? base->root : tree;
    d->other = tree;
    if (c->is_three_dot)
        d->store = &base->store;
    return 0;
}

/* Compares `left` with the branch `right` as it is at the moment `m`. If `m` is NULL, compares with
 * the commit of `right`. */
static int comparing_run(struct comparing *c, struct lake *l, struct arena *a,
                         const struct lake_repo *r, const struct lake_moment *m,
                         struct lake_differences *out, struct err *err)
{
    struct str commit = m ? m->branch.commit_id : c->right_ref.commit_id;
    struct diff_options d = {0};
    struct base_tree base = {0};
    struct head_tree right;
    int code = head_tree_open(&right, l, a, r, commit, err);

    d.store = &right.store;
    d.right = right.root;
    if (code == 0 && m) {
        d.view = m->view;
        d.tokens = layers_tokens(a, &m->branch, &d.token_count);
        code = d.tokens ? 0 : err_code(err, ERR_NO_MEMORY);
    }
    if (code == 0)
        code = comparing_left(c, l, a, r, commit, &base, &d, err);
    if (code == 0)
        code = differing_fill(l, a, &d, c->o, out, err);
    base_tree_release(&base);
    head_tree_release(&right, l);
    return code;
}

/* Compares `left` with a branch and its staged rows, all read at one moment. */
static int comparing_branch(struct comparing *c, struct lake *l, struct arena *a,
                            const struct lake_repo *r, struct str branch,
                            struct lake_differences *out, struct err *err)
{
    uint64_t deadline = clock_mono_ms() + LAKE_DEADLINE_MS;
    struct lake_moment m;
    int code;

    do {
        code = moment_open(&m, l, a, r, branch, err);
        if (code < 0)
            return code;
        code = comparing_run(c, l, a, r, &m, out, err);
        if (code == 0)
            code = moment_check(&m, l, a, err);
        moment_close(&m, l);
    } while (code == ERR_AGAIN && clock_mono_ms() < deadline);
    return code == ERR_AGAIN ? err_code(err, ERR_BUSY) : code;
}

int lake_diff_branch(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                     const struct lake_list_options *o, struct lake_differences *out,
                     struct err *err)
{
    struct comparing c = {.o = o};
    int code = lake_check_branch(branch, err);

    return code < 0 ? code : comparing_branch(&c, l, a, r, branch, out, err);
}

int lake_diff_refs(struct lake *l, struct arena *a, const struct lake_repo *r, struct str left,
                   struct str right, bool three_dot, const struct lake_list_options *o,
                   struct lake_differences *out, struct err *err)
{
    struct comparing c = {.left = left, .right = right, .is_three_dot = three_dot, .o = o};
    int code = left.len ? lake_ref_resolve(l, a, r, right, &c.right_ref, err)
                        : err_set(err, ERR_NOT_FOUND, "ref '' not found");

    if (code < 0)
        return code;
    return c.right_ref.explicit_staged
               ? comparing_branch(&c, l, a, r, c.right_ref.branch.id, out, err)
               : comparing_run(&c, l, a, r, NULL, out, err);
}
