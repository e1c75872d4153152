/* Committing a branch (docs/lake.md, C1 to C5). */
#include "lake/change.h"
#include "lake/chosen.h"
#include "lake/head.h"
#include "lake/hooks.h"
#include "lake/names.h"
#include "lake/read.h"

#include "base/clock.h"

/* A commit under way. */
struct committing {
    struct lake *lake;
    struct arena *arena;
    const struct lake_repo *asked; /* the repository's record as the caller gave it */
    struct str name;               /* name of the branch */
    const struct lake_commit_options *o;
    struct chosen chosen; /* the paths of a commit of chosen paths */
    uint64_t deadline_ms;
    struct commit_turn *turn;
    unsigned rebuilds; /* rebuilds by R4 */
    /* The records as they were read last. */
    struct lake_repo repo;
    struct lake_branch branch;
    /* The tree that was built (C2): the tree of the commit `head`, changed by the rows of `tokens`
     * (S'). */
    bool is_built;
    struct str head, tree;
    bool has_changes; /* the tree differs from that of `head` */
    struct str *tokens;
    size_t token_count;
    uint64_t epoch;
    struct lake_keep keep; /* the state of the collector before the first node was put */
    /* The branch still had all of `tokens` after their rows were read, so no row was dropped before
     * it was read. */
    bool is_whole;
    struct lake_draft rest; /* rows of the paths that were not chosen */
    bool is_judged;         /* the hooks before the commit have allowed the tree `judged` (C3) */
    struct str judged;
};

/* --- C2: build --- */

/* The source of the tree's changes: the rows of the sealed tokens, or those of the chosen paths. */
struct commit_rows {
    struct layers *walk;
    const struct chosen *chosen;
};

static int commit_rows_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct commit_rows *rows = ctx;
    struct layers_row row;
    int code;

    do {
        code = layers_next(rows->walk, &row, err);
    } while (code == 0 && !chosen_has(rows->chosen, row.path));
    if (code == 0)
        *out = (struct tree_record){row.path, row.identity, row.data};
    return code;
}

static int commit_open_rows(struct committing *k, struct layers **out, struct err *err)
{
    struct layers_options o = {.tokens = k->branch.sealed,
                               .token_count = k->branch.sealed_count,
                               .shows_tombstones = true};

    return layers_open(out, k->lake, &o, err);
}

static int commit_build_tree(struct committing *k, struct err *err)
{
    struct tree_write_options write = {.writers = k->lake->o.writers};
    struct commit_rows rows = {.chosen = &k->chosen};
    struct tree_changes changes = {commit_rows_next, &rows};
    struct tree_result result = {0};
    struct head_tree base;
    int code = head_tree_open(&base, k->lake, k->arena, &k->repo, k->branch.commit_id, err);

    if (code == 0)
        code = commit_open_rows(k, &rows.walk, err);
    if (code == 0)
        lake_tree_store_keep(&base.store, &k->keep);
    if (code == 0)
        code = tree_apply(&base.store, base.root, &changes, &write, &result, err);
    layers_close(rows.walk);
    head_tree_release(&base, k->lake);
    k->tree = arena_str(k->arena, str_z(result.root));
    k->has_changes = result.added + result.changed + result.removed > 0;
    return code;
}

static int rest_keep_row(void *ctx, struct arena *a, struct layers_row *row, bool *keep,
                         struct err *err)
{
    *keep = !chosen_has(ctx, row->path);
    return 0;
}

/* Copies the rows of paths that were not chosen to a token of their own, so that they stay
 * staged. */
static int commit_build_rest(struct committing *k, struct err *err)
{
    struct layers *walk = NULL;
    int code = commit_open_rows(k, &walk, err);

    if (code == 0)
        code = draft_make(&k->rest, k->lake, k->arena, &k->repo, k->name, walk, rest_keep_row,
                          &k->chosen, err);
    layers_close(walk);
    return code;
}

/* Builds the tree from the branch as it was read last, and then reads the branch again, to know
 * whether all rows existed while they were read (is_whole). */
static int commit_build(struct committing *k, struct err *err)
{
    draft_give_up(&k->rest, k->lake, k->arena);
    k->head = k->branch.commit_id;
    k->tokens = k->branch.sealed;
    k->token_count = k->branch.sealed_count;
    k->epoch = k->branch.epoch;
    k->is_whole = false;
    k->is_built = false;
    int code = lake_keep_begin(&k->keep, k->lake, k->arena, &k->repo, err);
    if (code == 0)
        code = commit_build_tree(k, err);
    if (code == 0 && k->chosen.is_some)
        code = commit_build_rest(k, err);
    if (code == 0)
        code =
            lake_read_branch(k->lake, NULL, k->arena, k->asked, k->name, &k->repo, &k->branch, err);
    k->is_built = code == 0;
    return code;
}

/* --- C5: comparing the branch as it is now with the tree that was built --- */

enum overlap {
    OVERLAP_PUBLISH, /* R1, R2: the tree may be published */
    OVERLAP_TAKEN,   /* R3: another commit has all the changes */
    OVERLAP_REBUILD, /* R4, and R2 when the rows may have been dropped while they were read */
};

static size_t tokens_find(const struct str *tokens, size_t count, struct str token)
{
    size_t i = 0;

    while (i < count && !str_eq(tokens[i], token))
        i++;
    return i;
}

static bool tokens_equal(const struct str *a, const struct str *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!str_eq(a[i], b[i]))
            return false;
    return true;
}

/* Decides whether the tree that was built fits the branch as it was read last (docs/lake.md, C5, R1
 * to R4). *newer is the number of tokens that were sealed after those of the tree (P). */
static enum overlap commit_overlap(struct committing *k, size_t *newer)
{
    const struct lake_branch *b = &k->branch;

    *newer = b->sealed_count;
    if (!k->is_built || b->epoch != k->epoch)
        return OVERLAP_REBUILD;
    if (k->token_count == 0)
        return OVERLAP_PUBLISH;
    *newer = tokens_find(b->sealed, b->sealed_count, k->tokens[0]);
    size_t left = b->sealed_count - *newer;
    if (left == 0)
        return OVERLAP_TAKEN;
    if (left > k->token_count || !tokens_equal(b->sealed + *newer, k->tokens, left))
        return OVERLAP_REBUILD;
    if (left == k->token_count)
        k->is_whole = true;
    bool is_same = left == k->token_count && str_eq(b->commit_id, k->head);
    return k->is_whole && (is_same || !k->chosen.is_some) ? OVERLAP_PUBLISH : OVERLAP_REBUILD;
}

/* Whether the tree is the same as that of the present head. */
static int commit_is_empty(struct committing *k, bool *is_empty, struct err *err)
{
    struct tree_difference d;
    struct tree_diff *diff = NULL;
    struct head_tree head;

    if (k->token_count > 0 && str_eq(k->branch.commit_id, k->head)) {
        *is_empty = !k->has_changes;
        return 0;
    }
    int code = head_tree_open(&head, k->lake, k->arena, &k->repo, k->branch.commit_id, err);

    if (code == 0 && k->token_count == 0)
        k->tree = head.root;
    *is_empty = code == 0 && str_eq(head.root, k->tree);
    if (code == 0 && !*is_empty)
        code = tree_diff_open(&diff, &head.store, head.root, k->tree, STR_EMPTY, err);
    if (diff) {
        code = tree_diff_next(diff, &d, err);
        *is_empty = code == ERR_END;
        tree_diff_close(diff);
    }
    head_tree_release(&head, k->lake);
    return code == ERR_END ? 0 : code;
}

/* Removes the tokens whose rows change nothing from the branch. If the write loses a race, the next
 * commit removes them. */
static int commit_nothing(struct committing *k, size_t newer, struct err *err)
{
    struct branch_change c = branch_change_of(&k->repo, &k->branch, "lake.publish");
    struct err ignored = {0};

    if (newer < k->branch.sealed_count && !k->chosen.is_some) {
        c.next.sealed_count = newer;
        if (branch_change_write(k->lake, k->arena, &c, NULL, &ignored) == 0)
            lake_cleaner_wake(k->lake);
    }
    return err_set(err, ERR_NOT_MODIFIED, "no changes");
}

/* --- C3 and C4 --- */

/* Fills the record of the commit, with the present head as its parent. */
static int commit_draft(struct committing *k, struct lake_commit *out, struct err *err)
{
    *out = (struct lake_commit){.committer = k->o->committer,
                                .message = k->o->message,
                                .created_ms = k->o->created_ms,
                                .tree = k->tree,
                                .metadata = k->o->metadata};
    return head_commit_finish(k->lake, k->arena, &k->repo, out, &k->branch.commit_id, 1, err);
}

static struct lake_hook_call commit_call(const struct committing *k, const struct lake_commit *c)
{
    return (struct lake_hook_call){
        .event = LAKE_ON_COMMIT, .repo = &k->repo, .ref = k->name, .commit = c, .commit_id = c->id};
}

static int commit_ask_hooks(struct committing *k, const struct lake_commit *c, struct err *err)
{
    struct lake_hook_call call = commit_call(k, c);

    call.turn = k->turn;
    if (k->is_judged && str_eq(k->judged, c->tree))
        return 0;
    int code = lake_hook_pre(k->lake, k->arena, &call, err);
    k->is_judged = code == 0;
    k->judged = c->tree;
    return code;
}

static int commit_publish(struct committing *k, size_t newer, const struct lake_commit *commit,
                          struct err *err)
{
    struct branch_change c = branch_change_of(&k->repo, &k->branch, "lake.publish");
    struct str *sealed = arena_array(k->arena, newer + 1, sizeof(*sealed));

    if (!sealed)
        return err_code(err, ERR_NO_MEMORY);
    if (newer)
        memcpy(sealed, k->branch.sealed, newer * sizeof(*sealed));
    c.next.commit_id = commit->id;
    c.next.sealed = sealed;
    c.next.sealed_count = newer;
    c.commit = commit;
    c.built = &k->keep;
    if (k->chosen.is_some) { /* the rows of other paths move to another token */
        if (k->rest.token.len)
            sealed[c.next.sealed_count++] = k->rest.token;
        c.draft = &k->rest;
        c.next.epoch++;
    }
    int code = branch_change_write(k->lake, k->arena, &c, NULL, err);
    if (code == 0)
        k->rest = (struct lake_draft){0};
    return code;
}

/* Builds until the tree can be published or another commit has all the changes. Only rebuilds by R4
 * are counted. Any other rebuild means that an older commit was published, which happens only a few
 * times. */
static int commit_settle(struct committing *k, enum overlap *overlap, size_t *newer,
                         struct err *err)
{
    while ((*overlap = commit_overlap(k, newer)) == OVERLAP_REBUILD) {
        bool counts = !k->is_built || k->branch.epoch != k->epoch;
        if ((counts && k->rebuilds++ > LAKE_HEAD_TRIES) || clock_mono_ms() > k->deadline_ms)
            return err_set(err, ERR_BUSY,
                           "too many tries: other changes of the branch won every race");
        int code = commit_build(k, err);
        if (code < 0)
            return code;
    }
    return 0;
}

/* Tries once to publish, with the branch as it was read last. ERR_AGAIN: the publishing write lost
 * its race; the caller reads the branch again and tries again. */
static int commit_try(struct committing *k, struct lake_commit *out, struct err *err)
{
    enum overlap overlap;
    bool is_empty = false;
    size_t newer;
    int code = commit_settle(k, &overlap, &newer, err);

    if (code == 0 && overlap == OVERLAP_TAKEN) {
        if (!k->o->allow_empty)
            return err_set(err, ERR_NOT_MODIFIED, "no changes: commit " STR_FMT " has them",
                           STR_ARG(k->branch.commit_id));
        k->token_count = 0;
        /* another commit has all staged rows, also those of this draft, so the draft is not
         * needed */
        draft_give_up(&k->rest, k->lake, k->arena);
    }
    if (code == 0)
        code = commit_is_empty(k, &is_empty, err);
    if (code == 0 && is_empty && !k->o->allow_empty)
        return commit_nothing(k, newer, err);
    if (code == 0)
        code = commit_draft(k, out, err);
    if (code == 0)
        code = commit_ask_hooks(k, out, err);
    return code < 0 ? code : commit_publish(k, newer, out, err);
}

/* --- the operation --- */

static int commit_begin(struct committing *k, struct err *err)
{
    struct lake_hook_call call = {
        .event = LAKE_ON_PREPARE_COMMIT, .repo = &k->repo, .ref = k->name, .turn = k->turn};
    int code =
        lake_read_branch(k->lake, NULL, k->arena, k->asked, k->name, &k->repo, &k->branch, err);

    if (code == 0)
        code = lake_check_writable(&k->repo, k->o->force, err);
    if (code == 0)
        code =
            lake_check_protection(k->lake, k->arena, &k->repo, k->name, LAKE_PROTECT_COMMIT, err);
    call.commit_id = k->branch.commit_id;
    if (code == 0)
        code = lake_hook_pre(k->lake, k->arena, &call, err);
    if (code == 0)
        code = lake_seal(k->lake, k->arena, k->asked, k->name, &k->repo, &k->branch, err);
    return code;
}

/* Reads the branch and the collector's state again after a lost race. If a collection has begun
 * meanwhile, it may have removed nodes of the tree (docs/lake-keeping.md, G17). */
static int commit_look_again(struct committing *k, struct err *err)
{
    struct lake_keep now;
    int code =
        lake_read_branch(k->lake, NULL, k->arena, k->asked, k->name, &k->repo, &k->branch, err);

    if (code == 0)
        code = lake_keep_begin(&now, k->lake, k->arena, &k->repo, err);
    if (code < 0)
        return code;
    k->is_built = k->is_built && lake_keep_covers(&k->keep, &now);
    k->keep = now;
    return 0;
}

static int commit_run(struct committing *k, struct lake_commit *out, struct err *err)
{
    int code = commit_begin(k, err);

    while (code == 0 && (code = commit_try(k, out, err)) == ERR_AGAIN) {
        if (clock_mono_ms() > k->deadline_ms)
            return err_set(err, ERR_BUSY,
                           "too many tries: other changes of the branch won every race");
        lake_pause_short();
        code = commit_look_again(k, err);
    }
    draft_give_up(&k->rest, k->lake, k->arena);
    return code;
}

static int commit_check_options(const struct lake_commit_options *o, struct str branch,
                                struct err *err)
{
    int code = lake_check_branch(branch, err);

    if (code == 0)
        code = lake_check_message(o->message, err);
    if (code == 0)
        code = lake_check_metadata(&o->metadata, err);
    if (code == 0 && o->source_tree.len && o->paths)
        code = err_set(err, ERR_INVALID, "a commit is of a tree or of chosen paths, not of both");
    return code;
}

static int commit_staged(struct lake *l, struct arena *a, const struct lake_repo *r,
                         struct str branch, const struct lake_commit_options *o,
                         struct lake_commit *out, struct err *err)
{
    struct committing k = {.lake = l,
                           .arena = a,
                           .asked = r,
                           .name = branch,
                           .o = o,
                           .deadline_ms = clock_mono_ms() + LAKE_DEADLINE_MS};
    int code = chosen_make(&k.chosen, a, o->paths, o->path_count, err);

    if (code < 0)
        return code;
    code = lake_take_turn(l, r, branch, &k.turn, err);
    if (code < 0)
        return code;
    code = commit_run(&k, out, err);
    commit_turn_end(l->queue, k.turn);
    if (code < 0) {
        lake_compact_ask(l, &k.repo, &k.branch);
        return code;
    }
    lake_cleaner_wake(l);
    struct lake_hook_call call = commit_call(&k, out);
    lake_hook_post(l, &call);
    return 0;
}

int lake_commit(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                const struct lake_commit_options *o, struct lake_commit *out, struct err *err)
{
    uint64_t begun_ns = clock_mono_ns();
    int code = commit_check_options(o, branch, err);

    if (code < 0)
        return code;
    code = o->source_tree.len ? head_commit_tree(l, a, r, branch, o, out, err)
                              : commit_staged(l, a, r, branch, o, out, err);
    lake_notes_add(l->notes, LAKE_NOTE_COMMIT, r->id, begun_ns, code, err);
    return code;
}
