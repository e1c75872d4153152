/* Iterates over the records of a tree. */
#include "lake/tree_spine.h"

struct tree_iter {
    struct tree_spine spine;
    /* true: the spine is at the record that next() will return; false: it is at the record that
     * next() returned last */
    bool moved;
    int code; /* the error that ended the iteration */
    struct err err;
};

int tree_iter_open(struct tree_iter **out, struct tree_store *t, struct str root, struct err *err)
{
    struct tree_iter *it = xzalloc(sizeof(*it));
    int code = tree_spine_open(&it->spine, t, root, err);

    if (code) {
        free(it);
        return code;
    }
    it->moved = true;
    *out = it;
    return 0;
}

static int tree_iter_advance(struct tree_iter *it)
{
    int code = 0;

    if (!it->moved && !it->spine.end)
        code = tree_spine_next(&it->spine, &it->err);
    it->moved = false;
    return code ? code : tree_spine_record(&it->spine, &it->err);
}

int tree_iter_next(struct tree_iter *it, struct tree_record *out, struct err *err)
{
    if (it->code == 0)
        it->code = tree_iter_advance(it);
    if (it->code)
        return err_set(err, it->code, "%s", it->err.text);
    if (it->spine.end)
        return ERR_END;
    *out = it->spine.item.record;
    return 0;
}

void tree_iter_seek(struct tree_iter *it, struct str key)
{
    it->code = tree_spine_seek(&it->spine, key, &it->err);
    it->moved = true;
}

void tree_iter_close(struct tree_iter *it)
{
    if (!it)
        return;
    tree_spine_close(&it->spine);
    free(it);
}
