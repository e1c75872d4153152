/* Removes garbage, that is, rows of keys that do not belong to the shard; and finds keys with too
 * many rows to move (docs/local-storage.md, "Shards"). */
#include "object/local/local_adopt.h"

#include "object/local/local_int.h"

/* A change ends when it has removed this many rows. Each part of an object counts as a row. */
enum { GARBAGE_ROWS = 4000 };

/* --- removing --- */

struct garbage_change {
    struct row_change change;
    struct key_window window;
    size_t limit;
    size_t keys, rows;
    uint64_t versions;
    bool more;
};

/* Drops the references of a version to bytes, and its share of the bucket's counts. If the record
 * cannot be read, nothing is counted, and the bytes stay. */
static int garbage_version(struct garbage_change *p, enum tag tag, struct str key, struct str value,
                           struct err *err)
{
    struct row_change *c = &p->change;
    struct object_record r;
    struct row row;

    if (record_get(value, &r, NULL) < 0)
        return 0;
    p->rows += r.part_count;
    record_count(&c->counted, &r, tag == TAG_OBJECT, -1);
    if (tag == TAG_VERSION && r.is_null)
        db_tx_delete(c->tx, c->b->local->rows, row_key(&row, c->b, TAG_NULL, key));
    return change_free(c, &r, err);
}

static int garbage_upload(struct garbage_change *p, struct str row, struct err *err)
{
    unsigned char id[UPLOAD_ID_LEN];

    memcpy(id, row.p + row.len - UPLOAD_ID_LEN, UPLOAD_ID_LEN);
    p->rows += OBJECT_MAX_PARTS / 40; /* an estimate, because the number of parts is not known */
    return upload_drop_parts(&p->change, id, NULL, err);
}

/* Removes one row. ERR_AGAIN: the change is large enough, and the row stays. */
static int garbage_row(void *ctx, enum tag tag, struct str row, struct str value, struct err *err)
{
    struct garbage_change *p = ctx;
    int code = 0;

    if (p->rows >= GARBAGE_ROWS)
        return err_code(err, ERR_AGAIN);
    p->rows++;
    p->versions += tag == TAG_OBJECT || tag == TAG_VERSION;
    if (tag == TAG_OBJECT)
        code = garbage_version(p, tag, str_skip(row, ROW_BUCKET_LEN), value, err);
    else if (tag == TAG_VERSION)
        code = garbage_version(p, tag,
                               str_skip(str_head(row, row.len - ROW_VERSION_TAIL), ROW_BUCKET_LEN),
                               value, err);
    else if (tag == TAG_UPLOAD)
        code = garbage_upload(p, row, err);
    db_tx_delete(p->change.tx, p->change.b->local->rows, row);
    return code;
}

static int garbage_run(struct row_change *c, struct err *err)
{
    struct garbage_change *p = container_of(c, struct garbage_change, change);
    struct buf copy = BUF_INIT(0);
    struct keys k;
    struct str key;

    p->keys = p->rows = 0;
    p->versions = 0;
    int code = keys_open(&k, c->view, c->b, &p->window, err);
    while (code == 0 && (p->more = keys_peek(&k, &key)) && p->keys < p->limit) {
        buf_reset(&copy);
        buf_append_str(&copy, key);
        code = keys_take(&k, buf_str(&copy), garbage_row, p, err);
        p->keys++;
    }
    keys_close(&k);
    buf_release(&copy);
    if (code == ERR_AGAIN && p->rows >= GARBAGE_ROWS)
        code = 0; /* p->more is true, so the caller calls again */
    return code;
}

/* Whether the window has any row. */
static int window_has_rows(struct local_bucket *b, const struct key_window *w, bool *has,
                           struct err *err)
{
    struct db_view *view = NULL;
    struct keys k;
    struct str key;
    int code = db_snapshot(&view, b->local->db, err);

    if (code < 0)
        return code;
    code = keys_open(&k, view, b, w, err);
    *has = code == 0 && keys_peek(&k, &key);
    keys_close(&k);
    db_snapshot_free(view);
    return code;
}

int local_remove_rows(struct bucket *b, struct str after, struct str upto, size_t limit, bool *more,
                      uint64_t *removed, struct err *err)
{
    struct garbage_change p = {
        .change = {.b = local_bucket_of(b), .frees = true, .fn = garbage_run},
        .window = {after, upto},
        .limit = size_min(limit, LOCAL_ADOPT_MAX)};
    bool has = false;
    int code = window_has_rows(p.change.b, &p.window, &has, err);

    if (code == 0 && has)
        code = change_apply(&p.change, err);
    if (code == 0) {
        *more = has && p.more;
        *removed += p.versions;
    }
    return code;
}

/* --- keys with too many rows --- */

struct large_key {
    size_t bytes, most;
};

/* Adds the bytes that adopt_row() would write for a row. ERR_TOO_LARGE: the limit is exceeded. */
static int large_row(void *ctx, enum tag tag, struct str row, struct str value, struct err *err)
{
    struct large_key *x = ctx;

    (void)tag;
    x->bytes += 2 * row.len + value.len;
    return x->bytes > x->most ? err_code(err, ERR_TOO_LARGE) : 0;
}

static int large_find(struct keys *k, size_t most, struct buf *key, struct buf *before,
                      struct err *err)
{
    struct str next;
    int code = 0;

    while (code == 0 && keys_peek(k, &next)) {
        struct large_key x = {.most = most};
        buf_reset(before);
        buf_append_str(before, buf_str(key));
        buf_reset(key);
        buf_append_str(key, next);
        code = keys_take(k, buf_str(key), large_row, &x, err);
    }
    return code;
}

int local_find_large(struct bucket *bucket, struct str after, struct str upto, size_t most,
                     struct arena *a, struct str *large, struct str *before, struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct key_window w = {after, upto};
    struct buf key = BUF_INIT(0), last = BUF_INIT(0);
    struct db_view *view = NULL;
    struct keys k;
    int code = db_snapshot(&view, b->local->db, err);

    if (code < 0)
        return code;
    code = keys_open(&k, view, b, &w, err);
    if (code == 0)
        code = large_find(&k, most, &key, &last, err);
    keys_close(&k);
    db_snapshot_free(view);
    bool found = code == ERR_TOO_LARGE;
    *large = found ? arena_str(a, buf_str(&key)) : STR_EMPTY;
    *before = found ? arena_str(a, buf_str(&last)) : STR_EMPTY;
    buf_release(&key);
    buf_release(&last);
    if (found)
        code = 0;
    return code == 0 && arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}
