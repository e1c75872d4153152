/* Iterators: the functions that all kinds share, and the kinds that are one scan of rows. */
#include "lake/iter_int.h"

#include <stdlib.h>

int lake_iter_next(struct lake_iter *it, struct lake_item *out, struct err *err)
{
    if (it->closed)
        return err_set(err, ERR_CLOSED, "the iterator was closed");
    arena_reset(&it->arena);
    *out = (struct lake_item){0};
    return it->ops->next(it, out, err);
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

static int row_iter_open(struct lake_iter **out, struct lake *l, struct str partition,
                         const struct row_kind *kind, bool show_hidden, struct err *err)
{
    struct row_iter *it = xzalloc(sizeof(*it));

    it->iter.ops = &row_iter_ops;
    it->iter.lake = l;
    it->kind = kind;
    it->show_hidden = show_hidden;
    int code = lake_iter_scan(&it->scan, &it->iter, partition, kind->kind, err);
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
    return row_iter_open(out, l, LAKE_PARTITION, &repo_rows, false, err);
}

int lake_iter_branches(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                       bool show_hidden, struct err *err)
{
    return row_iter_open(out, l, r->partition, &branch_rows, show_hidden, err);
}

int lake_iter_tags(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                   struct err *err)
{
    return row_iter_open(out, l, r->partition, &tag_rows, false, err);
}

int lake_iter_commits(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                      bool only_leaves, struct err *err)
{
    return only_leaves ? lake_iter_leaves(out, l, r, err)
                       : row_iter_open(out, l, r->partition, &commit_rows, false, err);
}

int lake_iter_staged(struct lake_iter **out, struct lake *l, struct str token, struct err *err)
{
    return row_iter_open(out, l, token, &staged_rows, false, err);
}
