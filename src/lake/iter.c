/* Iterators: the functions that all kinds share, and the kinds that are one scan of rows. */
#include "lake/iter_int.h"

#include <stdlib.h>

int lake_iter_next(struct lake_iter *it, struct lake_item *out, struct err *err)
{
    struct lake_repo now;

    if (it->closed)
        return err_set(err, ERR_CLOSED, "the iterator was closed");
    arena_reset(&it->arena);
    *out = (struct lake_item){0};
    int code = it->ops->next(it, out, err);
    if (code != ERR_END || it->repo.id.len == 0)
        return code;
    code = lake_repo_again(it->lake, &it->arena, &it->repo, &now, err);
    return code < 0 ? code : ERR_END;
}

void lake_iter_seek(struct lake_iter *it, struct str id)
{
    if (!it->closed)
        it->ops->seek(it, id);
}

void lake_iter_close(struct lake_iter *it)
{
    if (it->closed)
        return;
    it->ops->close(it);
    kv_view_close(it->lake->kv, it->view);
    arena_release(&it->arena);
    arena_release(&it->kept);
    it->closed = true;
}

void lake_iter_free(struct lake_iter *it)
{
    if (!it)
        return;
    lake_iter_close(it);
    free(it);
}

int lake_iter_opened(struct lake_iter **out, struct lake_iter *it, int code)
{
    if (code == 0)
        *out = it;
    else
        lake_iter_free(it);
    return code;
}

int lake_iter_begin(struct lake_iter *it, const struct lake_repo *r, struct err *err)
{
    struct kv_name name = lake_key_repo(&it->arena, r->id);
    struct kv_value value = {0};
    int code = kv_view_open(&it->view, it->lake->kv, err);

    if (code == 0)
        code = kv_get_many(it->lake->kv, it->view, &it->arena, &name, 1, &value, err);
    if (code == 0)
        code = lake_check_repo_row(&it->arena, r, &value, err);
    if (code == 0 && !(it->lake->kv->can & KV_MOMENTS)) {
        it->repo.token = arena_str(&it->kept, r->token);
        it->repo.id = arena_str(&it->kept, r->id);
    }
    return code;
}

int lake_iter_scan(struct kv_scan **out, struct lake_iter *it, struct str partition,
                   const char *kind, struct err *err)
{
    struct lake_page all = {.limit = LAKE_LIST_MAX};
    int code = it->view ? 0 : kv_view_open(&it->view, it->lake->kv, err);

    return code < 0
               ? code
               : lake_rows_open(out, it->lake, it->view, &it->arena, partition, kind, &all, err);
}

void lake_iter_scan_seek(struct kv_scan *scan, const char *kind, struct str name)
{
    struct arena a = {0};

    kv_scan_seek(scan, lake_key_in(&a, STR_EMPTY, kind, name).key);
    arena_release(&a);
}

/* --- one scan of rows --- */

struct row_iter;

struct row_kind {
    const char *kind; /* the rows are "<kind>/<id>" */
    int (*read)(struct row_iter *it, struct str record, struct lake_item *out, struct err *err);
};

struct row_iter {
    struct lake_iter iter;
    const struct row_kind *kind;
    struct kv_scan *scan;
    bool show_hidden;
    union { /* the present record */
        struct lake_repo repo;
        struct lake_branch branch;
        struct lake_tag tag;
        struct lake_commit commit;
        struct lake_staged staged;
    };
};

static struct row_iter *row_iter_of(struct lake_iter *it)
{
    return container_of(it, struct row_iter, iter);
}

/* Gives the next item. Skips the rows for which the kind's read() returns ERR_AGAIN, which means
 * that the row is not part of the iteration. */
static int row_iter_next(struct lake_iter *iter, struct lake_item *out, struct err *err)
{
    struct row_iter *it = row_iter_of(iter);
    struct str key, record;
    int code;

    do {
        code = kv_scan_next(it->scan, &key, &record, err);
        if (code == 0) {
            out->id = str_skip(key, strlen(it->kind->kind) + 1);
            code = it->kind->read(it, record, out, err);
        }
    } while (code == ERR_AGAIN);
    return code;
}

static void row_iter_seek(struct lake_iter *iter, struct str id)
{
    struct row_iter *it = row_iter_of(iter);

    lake_iter_scan_seek(it->scan, it->kind->kind, id);
}

static void row_iter_close(struct lake_iter *iter)
{
    kv_scan_free(row_iter_of(iter)->scan);
}

static const struct lake_iter_ops row_iter_ops = {row_iter_next, row_iter_seek, row_iter_close};

static struct row_iter *row_iter_new(struct lake *l, const struct row_kind *kind)
{
    struct row_iter *it = xzalloc(sizeof(*it));

    it->iter.ops = &row_iter_ops;
    it->iter.lake = l;
    it->kind = kind;
    return it;
}

/* Opens an iterator over rows of a partition that belongs to no repository, or to a token. */
static int row_iter_open(struct lake_iter **out, struct lake *l, struct str partition,
                         const struct row_kind *kind, struct err *err)
{
    struct row_iter *it = row_iter_new(l, kind);
    int code = lake_iter_scan(&it->scan, &it->iter, partition, kind->kind, err);

    return lake_iter_opened(out, &it->iter, code);
}

/* Opens an iterator over rows of a repository. */
static int row_iter_open_in(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                            const struct row_kind *kind, bool show_hidden, struct err *err)
{
    struct row_iter *it = row_iter_new(l, kind);
    int code = lake_iter_begin(&it->iter, r, err);

    it->show_hidden = show_hidden;
    if (code == 0)
        code = lake_iter_scan(&it->scan, &it->iter, r->partition, kind->kind, err);
    return lake_iter_opened(out, &it->iter, code);
}

/* --- the kinds --- */

static int row_read_repo(struct row_iter *it, struct str record, struct lake_item *out,
                         struct err *err)
{
    out->repo = &it->repo;
    return lake_repo_read(&it->repo, &it->iter.arena, record, err);
}

static int row_read_branch(struct row_iter *it, struct str record, struct lake_item *out,
                           struct err *err)
{
    int code = lake_branch_read(&it->branch, &it->iter.arena, record, err);

    out->branch = &it->branch;
    return code == 0 && it->branch.hidden && !it->show_hidden ? ERR_AGAIN : code;
}

static int row_read_tag(struct row_iter *it, struct str record, struct lake_item *out,
                        struct err *err)
{
    out->tag = &it->tag;
    return lake_tag_read(&it->tag, record, err);
}

static int row_read_commit(struct row_iter *it, struct str record, struct lake_item *out,
                           struct err *err)
{
    out->commit = &it->commit;
    return lake_commit_read(&it->commit, &it->iter.arena, record, err);
}

static int row_read_staged(struct row_iter *it, struct str record, struct lake_item *out,
                           struct err *err)
{
    out->staged = &it->staged;
    return lake_staged_read(&it->staged, record, err);
}

static const struct row_kind repo_rows = {"repos", row_read_repo};
static const struct row_kind branch_rows = {"branches", row_read_branch};
static const struct row_kind tag_rows = {"tags", row_read_tag};
static const struct row_kind commit_rows = {"commits", row_read_commit};
static const struct row_kind staged_rows = {"key", row_read_staged};

int lake_iter_repos(struct lake_iter **out, struct lake *l, struct err *err)
{
    return row_iter_open(out, l, LAKE_PARTITION, &repo_rows, err);
}

int lake_iter_branches(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                       bool show_hidden, struct err *err)
{
    return row_iter_open_in(out, l, r, &branch_rows, show_hidden, err);
}

int lake_iter_tags(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                   struct err *err)
{
    return row_iter_open_in(out, l, r, &tag_rows, false, err);
}

int lake_iter_commits(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                      bool only_leaves, struct err *err)
{
    return only_leaves ? lake_iter_leaves(out, l, r, err)
                       : row_iter_open_in(out, l, r, &commit_rows, false, err);
}

int lake_iter_staged(struct lake_iter **out, struct lake *l, struct str token, struct err *err)
{
    return row_iter_open(out, l, token, &staged_rows, err);
}
