/* Makes changes of a branch's head that need a clean branch. */
#include "lake/head.h"
#include "lake/change.h"
#include "lake/names.h"
#include "lake/read.h"

/* --- commits --- */

int head_commit_finish(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct lake_commit *c, const struct str *parents, size_t count,
                       struct err *err)
{
    char id[LAKE_ID_LEN + 1];
    struct lake_commit parent;

    c->parents = arena_array(a, count ? count : 1, sizeof(*c->parents));
    if (!c->parents)
        return err_code(err, ERR_NO_MEMORY);
    c->parent_count = 0;
    c->generation = 1;
    for (size_t i = 0; i < count; i++) {
        if (parents[i].len == 0) /* the branch of a bare repository has no commit */
            continue;
        int code = lake_commit_get(l, a, r, parents[i], &parent, err);
        if (code < 0)
            return code;
        c->parents[c->parent_count++] = parents[i];
        if (c->generation <= parent.generation)
            c->generation = parent.generation + 1;
    }
    c->version = 1;
    if (c->created_ms == 0)
        c->created_ms = clock_wall_ms();
    lake_commit_id(id, c);
    c->id = arena_str(a, str_z(id));
    int code = arena_error(a);
    return code < 0 ? err_code(err, code) : 0;
}

struct str_pairs head_pairs_with(struct arena *a, struct str_pairs pairs, struct str key,
                                 struct str value)
{
    struct str_pairs out = {.pairs = arena_array(a, pairs.count + 1, sizeof(*out.pairs))};
    size_t i = 0;

    if (!out.pairs)
        return pairs; /* the arena is full, which its owner checks later */
    while (i < pairs.count && str_cmp(pairs.pairs[i].key, key) < 0)
        out.pairs[out.count++] = pairs.pairs[i++];
    out.pairs[out.count++] = (struct str_pair){key, value};
    if (i < pairs.count && str_eq(pairs.pairs[i].key, key))
        i++;
    while (i < pairs.count)
        out.pairs[out.count++] = pairs.pairs[i++];
    return out;
}

int head_check_metadata(const struct lake_commit *c, struct err *err)
{
    return c->metadata.count <= LAKE_METADATA_MAX
               ? 0
               : err_set(err, ERR_INVALID,
                         "the new commit would have %zu keys of metadata, and %d are the limit",
                         c->metadata.count, LAKE_METADATA_MAX);
}

/* --- a change --- */

/* Seals the branch if its staging token has rows, then refuses it if it is dirty, that is, if the
 * rows of its tokens differ from the tree of its head. Rows that equal the tree's records do not
 * make a branch dirty. */
static int head_prepare(struct head_change *h, struct err *err)
{
    bool is_dirty = false;
    int code = lake_seal(h->lake, h->arena, h->asked, h->name, &h->repo, &h->branch, err);

    if (code == 0)
        code = lake_is_dirty(h->lake, h->arena, &h->repo, &h->branch, &is_dirty, err);
    if (code == 0 && is_dirty)
        code = err_set(err, ERR_INVALID, "uncommitted changes (dirty branch)");
    return code;
}

/* Refuses a dirty branch before anything is sealed, so that a refusal leaves no sealed token. */
static int head_begin(struct head_change *h, struct err *err)
{
    bool is_dirty = false;
    int code =
        lake_read_branch(h->lake, NULL, h->arena, h->asked, h->name, &h->repo, &h->branch, err);

    if (code == 0)
        code = lake_check_writable(&h->repo, h->force, err);
    if (code == 0 && h->protects)
        code = lake_check_protection(h->lake, h->arena, &h->repo, h->name, h->protects, err);
    if (code == 0)
        code = lake_is_dirty(h->lake, h->arena, &h->repo, &h->branch, &is_dirty, err);
    if (code == 0 && is_dirty)
        code = err_set(err, ERR_INVALID, "uncommitted changes (dirty branch)");
    return code;
}

static struct lake_hook_call head_call(const struct head_change *h, const struct lake_commit *c)
{
    return (struct lake_hook_call){.event = h->event,
                                   .repo = &h->repo,
                                   .ref = h->name,
                                   .source = h->source,
                                   .commit = c,
                                   .commit_id = c->id};
}

static int head_ask_hooks(struct head_change *h, const struct lake_commit *c, struct err *err)
{
    struct lake_hook_call call = head_call(h, c);

    call.turn = h->turn;
    if (!h->has_event || (h->is_judged && str_eq(h->judged, c->tree)))
        return 0;
    int code = lake_hook_pre(h->lake, h->arena, &call, err);
    h->is_judged = code == 0;
    h->judged = c->tree;
    return code;
}

static int head_write(struct head_change *h, const struct lake_commit *commit, struct err *err)
{
    struct branch_change c = branch_change_of(&h->repo, &h->branch, "lake.publish");

    c.next.commit_id = commit->id;
    c.next.sealed_count = 0;
    c.next.epoch++;
    c.commit = h->is_old_commit ? NULL : commit;
    c.kept = h->kept;
    c.has_old_tree = h->has_old_tree;
    c.built = h->is_old_commit ? NULL : &h->keep;
    c.also = h->also;
    return branch_change_write(h->lake, h->arena, &c, NULL, err);
}

static int head_try(struct head_change *h, struct lake_commit *out, struct err *err)
{
    int code = head_prepare(h, err);

    *out = (struct lake_commit){0};
    if (code == 0)
        code = lake_keep_begin(&h->keep, h->lake, h->arena, &h->repo, err);
    if (code == 0)
        code = h->make(h->ctx, h, out, err);
    if (code == 0)
        code = head_ask_hooks(h, out, err);
    return code < 0 ? code : head_write(h, out, err);
}

int head_change_run(struct head_change *h, struct lake_commit *out, struct err *err)
{
    int code = lake_take_turn(h->lake, h->asked, h->name, &h->turn, err);

    if (code < 0)
        return code;
    code = head_begin(h, err);
    for (unsigned tries = 0; code == 0 && (code = head_try(h, out, err)) == ERR_AGAIN; tries++) {
        if (tries == LAKE_HEAD_TRIES)
            code = err_set(err, ERR_BUSY,
                           "too many tries: other changes of the branch won every race");
        else
            code = 0;
        lake_pause_short();
    }
    commit_turn_end(h->lake->queue, h->turn);
    if (code < 0)
        return code;
    lake_cleaner_wake(h->lake);
    if (h->has_event) {
        struct lake_hook_call call = head_call(h, out);
        lake_hook_post(h->lake, &call);
    }
    return 0;
}

/* --- a commit of a tree --- */

static int tree_commit_make(void *ctx, struct head_change *h, struct lake_commit *out,
                            struct err *err)
{
    const struct lake_commit_options *o = ctx;
    struct tree_stats stats;
    struct head_tree head;
    int code = head_tree_open(&head, h->lake, h->arena, &h->repo, h->branch.commit_id, err);

    if (code == 0 && str_eq(head.root, o->source_tree) && !o->allow_empty)
        code = err_set(err, ERR_NOT_MODIFIED, "no changes");
    if (code == 0 && (!lake_is_commit_id(o->source_tree) ||
                      tree_stats(&head.store, o->source_tree, &stats, err) < 0))
        code = err_set(err, ERR_INVALID, "the tree " STR_FMT " cannot be read",
                       STR_ARG(str_head(o->source_tree, LAKE_ID_LEN)));
    head_tree_release(&head, h->lake);
    if (code < 0)
        return code;
    h->has_old_tree = true;
    *out = (struct lake_commit){.committer = o->committer,
                                .message = o->message,
                                .created_ms = o->created_ms,
                                .tree = o->source_tree,
                                .metadata = o->metadata};
    return head_commit_finish(h->lake, h->arena, &h->repo, out, &h->branch.commit_id, 1, err);
}

int head_commit_tree(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                     const struct lake_commit_options *o, struct lake_commit *out, struct err *err)
{
    struct lake_commit_options copy = *o;
    struct head_change h = {.lake = l,
                            .arena = a,
                            .asked = r,
                            .name = branch,
                            .force = o->force,
                            .protects = LAKE_PROTECT_COMMIT,
                            .has_event = true,
                            .event = LAKE_ON_COMMIT,
                            .make = tree_commit_make,
                            .ctx = &copy};

    return head_change_run(&h, out, err);
}
