/* Merges a ref into a branch. */
#include "lake/merge_op.h"
#include "lake/conflicts.h"
#include "lake/merge_base.h"
#include "lake/names.h"
#include "lake/read.h"

#define MERGE_STRATEGY_KEY STR(".lakefs.merge.strategy")

static const struct str strategy_names[] = {
    [TREE_NO_STRATEGY] = {"default", 7},
    [TREE_SOURCE_WINS] = {"source-wins", 11},
    [TREE_DEST_WINS] = {"dest-wins", 9},
};

/* Returns the side that the caller has chosen for one path. */
static enum tree_strategy merging_choose(void *ctx, struct str path)
{
    const struct conflict_merge *m = ctx;
    const struct lake_merge_options *o = m->ctx;

    return o->choose ? o->choose(o->ctx, path) : TREE_NO_STRATEGY;
}

/* Whether the source has no changes since the base. There is one exception, as in lakeFS, where a
 * repository's first commit has no tree: if the base is the first commit, any later commit counts
 * as a change, even one with an empty tree. */
static bool merging_is_empty(const struct tree_merge *m, const struct lake_commit *base,
                             struct str source)
{
    bool first = base->parent_count == 0 && !str_eq(source, base->id);

    return str_eq(m->source, m->base) && !first;
}

/* Fills the trees of the merge: those of the source, of the destination, and of their base. */
static int merging_find_trees(struct merging *g, struct head_change *h, struct conflict_merge *m,
                              const struct base_tree *base, struct str source, struct err *err)
{
    struct lake *l = h->lake;
    struct arena *a = h->arena;
    struct lake_commit first;
    int code = lake_commit_get(l, a, &h->repo, base->first, &first, err);

    if (code == 0)
        code = lake_commit_tree(l, a, &h->repo, source, &m->merge.source, err);
    if (code == 0)
        code = lake_commit_tree(l, a, &h->repo, h->branch.commit_id, &m->merge.dest, err);
    if (code < 0)
        return code;
    m->merge.base = base->root;
    if (merging_is_empty(&m->merge, &first, source) && !g->o->allow_empty && !g->o->force)
        return err_set(err, ERR_NOT_MODIFIED, "no changes");
    return 0;
}

/* Merges the source's tree into the branch's; *tree is the root of the result. */
static int merging_merge(struct merging *g, struct head_change *h, struct str source,
                         struct str *tree, struct err *err)
{
    struct conflict_merge m = {
        .conflicts = g->conflicts,
        .ctx = (void *)g->o,
        .merge = {.strategy = g->o->strategy, .choose = merging_choose, .conflict = conflicts_add}};
    struct tree_store store;
    struct base_tree base = {0};
    int code = lake_tree_store(h->lake, &h->repo, &store, err);

    if (code < 0)
        return code;
    m.merge.ctx = &m;
    lake_tree_store_keep(&store, &h->keep);
    code = base_tree_find(&base, &store, h->lake, h->arena, &h->repo, source, h->branch.commit_id,
                          err);
    if (code == ERR_NOT_FOUND)
        code = err_set(err, ERR_INVALID, "no merge base: the refs have no common ancestor");
    if (code == 0)
        code = merging_find_trees(g, h, &m, &base, source, err);
    if (code == 0)
        code = conflicts_merge(&m, h->lake, h->arena, &base.store, tree, err);
    base_tree_release(&base);
    lake_tree_store_release(h->lake, &store);
    return code;
}

static struct str merging_message(const struct merging *g, struct head_change *h)
{
    return g->o->message.len ? g->o->message
                             : arena_fmt(h->arena, "Merge '" STR_FMT "' into '" STR_FMT "'",
                                         STR_ARG(g->source), STR_ARG(h->name));
}

static int merging_make(void *ctx, struct head_change *h, struct lake_commit *out, struct err *err)
{
    struct merging *g = ctx;
    const struct lake_merge_options *o = g->o;
    struct str source;
    int code = lake_ref_commit(h->lake, h->arena, &h->repo, g->source, &source, err);

    out->committer = o->committer;
    out->message = merging_message(g, h);
    out->metadata =
        head_pairs_with(h->arena, o->metadata, MERGE_STRATEGY_KEY, strategy_names[o->strategy]);
    if (code == 0)
        code = head_check_metadata(out, err);
    if (code == 0)
        code = merging_merge(g, h, source, &out->tree, err);
    if (code < 0)
        return code;
    struct str parents[] = {h->branch.commit_id, source};
    h->kept = source;
    code = head_commit_finish(h->lake, h->arena, &h->repo, out, parents, o->squash ? 1 : 2, err);
    return code == 0 && g->add ? g->add(g->ctx, h, out, err) : code;
}

int merging_run(struct merging *g, struct lake *l, struct arena *a, const struct lake_repo *r,
                struct lake_commit *out, struct err *err)
{
    struct head_change h = {.lake = l,
                            .arena = a,
                            .asked = r,
                            .name = g->dest,
                            .force = g->o->force,
                            .has_event = true,
                            .event = LAKE_ON_MERGE,
                            .source = g->source,
                            .make = merging_make,
                            .ctx = g};
    int code = lake_check_branch(g->dest, err);

    if (code == 0)
        code = lake_check_message(g->o->message, err);
    if (code == 0)
        code = lake_check_metadata(&g->o->metadata, err);
    return code < 0 ? code : head_change_run(&h, out, err);
}

int lake_merge(struct lake *l, struct arena *a, const struct lake_repo *r, struct str source,
               struct str dest, const struct lake_merge_options *o, struct lake_commit *out,
               struct lake_conflicts *conflicts, struct err *err)
{
    struct merging g = {.source = source, .dest = dest, .o = o, .conflicts = conflicts};

    return merging_run(&g, l, a, r, out, err);
}
