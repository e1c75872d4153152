/* Discards staged changes of a branch, and moves a branch to another commit. A branch has a staging
 * token, which gets new changes, and sealed tokens, which get no more (docs/lake.md). */
#include "lake/change.h"
#include "lake/head.h"
#include "lake/names.h"
#include "lake/read.h"

struct resetting {
    struct lake *lake;
    struct arena *arena;
    const struct lake_repo *asked; /* the repository's record as the caller gave it */
    struct str name;               /* name of the branch */
    enum lake_reset_kind kind;
    struct str path;
    /* The records as they were read last. */
    struct lake_repo repo;
    struct lake_branch branch;
};

/* --- everything --- */

/* Discards all staged changes: gives the branch a new staging token and no sealed tokens, in one
 * write. */
static int reset_all(struct resetting *t, struct err *err)
{
    int code =
        lake_read_branch(t->lake, NULL, t->arena, t->asked, t->name, &t->repo, &t->branch, err);

    if (code < 0)
        return code;
    struct branch_change c = branch_change_of(&t->repo, &t->branch, "lake.reset");
    c.frees = true;
    c.next.staging = lake_new_token(t->arena, &t->repo, t->name);
    c.next.sealed_count = 0;
    c.next.epoch++;
    return branch_change_write(t->lake, t->arena, &c, NULL, err);
}

/* --- a path or a prefix --- */

/* The context of undo_row(). */
struct undoing {
    const struct resetting *reset;
    struct head_tree tree;
};

/* Replaces a staged row by a row that undoes it: the object that the tree has at the path, or a
 * tombstone if the tree has none. *keep false: the row changes nothing. */
static int undo_row(void *ctx, struct arena *a, struct layers_row *row, bool *keep, struct err *err)
{
    struct undoing *u = ctx;
    struct tree_record record;
    int code = ERR_NOT_FOUND;

    if (u->reset->kind == LAKE_RESET_PATH && !str_eq(row->path, u->reset->path))
        /* The walk has all paths that begin with `path`. The first one is `path` itself. */
        return ERR_END;
    if (u->tree.root.len)
        code = tree_get(&u->tree.store, a, u->tree.root, row->path, &record, err);
    if (code < 0 && code != ERR_NOT_FOUND)
        return code;
    struct str was = row->identity;
    row->identity = code == 0 ? record.identity : STR_EMPTY;
    row->data = code == 0 ? record.data : STR_EMPTY;
    *keep = !str_eq(was, row->identity);
    return 0;
}

static int reset_make_draft(struct resetting *t, struct lake_draft *out, struct err *err)
{
    struct layers_options o = {.tokens = t->branch.sealed,
                               .token_count = t->branch.sealed_count,
                               .prefix = t->path,
                               .shows_tombstones = true};
    struct undoing u = {.reset = t};
    struct layers *walk = NULL;
    int code = head_tree_open(&u.tree, t->lake, t->arena, &t->repo, t->branch.commit_id, err);

    if (code == 0)
        code = layers_open(&walk, t->lake, &o, err);
    if (code == 0)
        code = draft_make(out, t->lake, t->arena, &t->repo, t->name, walk, undo_row, &u, err);
    layers_close(walk);
    head_tree_release(&u.tree, t->lake);
    return code;
}

/* Makes the draft, which has the undoing rows, the newest sealed token. Changes that were made
 * after the seal are in the staging token. That token comes before all sealed ones, so these
 * changes stay. */
static int reset_put_draft(struct resetting *t, struct lake_draft *d, struct err *err)
{
    struct branch_change c = branch_change_of(&t->repo, &t->branch, "lake.reset");
    size_t count = t->branch.sealed_count;
    struct str *sealed = arena_array(t->arena, count + 1, sizeof(*sealed));

    if (!sealed)
        return err_code(err, ERR_NO_MEMORY);
    sealed[0] = d->token;
    memcpy(sealed + 1, t->branch.sealed, count * sizeof(*sealed));
    c.next.sealed = sealed;
    c.next.sealed_count = count + 1;
    c.next.epoch++;
    c.draft = d;
    c.frees = true;
    int code = branch_change_write(t->lake, t->arena, &c, NULL, err);
    if (code == 0)
        t->branch = c.next; /* lake_compact_ask() needs the new number of sealed tokens */
    return code;
}

/* Resets a path or a prefix. ERR_AGAIN: another request has changed the branch, or this call has
 * compacted the branch; the caller tries again. */
static int reset_some(struct resetting *t, struct err *err)
{
    struct lake_draft draft = {.frees = true};
    int code = lake_seal_to_reset(t->lake, t->arena, t->asked, t->name, &t->repo, &t->branch, err);

    if (code < 0 || t->branch.sealed_count == 0)
        return code;
    if (t->branch.sealed_count >= LAKE_SEALED_FULL) {
        code = lake_compact(t->lake, t->arena, &t->repo, t->name, err);
        return code < 0 ? code : ERR_AGAIN; /* the compaction has changed the branch */
    }
    code = reset_make_draft(t, &draft, err);
    if (code == 0 && draft.count > 0)
        code = reset_put_draft(t, &draft, err);
    if (code < 0)
        draft_give_up(&draft, t->lake, t->arena);
    return code;
}

/* --- the operation --- */

static int reset_check(struct resetting *t, bool force, struct err *err)
{
    int code = lake_check_branch(t->name, err);

    if (code == 0 && t->kind == LAKE_RESET_PATH)
        code = lake_check_path(t->path, err);
    if (code == 0)
        code =
            lake_read_branch(t->lake, NULL, t->arena, t->asked, t->name, &t->repo, &t->branch, err);
    if (code == 0)
        code = lake_check_writable(&t->repo, force, err);
    if (code == 0)
        code =
            lake_check_protection(t->lake, t->arena, &t->repo, t->name, LAKE_PROTECT_STAGING, err);
    return code;
}

int lake_reset(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
               enum lake_reset_kind kind, struct str path, bool force, struct err *err)
{
    uint64_t deadline = clock_mono_ms() + LAKE_DEADLINE_MS;
    struct resetting t = {
        .lake = l, .arena = a, .asked = r, .name = branch, .kind = kind, .path = path};
    int code = reset_check(&t, force, err);

    if (code < 0)
        return code;
    bool is_all = kind == LAKE_RESET_ALL || (kind == LAKE_RESET_PREFIX && path.len == 0);
    while ((code = is_all ? reset_all(&t, err) : reset_some(&t, err)) == ERR_AGAIN) {
        if (clock_mono_ms() > deadline)
            return err_set(err, ERR_BUSY,
                           "too many tries: other changes of the branch won every race");
        lake_pause_short();
    }
    if (code < 0)
        return code;
    lake_cleaner_wake(l);
    lake_compact_ask(l, &t.repo, &t.branch);
    return 0;
}

/* --- another head --- */

static int hard_reset_make(void *ctx, struct head_change *h, struct lake_commit *out,
                           struct err *err)
{
    const struct str *ref = ctx;
    struct str target;
    int code = lake_ref_commit(h->lake, h->arena, &h->repo, *ref, &target, err);

    h->is_old_commit = true;
    h->kept = target;
    /* If the new head's tree cannot be read, nobody could read the branch or commit to it. */
    if (code == 0)
        code = lake_check_tree(h->lake, h->arena, &h->repo, target, err);
    return code < 0 ? code : lake_commit_get(h->lake, h->arena, &h->repo, target, out, err);
}

int lake_hard_reset(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                    struct str ref, bool force, struct err *err)
{
    struct lake_commit target;
    struct head_change h = {.lake = l,
                            .arena = a,
                            .asked = r,
                            .name = branch,
                            .force = force,
                            .protects = LAKE_PROTECT_STAGING | LAKE_PROTECT_COMMIT,
                            .make = hard_reset_make,
                            .ctx = &ref};
    int code = lake_check_branch(branch, err);

    return code < 0 ? code : head_change_run(&h, &target, err);
}
