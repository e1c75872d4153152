/* Writes changes of a branch's record, each in one atomic write. */
#include "lake/change.h"
#include "lake/keep.h"

struct branch_change branch_change_of(const struct lake_repo *r, const struct lake_branch *b,
                                      const char *step)
{
    return (struct branch_change){.step = step, .repo = r, .old = b, .next = *b};
}

static bool branch_has_token(const struct lake_branch *b, struct str token)
{
    for (size_t i = 0; i < b->sealed_count; i++)
        if (str_eq(b->sealed[i], token))
            return true;
    return str_eq(b->staging, token);
}

/* Puts the tokens that the change removes from the branch on the cleanup list (lake/clean.h). */
static void change_drop_tokens(struct lake_tx *tx, const struct branch_change *c)
{
    if (!branch_has_token(&c->next, c->old->staging))
        lake_tx_drop_token(tx, c->old->staging);
    for (size_t i = 0; i < c->old->sealed_count; i++)
        if (!branch_has_token(&c->next, c->old->sealed[i]))
            lake_tx_drop_token(tx, c->old->sealed[i]);
}

static void change_fill(struct lake_tx *tx, struct branch_change *c)
{
    lake_tx_check_repo(tx, c->repo);
    lake_tx_put_branch(tx, c->repo, &c->next);
    if (c->commit)
        lake_tx_put_commit(tx, c->repo, c->commit);
    if (c->draft && c->draft->token.len)
        lake_tx_remove(tx, lake_key_cleanup(tx->arena, c->draft->token), KV_SAME,
                       c->draft->row.stamp);
    change_drop_tokens(tx, c);
    if (c->also)
        lake_tx_put_if(tx, c->also->name, c->also->value, c->also->when, c->also->stamp);
}

/* Adds the check and the marks that protect the new content from a collection (lake/keep.h).
 * Refuses an old tree while a collection is under way: perhaps no commit names the tree, so the
 * collection may be removing it. */
static int change_keep_source(struct lake_tx *tx, struct lake *l, const struct branch_change *c,
                              struct err *err)
{
    struct lake_keep keep = {0};
    int code = 0;

    if (c->kept.len == 0 && !c->has_old_tree && !c->built)
        return 0;
    if (c->built)
        keep = *c->built;
    else
        code = lake_keep_begin(&keep, l, tx->arena, c->repo, err);
    if (code == 0 && c->has_old_tree && !keep.is_idle)
        code = err_set(err, ERR_BUSY, "a collection is under way; try again later");
    if (code < 0)
        return code;
    lake_tx_keep_state(tx, c->repo, &keep);
    if (c->built && c->commit) /* a collection may have listed the commits before this write */
        code = (c->has_old_tree ? lake_tx_keep_commit : lake_tx_keep_new)(tx, l, c->repo, &keep,
                                                                          c->commit->id, err);
    return code < 0 ? code : lake_tx_keep_commit(tx, l, c->repo, &keep, c->kept, err);
}

/* Finds out whether a write whose answer was lost was made, by reading the branch's record. The
 * record has the write's revision and tokens, so no other change would write the same bytes. */
static int change_find_out(struct lake *l, struct arena *a, const struct kv_change *put,
                           struct err *err)
{
    struct err unknown = {0};
    struct kv_value now;
    int code = kv_get(l->kv, NULL, a, put->name, &now, &unknown);

    return code == 0 && str_eq(now.bytes, put->value) ? 0 : err->code;
}

/* Refuses a record that is larger than readers accept. */
static int change_check_size(const struct branch_change *c, struct err *err)
{
    return c->next.sealed_count <= LAKE_SEALED_MAX
               ? 0
               : err_set(err, ERR_BUSY, "the branch has %d sealed tokens; try again later",
                         LAKE_SEALED_MAX);
}

int branch_change_write(struct lake *l, struct arena *a, struct branch_change *c,
                        struct lake_branch *now, struct err *err)
{
    struct kv_name names[] = {lake_key_repo(a, c->repo->id),
                              lake_key_branch(a, c->repo->partition, c->old->id)};
    struct kv_value values[ARRAY_SIZE(names)];
    struct lake_repo repo;
    struct lake_tx tx;

    lake_tx_init(&tx, a);
    tx.frees = c->frees;
    tx.later = c->later;
    change_fill(&tx, c);
    int code = change_check_size(c, err);
    if (code == 0)
        code = change_keep_source(&tx, l, c, err);
    if (code < 0)
        return code;
    lake_step_begin(c->step);
    code = lake_tx_write_get(l, &tx, names, now ? ARRAY_SIZE(names) : 0, values, err);
    lake_step_end(c->step);
    if (code == ERR_PRECONDITION)
        return ERR_AGAIN;
    if (code == ERR_TIMEOUT) {
        code = change_find_out(l, a, &tx.changes[1], err);
        return code == 0 && now ? lake_read_branch(l, NULL, a, c->repo, c->old->id, &repo, now, err)
                                : code;
    }
    return code == 0 && now ? lake_decode_branch(a, c->repo, values, &repo, now, err) : code;
}

int lake_take_turn(struct lake *l, const struct lake_repo *r, struct str branch,
                   struct commit_turn **out, struct err *err)
{
    *out = commit_turn_take(l->queue, r->partition, branch, LAKE_DEADLINE_MS);
    return *out ? 0
                : err_set(err, ERR_BUSY,
                          "too many changes wait for hooks of other changes; try again later");
}
