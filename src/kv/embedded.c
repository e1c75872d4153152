/* The embedded driver: rows of a family of db/. docs/kv.md has their layout.
 *
 * The row of (partition, key) has the database key u16be(length of the partition), partition, key.
 * So two different names never have the same database key, and the rows of a partition are one
 * range in the order of their keys. */
#include "base/bytes.h"
#include "db/db.h"
#include "kv/kv_int.h"

#include <stdlib.h>

struct embedded_kv {
    struct kv kv;
    struct db *db; /* borrowed */
    struct db_cf *rows;
};

struct embedded_rows { /* a scan */
    struct kv_scan scan;
    struct db_iter *it;  /* NULL: closed */
    struct buf from, to; /* bounds of the iterator */
    size_t partition;    /* length in bytes of a database key without the row's key */
};

enum { HEAD_BYTES = 2, ROW_KEY_MAX = HEAD_BYTES + KV_PARTITION_MAX + KV_KEY_MAX + 1 };

static struct embedded_kv *embedded_of(struct kv *kv)
{
    return container_of(kv, struct embedded_kv, kv);
}

static size_t row_key_len(const struct kv_name *name)
{
    return HEAD_BYTES + name->partition.len + name->key.len;
}

/* Writes the database key of the name to `to`, which has room for ROW_KEY_MAX bytes. */
static struct str row_key_write(char *to, const struct kv_name *name)
{
    char *at = be16_write(to, (uint16_t)name->partition.len);

    memcpy(at, name->partition.p, name->partition.len);
    if (name->key.len > 0)
        memcpy(at + name->partition.len, name->key.p, name->key.len);
    return str_n(to, row_key_len(name));
}

/* --- reading --- */

/* Opens a view, which is a snapshot of db/. */
static int embedded_view_open(struct kv_view **out, struct kv *kv, struct err *err)
{
    struct db_view *view = NULL;
    int code = db_snapshot(&view, embedded_of(kv)->db, err);

    if (code == 0)
        *out = (struct kv_view *)view;
    return code;
}

static void embedded_view_close(struct kv *kv, struct kv_view *view)
{
    db_snapshot_free((struct db_view *)view);
}

static struct db_view *view_of(struct embedded_kv *e, struct kv_view *view)
{
    return view ? (struct db_view *)view : db_latest(e->db);
}

static int embedded_get_one(struct kv_value *out, struct embedded_kv *e, struct db_view *view,
                            struct arena *a, const struct kv_name *name, struct buf *work,
                            struct err *err)
{
    char key[ROW_KEY_MAX];

    buf_reset(work);
    *out = (struct kv_value){0};
    int code = db_get(view, e->rows, row_key_write(key, name), work, err);
    if (code == ERR_NOT_FOUND)
        return 0;
    if (code < 0)
        return code;
    out->bytes = out->stamp = arena_str(a, buf_str(work));
    return out->bytes.p ? 0 : err_code(err, ERR_NO_MEMORY);
}

static int embedded_get(struct kv *kv, struct kv_view *view, struct arena *a,
                        const struct kv_name *names, size_t count, struct kv_value *out,
                        struct err *err)
{
    enum { TYPICAL = 512 }; /* bytes of a row; most rows are smaller, so the buf need not grow */
    struct embedded_kv *e = embedded_of(kv);
    struct buf work = BUF_INIT(0);
    int code = 0;

    buf_reserve(&work, TYPICAL);
    for (size_t i = 0; i < count && code == 0; i++)
        code = embedded_get_one(&out[i], e, view_of(e, view), a, &names[i], &work, err);
    buf_release(&work);
    return code;
}

static int embedded_scan_open(struct kv_scan **out, struct kv *kv, struct kv_view *view,
                              struct str partition, const struct kv_range *range, struct err *err)
{
    struct embedded_kv *e = embedded_of(kv);
    struct embedded_rows *s = xzalloc(sizeof(*s));
    char key[ROW_KEY_MAX];

    s->scan.kv = kv;
    s->partition = HEAD_BYTES + partition.len;
    buf_append_str(&s->from, row_key_write(key, &(struct kv_name){partition, range->prefix}));
    db_prefix_end(buf_str(&s->from), &s->to);
    struct db_range all = {.from = buf_str(&s->from), .to = buf_str(&s->to)};
    int code = db_iter_open(&s->it, view_of(e, view), e->rows, &all, err);
    if (code < 0) {
        buf_release(&s->from);
        buf_release(&s->to);
        free(s);
        return code;
    }
    db_iter_seek(s->it, row_key_write(key, &(struct kv_name){partition, range->from}));
    *out = &s->scan;
    return 0;
}

static int embedded_scan_next(struct kv_scan *scan, struct str *key, struct str *value,
                              struct err *err)
{
    struct embedded_rows *s = container_of(scan, struct embedded_rows, scan);
    struct str row, bytes;

    if (!s->it)
        return err_set(err, ERR_CLOSED, "the scan was closed");
    int code = db_iter_next(s->it, &row, &bytes, err);
    if (code < 0)
        return code;
    *key = str_skip(row, s->partition);
    *value = bytes.p ? bytes : STR("");
    return 0;
}

static void embedded_scan_seek(struct kv_scan *scan, struct str key)
{
    struct embedded_rows *s = container_of(scan, struct embedded_rows, scan);
    struct kv_name name = {str_n(s->from.p + HEAD_BYTES, s->partition - HEAD_BYTES), key};
    char row[ROW_KEY_MAX];

    if (s->it)
        db_iter_seek(s->it, row_key_write(row, &name));
}

static void embedded_scan_close(struct kv_scan *scan)
{
    struct embedded_rows *s = container_of(scan, struct embedded_rows, scan);

    db_iter_close(s->it);
    s->it = NULL;
}

static void embedded_scan_free(struct kv_scan *scan)
{
    struct embedded_rows *s = container_of(scan, struct embedded_rows, scan);

    buf_release(&s->from);
    buf_release(&s->to);
    free(s);
}

/* --- writing --- */

/* A write that is under way. The caller's thread makes the database keys before it calls
 * db_apply(). All other changes wait while the change itself runs, so the change only reads and
 * puts. */
struct embedded_write {
    struct db_cf *rows;
    const struct kv_change *changes;
    size_t count;
    size_t failed;
    /* The database keys, one after the other, and then the value of the row whose condition is
     * checked. The buf grows only if a row is larger than expected. */
    struct buf work;
    size_t keys; /* length of all keys together, in bytes */
};

/* Whether the condition of a change holds for its row. */
static bool change_holds(const struct kv_change *c, bool is_there, struct str value)
{
    if (c->when == KV_SAME)
        return is_there && str_eq(value, c->stamp);
    return is_there == (c->when == KV_EXISTS);
}

/* Reads the row of a change and judges its condition. ERR_PRECONDITION: the condition does not
 * hold. */
static int change_judge(struct embedded_write *w, struct db_view *view, size_t key_at,
                        const struct kv_change *c, struct err *err)
{
    /* The row is read into the buf that also holds its key. The buf may move when it grows, so the
     * key is copied. */
    char key[ROW_KEY_MAX];
    size_t len = row_key_len(&c->name);

    memcpy(key, w->work.p + key_at, len);
    int code = db_get(view, w->rows, str_n(key, len), &w->work, err);
    struct str value = str_n(w->work.p + w->keys, w->work.len - w->keys);
    bool holds = change_holds(c, code == 0, value);

    w->work.len = w->keys;
    if (code < 0 && code != ERR_NOT_FOUND)
        return code;
    return holds ? 0 : err_code(err, ERR_PRECONDITION);
}

/* The change that db_apply() runs. All conditions are checked first: if the change fails before its
 * first put, there is nothing to undo. */
static int embedded_apply(struct db_tx *tx, void *ctx, struct err *err)
{
    struct embedded_write *w = ctx;
    struct db_view *view = db_tx_view(tx);
    size_t at = 0;

    for (size_t i = 0; i < w->count; i++) {
        const struct kv_change *c = &w->changes[i];
        int code = c->when == KV_ALWAYS ? 0 : change_judge(w, view, at, c, err);
        w->failed = i;
        if (code < 0)
            return code;
        at += row_key_len(&c->name);
    }
    at = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct kv_change *c = &w->changes[i];
        struct str key = str_n(w->work.p + at, row_key_len(&c->name));
        if (c->what == KV_PUT)
            db_tx_put(tx, w->rows, key, c->value);
        else if (c->what == KV_REMOVE)
            db_tx_delete(tx, w->rows, key);
        at += key.len;
    }
    return 0;
}

static int write_prepare(struct embedded_write *w, struct err *err)
{
    size_t longest = 0;

    for (size_t i = 0; i < w->count; i++) {
        w->keys += row_key_len(&w->changes[i].name);
        longest = size_max(longest, w->changes[i].stamp.len);
    }
    buf_init(&w->work, w->keys + ROW_KEY_MAX + 2 * (size_t)KV_VALUE_MAX);
    char *to = buf_reserve(&w->work, w->keys + longest + ROW_KEY_MAX);
    if (!to)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < w->count; i++)
        to += row_key_write(to, &w->changes[i].name).len;
    buf_commit(&w->work, w->keys);
    return 0;
}

static int embedded_write(struct kv *kv, const struct kv_change *changes, size_t count,
                          size_t *failed, struct arena *a, const struct kv_name *names,
                          size_t name_count, struct kv_value *out, struct err *err)
{
    struct embedded_kv *e = embedded_of(kv);
    struct embedded_write w = {.rows = e->rows, .changes = changes, .count = count};
    enum db_durability durability = kv_changes_later(changes, count)  ? DB_VOLATILE
                                    : kv_changes_free(changes, count) ? DB_URGENT
                                                                      : DB_DURABLE;
    int code = write_prepare(&w, err);

    if (code == 0)
        code = db_apply(e->db, durability, embedded_apply, &w, err);
    buf_release(&w.work);
    *failed = w.failed;
    if (code == ERR_IO)
        code = err_wrap(err, ERR_TIMEOUT, "the write may be there after the next start");
    if (code < 0)
        return code;
    code = embedded_get(kv, NULL, a, names, name_count, out, err);
    return code < 0 ? kv_made_unread(err) : 0;
}

/* --- dropping --- */

/* The keys of a partition that has few rows. Such rows are deleted one by one, because a range
 * deletion has to be synced, and every later reader has to check it. */
struct small_drop {
    struct db_cf *rows;
    struct buf keys; /* of each row: two bytes of length, most significant first, and the key */
};

enum { SMALL_DROP = 256 }; /* rows */

/* Reads the keys of the partition. *is_small: it has at most SMALL_DROP rows. */
static int small_drop_read(struct small_drop *d, struct embedded_kv *e, const struct db_range *all,
                           bool *is_small, struct err *err)
{
    struct db_iter *it = NULL;
    struct str key, value;
    char len[2];
    int code = db_iter_open(&it, db_latest(e->db), e->rows, all, err);

    for (int i = 0; code == 0 && i <= SMALL_DROP; i++)
        if ((code = db_iter_next(it, &key, &value, err)) == 0) {
            be16_write(len, (uint16_t)key.len);
            buf_append(&d->keys, len, sizeof(len));
            buf_append_str(&d->keys, key);
        }
    db_iter_close(it);
    *is_small = code == ERR_END;
    return code == ERR_END ? 0 : code;
}

static int small_drop_apply(struct db_tx *tx, void *ctx, struct err *err)
{
    struct small_drop *d = ctx;
    struct str rest = buf_str(&d->keys);

    while (rest.len) {
        size_t len = be16_read(rest.p);
        db_tx_delete(tx, d->rows, str_n(rest.p + 2, len));
        rest = str_skip(rest, 2 + len);
    }
    return 0;
}

static int embedded_drop(struct kv *kv, struct str partition, struct err *err)
{
    struct embedded_kv *e = embedded_of(kv);
    struct small_drop small = {.rows = e->rows};
    struct buf end = BUF_INIT(0);
    char key[ROW_KEY_MAX];
    bool is_small = false;
    struct str from = row_key_write(key, &(struct kv_name){partition, STR_EMPTY});

    db_prefix_end(from, &end);
    struct db_range all = {.from = from, .to = buf_str(&end)};
    int code = small_drop_read(&small, e, &all, &is_small, err);
    if (code == 0 && !is_small)
        code = db_delete_range(e->db, e->rows, from, buf_str(&end), err);
    else if (code == 0)
        code = db_apply(e->db, DB_VOLATILE, small_drop_apply, &small, err);
    buf_release(&small.keys);
    buf_release(&end);
    return code == ERR_IO ? err_wrap(err, ERR_TIMEOUT, "the partition may be gone") : code;
}

/* --- opening --- */

/* Writes a row that belongs to no partition, so that no scan finds it. */
static int embedded_probe(struct kv *kv, struct err *err)
{
    struct embedded_kv *e = embedded_of(kv);

    return db_put(e->db, e->rows, STR("\0\0probe"), STR(""), DB_DURABLE, err);
}

static void embedded_kv_close(struct kv *kv)
{
    free(embedded_of(kv));
}

static const struct kv_ops embedded_ops = {
    .prepare = kv_schema_check,
    .view_open = embedded_view_open,
    .view_close = embedded_view_close,
    .get = embedded_get,
    .write = embedded_write,
    .scan_open = embedded_scan_open,
    .scan_next = embedded_scan_next,
    .scan_seek = embedded_scan_seek,
    .scan_close = embedded_scan_close,
    .scan_free = embedded_scan_free,
    .drop = embedded_drop,
    .probe = embedded_probe,
    .close = embedded_kv_close,
};

const struct db_cf_spec *kv_cf_spec(void)
{
    /* Each look-up of a path on a branch of the lake asks for staged rows, which mostly do not
     * exist. */
    static const struct db_cf_spec spec = {.name = "kv", .absent = true};

    return &spec;
}

int kv_open_embedded(struct kv **out, struct db *db, const struct log *log, struct err *err)
{
    struct embedded_kv *e = xzalloc(sizeof(*e));

    e->kv.ops = &embedded_ops;
    e->kv.driver = "embedded";
    e->kv.can = KV_FENCES | KV_MOMENTS | KV_DROPS | KV_ALONE | KV_AT_HAND;
    e->db = db;
    e->rows = db_cf(db, kv_cf_spec()->name);
    return kv_opened(out, &e->kv, log, err);
}
