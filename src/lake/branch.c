/* Makes, finds, lists and deletes branches. */
#include "lake/hooks.h"
#include "lake/lake_int.h"
#include "lake/names.h"

int lake_branch_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                    struct lake_branch *out, struct err *err)
{
    struct lake_repo now;
    int code = lake_check_branch(name, err);

    return code < 0 ? code : lake_read_branch(l, NULL, a, r, name, &now, out, err);
}

/* --- making --- */

/* Puts the record of a new branch, on the condition that there is none of this name. */
static int branch_write_new(struct lake *l, struct arena *a, const struct lake_repo *r,
                            struct lake_branch *b, struct err *err)
{
    struct buf record = {0};

    lake_branch_write(&record, b);
    b->stamp = arena_str(a, buf_str(&record));
    int code = buf_error(&record);
    buf_release(&record);
    if (code < 0)
        return err_code(err, code);
    code =
        lake_put_ref(l, a, r, lake_key_branch(a, r->partition, b->id), b->stamp, b->commit_id, err);
    return code == ERR_EXISTS ? err_set(err, code, "branch already exists: not unique") : code;
}

int lake_branch_create(struct lake *l, struct arena *a, const struct lake_repo *r,
                       const struct lake_branch_options *o, struct lake_branch *out,
                       struct err *err)
{
    struct lake_ref source;
    int code = lake_check_branch(o->name, err);

    if (code == 0)
        code = lake_check_writable(r, o->force, err);
    if (code == 0)
        code = lake_ref_resolve(l, a, r, o->source, &source, err);
    if (code == 0 && source.explicit_staged)
        code = err_set(err, ERR_INVALID,
                       "a branch begins at a commit; '" STR_FMT "' has uncommitted changes",
                       STR_ARG(o->source));
    if (code < 0)
        return code;
    *out = (struct lake_branch){.id = o->name,
                                .commit_id = source.commit_id,
                                .staging = lake_new_token(a, r, o->name),
                                .hidden = o->hidden,
                                .revision = 1,
                                .epoch = lake_new_epoch()};
    struct lake_hook_call call = {.event = LAKE_ON_CREATE_BRANCH,
                                  .repo = r,
                                  .ref = o->name,
                                  .source = o->source,
                                  .commit_id = out->commit_id};
    code = lake_hook_pre(l, a, &call, err);
    if (code == 0)
        code = branch_write_new(l, a, r, out, err);
    if (code == 0)
        lake_hook_post(l, &call);
    return code;
}

/* --- listing --- */

/* Reads a branch from its row. *ctx says whether hidden branches are shown. */
static int branch_row(void *item, void *ctx, struct arena *a, struct str record, struct err *err)
{
    struct lake_branch *b = item;
    const bool *show_hidden = ctx;
    int code = lake_branch_read(b, a, record, err);

    b->stamp = record;
    return code == 0 && b->hidden && !*show_hidden ? ERR_AGAIN : code;
}

int lake_branch_list(struct lake *l, struct arena *a, const struct lake_repo *r,
                     const struct lake_page *p, bool show_hidden, struct lake_branch **out,
                     size_t *count, bool *more, struct err *err)
{
    struct lake_rows rows = {r, r->partition, "branches", sizeof(**out), branch_row, &show_hidden};
    void *items = NULL;
    int code = lake_rows_page(l, a, &rows, p, &items, count, more, err);

    *out = items;
    return code;
}

/* --- deleting --- */

/* Removes the branch's record and puts its tokens on the cleanup list (lake/clean.h), in one
 * write. */
static int branch_remove(struct lake *l, struct arena *a, const struct lake_repo *r,
                         const struct lake_branch *b, struct err *err)
{
    struct lake_tx tx;

    lake_tx_init(&tx, a);
    lake_tx_check_repo(&tx, r);
    lake_tx_remove(&tx, lake_key_branch(a, r->partition, b->id), KV_SAME, b->stamp);
    lake_tx_drop_token(&tx, b->staging);
    for (size_t i = 0; i < b->sealed_count; i++)
        lake_tx_drop_token(&tx, b->sealed[i]);
    lake_step_begin("lake.delete_branch");
    int code = lake_tx_write(l, &tx, NULL, err);
    lake_step_end("lake.delete_branch");
    return code;
}

/* Reads the branch and checks whether it may be deleted. */
static int branch_read_to_remove(struct lake *l, struct arena *a, const struct lake_repo *r,
                                 struct str name, bool force, struct lake_repo *now,
                                 struct lake_branch *b, struct err *err)
{
    int code = lake_read_branch(l, NULL, a, r, name, now, b, err);

    return code < 0 ? code : lake_check_writable(now, force, err);
}

int lake_branch_delete(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                       bool force, struct err *err)
{
    struct lake_hook_call call = {.event = LAKE_ON_DELETE_BRANCH, .ref = name};
    struct lake_repo now = {0};
    struct lake_branch b = {0};
    int code = lake_check_branch(name, err);

    if (code == 0 && str_eq(name, r->default_branch))
        code = err_set(err, ERR_DENIED, "cannot delete repository default branch");
    if (code == 0)
        code = branch_read_to_remove(l, a, r, name, force, &now, &b, err);
    call.repo = &now;
    call.commit_id = b.commit_id;
    if (code == 0)
        code = lake_hook_pre(l, a, &call, err);
    if (code < 0)
        return code;
    while ((code = branch_remove(l, a, &now, &b, err)) == ERR_PRECONDITION) {
        code = branch_read_to_remove(l, a, r, name, force, &now, &b, err);
        if (code < 0)
            return code;
    }
    if (code < 0)
        return code;
    lake_cleaner_wake(l);
    lake_hook_post(l, &call);
    return 0;
}
