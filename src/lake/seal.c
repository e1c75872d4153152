/* Seals a branch: makes its staging token a sealed one and gives the branch a new staging token
 * (docs/lake.md, C1). Also finds out whether a branch's tokens change anything. */
#include "lake/change.h"
#include "lake/read.h"

#include "base/ids.h"

#include <time.h>

void lake_pause_short(void)
{
    struct timespec t = {.tv_nsec = (long)(NS_PER_MS * (1 + random_below(20)))};

    nanosleep(&t, NULL);
}

int lake_token_is_empty(struct lake *l, struct str token, bool *is_empty, struct err *err)
{
    struct kv_range range = {.first_page = 1};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = kv_scan_open(&scan, l->kv, NULL, token, &range, err);

    if (code == 0)
        code = kv_scan_next(scan, &key, &value, err);
    kv_scan_free(scan);
    *is_empty = code == ERR_END;
    return code == ERR_END ? 0 : code;
}

/* Writes the branch's record with a new staging token; the old one becomes the newest sealed
 * token. */
static int seal_write(struct lake *l, struct arena *a, const struct lake_repo *repo,
                      struct lake_branch *b, bool frees, struct err *err)
{
    struct branch_change c = branch_change_of(repo, b, "lake.seal");
    struct lake_branch now;

    c.frees = frees;
    /* The seal need not be durable: if a crash undoes it, the branch has the same objects, and no
     * caller was told of the seal. The next stage or the publish of the commit makes it durable,
     * too. */
    c.later = !frees;
    c.next.staging = lake_new_token(a, repo, b->id);
    c.next.sealed = layers_tokens(a, b, &c.next.sealed_count);
    if (!c.next.sealed)
        return err_code(err, ERR_NO_MEMORY);
    int code = branch_change_write(l, a, &c, &now, err);
    if (code == 0)
        *b = now;
    return code;
}

/* Seals the branch if its staging token has rows. `frees`: the seal may use the room that the
 * key-value store keeps for removals (kv_change.frees). */
static int seal_branch(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct str branch, bool frees, struct lake_repo *repo,
                       struct lake_branch *out, struct err *err)
{
    uint64_t deadline = clock_mono_ms() + LAKE_DEADLINE_MS;
    bool is_empty = false;

    while (clock_mono_ms() < deadline) {
        int code = lake_read_branch(l, NULL, a, r, branch, repo, out, err);
        if (code == 0)
            code = lake_token_is_empty(l, out->staging, &is_empty, err);
        if (code < 0 || is_empty)
            return code;
        code = out->sealed_count < LAKE_SEALED_FULL ? seal_write(l, a, repo, out, frees, err)
                                                    : lake_compact(l, a, repo, branch, err);
        if (code == ERR_AGAIN)
            lake_pause_short();
        else if (code < 0 || out->sealed_count < LAKE_SEALED_FULL)
            return code;
    }
    return err_set(err, ERR_BUSY, "too many tries: the branch changed with every one");
}

int lake_seal(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
              struct lake_repo *repo, struct lake_branch *out, struct err *err)
{
    return seal_branch(l, a, r, branch, false, repo, out, err);
}

int lake_seal_to_reset(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct str branch, struct lake_repo *repo, struct lake_branch *out,
                       struct err *err)
{
    return seal_branch(l, a, r, branch, true, repo, out, err);
}

/* Whether a staged row differs from the record that the tree has at its path. */
static int row_is_effective(struct head_tree *t, struct arena *a, const struct layers_row *row,
                            bool *is_effective, struct err *err)
{
    struct tree_record record;
    int code =
        t->root.len ? tree_get(&t->store, a, t->root, row->path, &record, err) : ERR_NOT_FOUND;

    if (code == ERR_NOT_FOUND)
        *is_effective = row->identity.len > 0;
    else if (code == 0)
        *is_effective = !str_eq(row->identity, record.identity);
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Walks over staged rows until one differs from the tree. *found: there is such a row. */
static int walk_find_effective(struct layers *walk, struct head_tree *t, bool *found,
                               struct err *err)
{
    struct arena work = {0};
    struct layers_row row;
    int code = 0;

    *found = false;
    while (!*found && code == 0 && (code = layers_next(walk, &row, err)) == 0) {
        code = row_is_effective(t, &work, &row, found, err);
        arena_reset(&work);
    }
    arena_release(&work);
    return code == ERR_END ? 0 : code;
}

int lake_is_dirty(struct lake *l, struct arena *a, const struct lake_repo *r,
                  const struct lake_branch *b, bool *is_dirty, struct err *err)
{
    struct layers_options o = {.shows_tombstones = true};
    struct layers *walk = NULL;
    struct head_tree tree;
    int code = head_tree_open(&tree, l, a, r, b->commit_id, err);

    o.tokens = layers_tokens(a, b, &o.token_count);
    if (code == 0 && !o.tokens)
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0)
        code = layers_open(&walk, l, &o, err);
    if (code == 0)
        code = walk_find_effective(walk, &tree, is_dirty, err);
    layers_close(walk);
    head_tree_release(&tree, l);
    return code;
}
