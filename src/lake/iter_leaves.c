/* Lists the commits that are not the first parent of another commit. Each commit that is a first
 * parent has a row `firsts/<id>`, its mark. The rows `commits/<id>` and `firsts/<id>` are both in
 * the order of commit ids, so one pass over both finds the commits without a mark, and nothing is
 * held in memory. */
#include "lake/iter_int.h"

#define LEAF_COMMITS "commits"
#define LEAF_MARKS   "firsts"

struct leaf_iter {
    struct lake_iter iter;
    struct kv_scan *commits, *marks;
    struct buf mark; /* id of the mark that was read last; empty: none was read yet */
    bool no_marks;   /* the marks have ended */
    struct lake_commit commit;
};

static struct leaf_iter *leaf_iter_of(struct lake_iter *it)
{
    return container_of(it, struct leaf_iter, iter);
}

/* Sets *out to whether the commit has a mark. Reads marks until the mark is equal to or greater
 * than the id. */
static int leaf_is_marked(struct leaf_iter *it, struct str id, bool *out, struct err *err)
{
    struct str key, value;
    int code = 0;

    while (code == 0 && !it->no_marks && str_cmp(buf_str(&it->mark), id) < 0) {
        code = kv_scan_next(it->marks, &key, &value, err);
        it->no_marks = code == ERR_END;
        code = it->no_marks ? 0 : code;
        if (code == 0 && !it->no_marks) {
            buf_reset(&it->mark);
            buf_append_str(&it->mark, str_skip(key, sizeof(LEAF_MARKS)));
        }
    }
    *out = !it->no_marks && str_eq(buf_str(&it->mark), id);
    return code;
}

static int leaf_iter_next(struct lake_iter *iter, struct lake_item *out, struct err *err)
{
    struct leaf_iter *it = leaf_iter_of(iter);
    struct str key, record;
    bool marked;
    int code;

    do {
        marked = false;
        code = kv_scan_next(it->commits, &key, &record, err);
        if (code == 0) {
            out->id = str_skip(key, sizeof(LEAF_COMMITS));
            code = leaf_is_marked(it, out->id, &marked, err);
        }
    } while (code == 0 && marked);
    out->commit = &it->commit;
    return code < 0 ? code : lake_commit_read(&it->commit, &iter->arena, record, err);
}

static void leaf_iter_seek(struct lake_iter *iter, struct str id)
{
    struct leaf_iter *it = leaf_iter_of(iter);

    buf_reset(&it->mark);
    it->no_marks = false;
    lake_iter_scan_seek(it->commits, LEAF_COMMITS, id);
    lake_iter_scan_seek(it->marks, LEAF_MARKS, id);
}

static void leaf_iter_close(struct lake_iter *iter)
{
    struct leaf_iter *it = leaf_iter_of(iter);

    kv_scan_free(it->commits);
    kv_scan_free(it->marks);
    buf_release(&it->mark);
}

static const struct lake_iter_ops leaf_iter_ops = {leaf_iter_next, leaf_iter_seek, leaf_iter_close};

int lake_iter_leaves(struct lake_iter **out, struct lake *l, const struct lake_repo *r,
                     struct err *err)
{
    struct leaf_iter *it = xzalloc(sizeof(*it));

    it->iter.ops = &leaf_iter_ops;
    it->iter.lake = l;
    int code = lake_iter_begin(&it->iter, r, err);
    if (code == 0)
        code = lake_iter_scan(&it->commits, &it->iter, r->partition, LEAF_COMMITS, err);
    if (code == 0)
        code = lake_iter_scan(&it->marks, &it->iter, r->partition, LEAF_MARKS, err);
    return lake_iter_opened(out, &it->iter, code);
}
