/* Adds a commit by its record. The record must be exactly what weir itself would have written,
 * because other code relies on ids, parents and generations. */
#include "lake/commit_record.h"

#include "lake/keep.h"
#include "lake/lake_int.h"
#include "lake/names.h"

static int record_check_id(const struct lake_commit *c, struct err *err)
{
    char id[LAKE_ID_LEN + 1];

    if (c->version != 0 && c->version != 1)
        return err_set(err, ERR_INVALID, "a commit has the version 0 or 1");
    if (c->tree.len && !lake_is_commit_id(c->tree))
        return err_set(err, ERR_INVALID, "the id of a tree has 64 hex digits");
    lake_commit_id(id, c);
    return str_eq(str_z(id), c->id)
               ? 0
               : err_set(err, ERR_INVALID, "the id of this commit would be %s", id);
}

static int record_check_parents(struct lake *l, struct arena *a, const struct lake_repo *r,
                                const struct lake_commit *c, struct err *err)
{
    int32_t generation = 1;

    for (size_t i = 0; i < c->parent_count; i++) {
        struct lake_commit parent;
        int code = lake_commit_get(l, a, r, c->parents[i], &parent, err);
        if (code == ERR_NOT_FOUND)
            return err_set(err, ERR_INVALID, "the repository has no commit " STR_FMT,
                           STR_ARG(str_head(c->parents[i], LAKE_ID_LEN)));
        if (code < 0)
            return code;
        if (parent.generation >= generation)
            generation = parent.generation + 1;
    }
    return c->generation == generation
               ? 0
               : err_set(err, ERR_INVALID, "the generation of this commit is %d", (int)generation);
}

/* Checks that the tree exists. A collection removes trees that no commit names. So the tree is
 * checked after the state of the collector was read and was idle, and the write of the commit fails
 * if that state has changed since. */
static int record_check_tree(struct lake *l, struct arena *a, const struct lake_repo *r,
                             struct str tree, struct lake_keep *keep, struct err *err)
{
    struct tree_stats stats;
    struct tree_store store;
    int code = lake_keep_begin(keep, l, a, r, err);

    if (code < 0 || tree.len == 0)
        return code;
    if (!keep->is_idle)
        return err_set(err, ERR_BUSY, "a collection is under way; try again later");
    code = lake_tree_store(l, r, &store, err);
    if (code < 0)
        return code;
    code = tree_stats(&store, tree, &stats, err);
    lake_tree_store_release(l, &store);
    return code == ERR_NOT_FOUND || code == ERR_CORRUPT
               ? err_set(err, ERR_INVALID, "the tree " STR_FMT " cannot be read", STR_ARG(tree))
               : code;
}

/* Tries to write the record once. ERR_AGAIN: the repository's record or the state of the collector
 * has changed, and the caller tries again. */
static int record_try_write(struct lake *l, struct arena *a, const struct lake_repo *r,
                            const struct lake_commit *c, struct err *err)
{
    struct str first = lake_commit_first_parent(c);
    struct buf record = {0};
    struct lake_keep keep;
    struct lake_tx tx;
    size_t failed = 0, commit_at;
    int code = record_check_tree(l, a, r, c->tree, &keep, err);

    if (code < 0)
        return code;
    lake_commit_write(&record, c);
    lake_tx_init(&tx, a);
    lake_tx_check_repo(&tx, r);
    lake_tx_keep_state(&tx, r, &keep);
    commit_at = tx.count;
    lake_tx_put_if(&tx, lake_key_commit(a, r->partition, c->id), lake_tx_record(&tx, &record),
                   KV_ABSENT, STR_EMPTY);
    if (first.len)
        lake_tx_put(&tx, lake_key_first(a, r->partition, first), STR(""));
    code = lake_tx_write(l, &tx, &failed, err);
    if (code != ERR_PRECONDITION)
        return code;
    return failed == commit_at ? err_set(err, ERR_EXISTS, "commit already exists: not unique")
                               : ERR_AGAIN;
}

static int record_write_new(struct lake *l, struct arena *a, const struct lake_repo *r,
                            const struct lake_commit *c, bool force, struct err *err)
{
    struct lake_repo now = *r;
    int code = ERR_AGAIN;

    for (unsigned i = 0; i < LAKE_HEAD_TRIES && code == ERR_AGAIN; i++) {
        code = record_try_write(l, a, &now, c, err);
        if (code != ERR_AGAIN)
            return code;
        code = lake_repo_again(l, a, r, &now, err);
        if (code == 0)
            code = lake_check_writable(&now, force, err);
        code = code == 0 ? ERR_AGAIN : code;
    }
    return code == ERR_AGAIN ? err_code(err, ERR_BUSY) : code;
}

int lake_commit_add_record(struct lake *l, struct arena *a, const struct lake_repo *r,
                           const struct lake_commit *c, bool force, struct err *err)
{
    int code = lake_check_writable(r, force, err);

    if (code == 0)
        code = lake_check_message(c->message, err);
    if (code == 0)
        code = lake_check_metadata(&c->metadata, err);
    if (code == 0)
        code = record_check_id(c, err);
    if (code == 0)
        code = record_check_parents(l, a, r, c, err);
    return code == 0 ? record_write_new(l, a, r, c, force, err) : code;
}
