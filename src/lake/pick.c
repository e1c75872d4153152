/* Revert and cherry-pick: a revert undoes on a branch the change that one commit made; a
 * cherry-pick makes that change again. Both are three-way merges with a commit and its parent. */
#include "lake/conflicts.h"
#include "lake/head.h"
#include "lake/names.h"
#include "lake/read.h"

struct picking {
    const struct lake_pick_options *o;
    struct lake_conflicts *conflicts;
    bool is_revert;
};

#define PICK_ORIGIN    STR("cherry-pick-origin")
#define PICK_COMMITTER STR("cherry-pick-committer")

/* Finds the parent that the commit is compared with. A commit without parents is compared with the
 * empty tree. */
static int picking_parent(const struct picking *p, const struct lake_commit *c, struct str *parent,
                          struct err *err)
{
    int n = p->o->parent;

    *parent = STR_EMPTY;
    if (n < 0 || (size_t)n > c->parent_count)
        return err_set(err, ERR_INVALID, "commit " STR_FMT " has no parent %d", STR_ARG(c->id), n);
    if (n == 0 && c->parent_count > 1)
        return err_set(err, p->is_revert ? ERR_CONFLICT : ERR_INVALID,
                       "must specify 1-based parent number for %s merge commit " STR_FMT,
                       p->is_revert ? "reverting" : "cherry-picking", STR_ARG(c->id));
    if (n == 0 && c->parent_count == 0)
        return 0;
    size_t index = n ? (size_t)n - 1 : 0;
    *parent = c->parents[c->version == 0 ? c->parent_count - 1 - index : index];
    return 0;
}

/* Applies the change, or its opposite, to the tree of the branch's head. */
static int picking_merge(const struct picking *p, struct head_change *h,
                         const struct lake_commit *c, struct str parent, struct str *tree,
                         struct err *err)
{
    struct conflict_merge m = {.conflicts = p->conflicts};
    struct tree_store store;
    struct str before = STR_EMPTY;
    int code = lake_commit_tree(h->lake, h->arena, &h->repo, parent, &before, err);

    if (code == 0)
        code =
            lake_commit_tree(h->lake, h->arena, &h->repo, h->branch.commit_id, &m.merge.dest, err);
    if (code == 0)
        code = lake_tree_store(h->lake, &h->repo, &store, err);
    if (code < 0)
        return code;
    lake_tree_store_keep(&store, &h->keep);
    m.merge.base = p->is_revert ? c->tree : before;
    m.merge.source = p->is_revert ? before : c->tree;
    m.merge.conflict = conflicts_add;
    m.merge.ctx = &m;
    code = conflicts_merge(&m, h->lake, h->arena, &store, tree, err);
    lake_tree_store_release(h->lake, &store);
    if (code == 0 && str_eq(*tree, m.merge.dest) && !p->o->allow_empty)
        code = err_set(err, ERR_NOT_MODIFIED, "no changes");
    return code;
}

/* Fills the message and the metadata of the new commit. A cherry-pick copies them from the picked
 * commit, unless the caller gives others. Its metadata also names the picked commit and the
 * committer of that commit. */
static void picking_describe(const struct picking *p, struct arena *a, const struct lake_commit *c,
                             struct lake_commit *out)
{
    const struct lake_pick_options *o = p->o;

    out->committer = o->committer;
    if (p->is_revert) {
        out->metadata = o->metadata;
        out->message =
            o->message.len ? o->message : arena_fmt(a, "Revert " STR_FMT, STR_ARG(c->id));
        return;
    }
    out->message = o->message.len ? o->message : c->message;
    out->metadata = c->metadata;
    for (size_t i = 0; i < o->metadata.count; i++)
        out->metadata =
            head_pairs_with(a, out->metadata, o->metadata.pairs[i].key, o->metadata.pairs[i].value);
    out->metadata = head_pairs_with(a, out->metadata, PICK_ORIGIN, c->id);
    out->metadata = head_pairs_with(a, out->metadata, PICK_COMMITTER, c->committer);
}

static int picking_make(void *ctx, struct head_change *h, struct lake_commit *out, struct err *err)
{
    struct picking *p = ctx;
    struct lake_commit c = {0};
    struct str id = STR_EMPTY, parent = STR_EMPTY;
    int code = lake_ref_commit(h->lake, h->arena, &h->repo, p->o->ref, &id, err);

    if (code == 0)
        code = lake_commit_get(h->lake, h->arena, &h->repo, id, &c, err);
    if (code == 0)
        code = picking_parent(p, &c, &parent, err);
    if (code < 0)
        return code;
    h->kept = p->is_revert ? parent : id;
    picking_describe(p, h->arena, &c, out);
    code = head_check_metadata(out, err);
    if (code == 0)
        code = picking_merge(p, h, &c, parent, &out->tree, err);
    if (code < 0)
        return code;
    return head_commit_finish(h->lake, h->arena, &h->repo, out, &h->branch.commit_id, 1, err);
}

static int picking_run(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct str branch, struct picking *p, struct lake_commit *out,
                       struct err *err)
{
    struct head_change h = {.lake = l,
                            .arena = a,
                            .asked = r,
                            .name = branch,
                            .force = p->o->force,
                            .has_event = true,
                            .event = p->is_revert ? LAKE_ON_REVERT : LAKE_ON_CHERRY_PICK,
                            .source = p->o->ref,
                            .make = picking_make,
                            .ctx = p};
    int code = lake_check_branch(branch, err);

    if (code == 0)
        code = lake_check_message(p->o->message, err);
    if (code == 0)
        code = lake_check_metadata(&p->o->metadata, err);
    return code < 0 ? code : head_change_run(&h, out, err);
}

int lake_revert(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                const struct lake_pick_options *o, struct lake_commit *out,
                struct lake_conflicts *conflicts, struct err *err)
{
    struct picking p = {o, conflicts, true};

    return picking_run(l, a, r, branch, &p, out, err);
}

int lake_cherry_pick(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                     const struct lake_pick_options *o, struct lake_commit *out,
                     struct lake_conflicts *conflicts, struct err *err)
{
    struct picking p = {o, conflicts, false};

    return picking_run(l, a, r, branch, &p, out, err);
}
