/* Walks over the keys of a window of a bucket, with all rows of each key. */
#include "object/local/local_int.h"

/* The tags under which a key can have rows, and how many bytes follow the key in such a row's key.
 * An object's key has no NUL byte, and the bytes after it begin with one. So under each tag the
 * rows are in the order of the objects' keys. */
static const struct {
    enum tag tag;
    size_t tail;
} kinds[KEY_WALKS] = {
    {TAG_OBJECT, 0},
    {TAG_VERSION, ROW_VERSION_TAIL},
    {TAG_NULL, 0},
    {TAG_UPLOAD, ROW_UPLOAD_TAIL},
};

/* Appends the smallest row key that is after all rows of `key` under this tag. */
static void append_behind(struct buf *out, const struct local_bucket *b, size_t kind,
                          struct str key)
{
    struct row row;

    /* No object's key is longer than OBJECT_KEY_MAX, so the first bytes of a longer string mark the
     * same place in the order. */
    buf_append_str(out, row_key(&row, b, kinds[kind].tag, str_head(key, OBJECT_KEY_MAX)));
    buf_append_char(out, kinds[kind].tail ? '\1' : '\0');
}

static int key_walk_next(struct key_walk *w, struct err *err)
{
    int code = db_iter_next(w->it, &w->row, &w->value, err);

    w->there = code == 0;
    if (code == 0 && w->row.len <= ROW_BUCKET_LEN + w->tail)
        return err_set(err, ERR_CORRUPT, "the key of a row is too short");
    if (code == 0)
        w->key = str_skip(str_head(w->row, w->row.len - w->tail), ROW_BUCKET_LEN);
    return code == ERR_END ? 0 : code;
}

static int key_walk_open(struct key_walk *w, struct db_view *view, const struct local_bucket *b,
                         size_t kind, const struct key_window *window, struct err *err)
{
    struct row row;
    struct str all = row_key(&row, b, kinds[kind].tag, STR_EMPTY);

    w->tail = kinds[kind].tail;
    if (window->upto.len)
        append_behind(&w->end, b, kind, window->upto);
    else
        db_prefix_end(all, &w->end);
    if (window->after.len && !window->with_after)
        append_behind(&w->start, b, kind, window->after);
    else
        buf_append_str(&w->start, row_key(&row, b, kinds[kind].tag, window->after));
    struct db_range range = {.from = buf_str(&w->start), .to = buf_str(&w->end)};
    int code = db_iter_open(&w->it, view, b->local->rows, &range, err);
    return code < 0 ? code : key_walk_next(w, err);
}

int keys_open(struct keys *k, struct db_view *view, const struct local_bucket *b,
              const struct key_window *window, struct err *err)
{
    int code = 0;

    *k = (struct keys){0};
    if (window->upto.len && str_cmp(window->after, window->upto) >= (window->with_after ? 1 : 0))
        return 0; /* the window is empty */
    for (size_t i = 0; i < KEY_WALKS && code == 0; i++)
        code = key_walk_open(&k->walks[i], view, b, i, window, err);
    return code;
}

void keys_close(struct keys *k)
{
    for (size_t i = 0; i < KEY_WALKS; i++) {
        db_iter_close(k->walks[i].it);
        buf_release(&k->walks[i].start);
        buf_release(&k->walks[i].end);
    }
}

bool keys_peek(const struct keys *k, struct str *key)
{
    bool found = false;

    for (size_t i = 0; i < KEY_WALKS; i++) {
        const struct key_walk *w = &k->walks[i];
        if (!w->there || (found && str_cmp(w->key, *key) >= 0))
            continue;
        *key = w->key;
        found = true;
    }
    return found;
}

int keys_take(struct keys *k, struct str key, key_row_fn *fn, void *ctx, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < KEY_WALKS; i++) {
        struct key_walk *w = &k->walks[i];
        while (code == 0 && w->there && str_eq(w->key, key)) {
            if (fn)
                code = fn(ctx, kinds[i].tag, w->row, w->value, err);
            if (code == 0)
                code = key_walk_next(w, err);
        }
    }
    return code;
}
