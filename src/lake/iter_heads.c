/* Branches by the id of their head. There is no index of heads, so all branches are read and
 * sorted. */
#include "lake/iter_int.h"

#include "base/vec.h"

struct head {
    struct str commit_id, name, record; /* all in the iterator's `records` */
};

struct head_iter {
    struct lake_iter iter;
    struct arena records; /* limited to lake.heads_bytes, with the items */
    VEC(struct head) heads;
    size_t at;
    struct lake_branch branch;
};

static struct head_iter *head_iter_of(struct lake_iter *it)
{
    return container_of(it, struct head_iter, iter);
}

static int head_iter_next(struct lake_iter *iter, struct lake_item *out, struct err *err)
{
    struct head_iter *it = head_iter_of(iter);

    if (it->at == it->heads.len)
        return ERR_END;
    const struct head *h = &it->heads.items[it->at++];
    out->id = h->commit_id;
    out->branch = &it->branch;
    return lake_branch_read(&it->branch, &iter->arena, h->record, err);
}

static void head_iter_seek(struct lake_iter *iter, struct str id)
{
    struct head_iter *it = head_iter_of(iter);
    size_t from = 0, to = it->heads.len;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (str_cmp(it->heads.items[middle].commit_id, id) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    it->at = from;
}

static void head_iter_close(struct lake_iter *iter)
{
    struct head_iter *it = head_iter_of(iter);

    arena_release(&it->records);
    vec_release(&it->heads);
}

static const struct lake_iter_ops head_iter_ops = {head_iter_next, head_iter_seek, head_iter_close};

/* --- reading and sorting --- */

static int head_add(struct head_iter *it, struct str value, struct err *err)
{
    struct str record = arena_str(&it->records, value);
    struct lake_branch b;
    int code = 0;

    size_t max = it->iter.lake->heads_bytes;

    if (!record.p || it->records.used + (it->heads.len + 1) * sizeof(struct head) > max)
        return err_set(err, ERR_NO_MEMORY, "the branches need more than %zu bytes to be sorted",
                       max);
    code = lake_branch_read(&b, &it->iter.arena, record, err);
    if (code == 0)
        vec_push(&it->heads, ((struct head){b.commit_id, b.id, record}));
    arena_reset(&it->iter.arena);
    return code;
}

static int head_read_all(struct head_iter *it, const struct lake_repo *r, struct err *err)
{
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = lake_iter_begin(&it->iter, r, err);

    if (code == 0)
        code = lake_iter_scan(&scan, &it->iter, r->partition, "branches", err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0)
        code = head_add(it, value, err);
    kv_scan_free(scan);
    kv_view_close(it->iter.lake->kv, it->iter.view); /* all rows have been read */
    it->iter.view = NULL;
    return code == ERR_END ? 0 : code;
}

static int head_compare(const void *a, const void *b)
{
    const struct head *x = a, *y = b;
    int order = str_cmp(x->commit_id, y->commit_id);

    return order ? order : str_cmp(x->name, y->name);
}

int lake_iter_heads(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                    struct err *err)
{
    struct head_iter *it = xzalloc(sizeof(*it));

    it->iter.ops = &head_iter_ops;
    it->iter.lake = l;
    arena_init(&it->records, l->heads_bytes);
    int code = head_read_all(it, r, err);
    if (code == 0 && it->heads.len)
        qsort(it->heads.items, it->heads.len, sizeof(struct head), head_compare);
    return lake_iter_opened(out, &it->iter, code);
}
