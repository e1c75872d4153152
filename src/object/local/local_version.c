/* Where each version of a key is stored (docs/local-storage.md, L1 to L4), which records refer to
 * which bytes (L6), and the changes of both. */
#include "object/local/local_int.h"
#include "base/bytes.h"
#include "base/clock.h"

enum { SEQUENCE_AHEAD_US = 60 * US_PER_S };

void stored_release(struct stored *s)
{
    buf_release(&s->row);
}

int stored_get(struct stored *out, struct db_view *view, struct local *l, struct str row,
               struct err *err)
{
    buf_reset(&out->row);
    int code = db_get(view, l->rows, row, &out->row, err);
    return code < 0 ? code : record_get(buf_str(&out->row), &out->r, err);
}

static int find_null(struct stored *out, struct db_view *view, struct local_bucket *b,
                     struct str key, struct err *err)
{
    struct row row;

    buf_reset(&out->row);
    int code = db_get(view, b->local->rows, row_key(&row, b, TAG_NULL, key), &out->row, err);
    if (code < 0)
        return code;
    if (out->row.len != 8)
        return err_set(err, ERR_CORRUPT, "the row of a null version cannot be read");
    uint64_t sequence = row_u64(buf_str(&out->row));
    return stored_get(out, view, b->local, row_version(&row, b, key, sequence), err);
}

int stored_find(struct stored *out, struct db_view *view, struct local_bucket *b, struct str key,
                struct str version, struct err *err)
{
    bool null = str_eq(version, STR("null"));
    uint64_t sequence = 0;
    struct row row;

    if (!null && !version_parse(b, key, version, &sequence))
        return err_code(err, ERR_NOT_FOUND);
    int code = stored_get(out, view, b->local, row_key(&row, b, TAG_OBJECT, key), err);
    if (code == 0 && out->r.is_null == null && (null || out->r.sequence == sequence))
        return 0;
    if (code < 0 && code != ERR_NOT_FOUND)
        return code;
    if (null)
        return find_null(out, view, b, key, err);
    code = stored_get(out, view, b->local, row_version(&row, b, key, sequence), err);
    return code == 0 && out->r.is_null ? err_code(err, ERR_NOT_FOUND) : code;
}

int stored_newest(struct stored *out, struct db_view *view, struct local_bucket *b, struct str key,
                  struct err *err)
{
    struct buf end = BUF_INIT(0);
    struct db_iter *it = NULL;
    struct row row;
    struct str found, value;

    struct str from = row_versions(&row, b, key);
    db_prefix_end(from, &end);
    struct db_range range = {.from = from, .to = buf_str(&end)};
    int code = db_iter_open(&it, view, b->local->rows, &range, err);
    if (code == 0)
        code = db_iter_next(it, &found, &value, err);
    if (code == 0) {
        buf_reset(&out->row);
        buf_append_str(&out->row, value);
        code = record_get(buf_str(&out->row), &out->r, err);
    }
    db_iter_close(it);
    buf_release(&end);
    return code == ERR_END ? err_code(err, ERR_NOT_FOUND) : code;
}

int stored_parts(struct buf *out, struct db_view *view, struct local *l,
                 const struct object_record *r, struct err *err)
{
    struct row row;

    if (r->where != WHERE_PARTED) {
        buf_append_str(out, r->parts);
        return buf_error(out);
    }
    int code = db_get(view, l->bytes, row_bytes(&row, l, r->id), out, err);
    if (code == ERR_NOT_FOUND)
        return err_code(err, ERR_AGAIN);
    if (code == 0 && hash_xxh3(buf_str(out), 0) != r->checksum)
        return err_set(err, ERR_CORRUPT, "a list of parts is damaged");
    return code;
}

/* --- running changes --- */

/* Reads the rows that say whether the change is allowed, and checks that it is. */
static int change_admit(struct row_change *c, struct err *err)
{
    int code = c->conditions ? change_current(c, &c->current, err) : 0;

    if (code == 0) /* a row may be added only to a bucket that exists (docs/local-storage.md, L5) */
        code = bucket_row_get(c->b, c->view, &c->bucket_row, &c->bucket, err);
    if (code < 0 || !c->conditions || !conditions_given(c->conditions))
        return code;
    struct condition_state now = record_state(&c->current.r);
    return conditions_judge_write(c->conditions, &now, err);
}

static int change_run(struct db_tx *tx, void *ctx, struct err *err)
{
    struct row_change *c = ctx;

    c->tx = tx;
    c->view = db_tx_view(tx);
    c->refused = c->garbage = false;
    c->counted = (struct bucket_usage){0};
    c->tapped = 0;
    int code = change_admit(c, err);
    if (code == 0)
        code = c->fn(c, err);
    if (code == 0)
        code = change_count_end(c, err);
    c->refused = code < 0;
    return code;
}

void change_end(struct row_change *c, int code)
{
    const struct change_tap *tap;

    stored_release(&c->current);
    buf_release(&c->bucket_row);
    if (code == 0 && c->garbage)
        collector_ask(c->b->local);
    if (code == 0 && c->tapped &&
        (tap = atomic_load_explicit(&c->b->local->tap, memory_order_acquire)))
        tap->committed(tap->ctx, c->tapped);
}

int change_apply(struct row_change *c, struct err *err)
{
    enum db_durability how = c->frees ? DB_URGENT : c->later ? DB_VOLATILE : DB_DURABLE;
    int code = db_apply(c->b->local->db, how, change_run, c, err);

    change_end(c, code);
    return code;
}

/* Several changes of one commit. */
struct row_changes {
    struct row_change *first;
    size_t size, count;
};

static struct row_change *changes_at(const struct row_changes *all, size_t i)
{
    return (struct row_change *)((char *)all->first + i * all->size);
}

static int changes_run(struct db_tx *tx, void *ctx, struct err *err)
{
    const struct row_changes *all = ctx;
    int code = 0;

    for (size_t i = 0; i < all->count && code == 0; i++)
        code = change_run(tx, changes_at(all, i), err);
    for (size_t i = 0; i < all->count; i++) /* an error undoes all of them */
        changes_at(all, i)->refused = code < 0;
    return code;
}

int change_apply_all(struct row_change *first, size_t size, size_t count, struct err *err)
{
    struct row_changes all = {first, size, count};
    int code = db_apply(first->b->local->db, DB_DURABLE, changes_run, &all, err);

    for (size_t i = 0; i < count; i++)
        change_end(changes_at(&all, i), code);
    return code;
}

int change_current(struct row_change *c, struct stored *out, struct err *err)
{
    BUG_ON(c->row.len == 0); /* the caller has not called change_key() */
    int code = stored_get(out, c->view, c->b->local, row_str(&c->row), err);
    if (code == ERR_NOT_FOUND) {
        out->r = (struct object_record){0};
        return 0;
    }
    return code;
}

int change_sequence(struct row_change *c, uint64_t *out, struct err *err)
{
    struct local *l = c->b->local;
    uint64_t now = (uint64_t)db_tx_now_ms(c->tx) * US_PER_MS, limit = 0;
    struct str row = str_n(l->sequence_row, sizeof(l->sequence_row));
    struct buf value = BUF_INIT(0);

    int code = db_get(c->view, l->rows, row, &value, err);
    if (code == 0 && value.len == 8)
        limit = be64_read(value.p);
    else if (code != ERR_NOT_FOUND)
        code = code < 0 ? code : err_set(err, ERR_CORRUPT, "the row of sequence numbers");
    buf_release(&value);
    if (code < 0 && code != ERR_NOT_FOUND)
        return code;
    l->sequence = now > l->sequence ? now : l->sequence + 1;
    *out = l->sequence;
    if (*out < limit)
        return 0;
    /* After a restart, numbers begin at the number in this row (docs/local-storage.md, L2). */
    struct buf ahead = BUF_INIT(0);
    buf_append_be64(&ahead, *out + SEQUENCE_AHEAD_US);
    db_tx_put(c->tx, l->rows, row, buf_str(&ahead));
    buf_release(&ahead);
    return 0;
}

/* --- references of records to blobs --- */

static int blob_row(struct row_change *c, uint64_t blob, struct blob_record *out, struct err *err)
{
    struct local *l = c->b->local;
    struct buf value = BUF_INIT(0);
    struct row row;

    int code = db_get(c->view, l->rows, row_id(&row, l, TAG_BLOB, blob), &value, err);
    if (code == ERR_NOT_FOUND)
        code = err_set(err, ERR_CORRUPT, "the row of blob %016llx is missing",
                       (unsigned long long)blob);
    if (code == 0)
        code = blob_record_get(buf_str(&value), out, err);
    buf_release(&value);
    return code;
}

static void put_blob_row(struct row_change *c, uint64_t blob, const struct blob_record *r)
{
    struct buf value = BUF_INIT(0);
    struct row row;

    blob_record_put(&value, r);
    db_tx_put(c->tx, c->b->local->rows, row_id(&row, c->b->local, TAG_BLOB, blob), buf_str(&value));
    buf_release(&value);
}

int change_ref(struct row_change *c, uint64_t blob, struct err *err)
{
    struct blob_record r = {0};
    int code = blob_row(c, blob, &r, err);

    if (code < 0)
        return code;
    r.refs++;
    put_blob_row(c, blob, &r);
    return 0;
}

int change_unref(struct row_change *c, uint64_t blob, struct err *err)
{
    struct local *l = c->b->local;
    struct blob_record r = {0};
    struct row row;
    int code = blob_row(c, blob, &r, err);

    if (code < 0)
        return code;
    if (r.refs > 1) {
        r.refs--;
        put_blob_row(c, blob, &r);
        return 0;
    }
    db_tx_delete(c->tx, l->rows, row_id(&row, l, TAG_BLOB, blob));
    db_tx_put(c->tx, l->rows, row_id(&row, l, TAG_GARBAGE, blob), STR_EMPTY);
    c->garbage = true;
    return 0;
}

/* Reads the list of parts. Nothing can remove the list during a change, so a missing list is
 * damage. */
static int change_parts(struct row_change *c, struct buf *out, const struct object_record *r,
                        struct err *err)
{
    int code = stored_parts(out, c->view, c->b->local, r, err);
    return code == ERR_AGAIN ? err_set(err, ERR_CORRUPT, "a list of parts is missing") : code;
}

static int each_blob(struct row_change *c, const struct object_record *r,
                     int (*fn)(struct row_change *, uint64_t, struct err *), struct err *err)
{
    struct buf parts = BUF_INIT(0);
    struct piece piece;
    int code;

    if (r->where == WHERE_BLOB)
        return fn(c, r->id, err);
    if (r->where != WHERE_PARTS && r->where != WHERE_PARTED)
        return 0;
    code = change_parts(c, &parts, r, err);
    struct str rest = buf_str(&parts);
    while (code == 0 && (code = piece_next(&rest, &piece, err)) == 0)
        code = fn(c, piece.blob, err);
    buf_release(&parts);
    return code == ERR_END ? 0 : code;
}

static int version_copy_bytes(struct row_change *c, struct object_record *r, struct err *err)
{
    struct local *l = c->b->local;
    struct buf bytes = BUF_INIT(0);
    struct row row;
    int code = db_get(c->view, l->bytes, row_bytes(&row, l, r->id), &bytes, err);

    if (code == ERR_NOT_FOUND)
        code = err_set(err, ERR_CORRUPT, "an inline body is missing");
    if (code == 0) {
        r->id = blob_bytes_id(l);
        db_tx_put(c->tx, l->bytes, row_bytes(&row, l, r->id), buf_str(&bytes));
    }
    buf_release(&bytes);
    return code;
}

int change_share(struct row_change *c, struct object_record *r, struct err *err)
{
    int code = each_blob(c, r, change_ref, err);

    if (code == 0 && (r->where == WHERE_INLINE || r->where == WHERE_PARTED))
        code = version_copy_bytes(c, r, err);
    return code;
}

int change_free(struct row_change *c, const struct object_record *r, struct err *err)
{
    struct local *l = c->b->local;
    struct row row;
    int code = each_blob(c, r, change_unref, err);

    if (code == 0 && (r->where == WHERE_INLINE || r->where == WHERE_PARTED))
        db_tx_delete(c->tx, l->bytes, row_bytes(&row, l, r->id));
    return code;
}

/* --- moving and dropping versions --- */

static int lock_check(struct row_change *c, const struct object_record *r, bool bypass,
                      struct err *err)
{
    const struct object_meta *m = &r->meta;

    if (m->legal_hold)
        return err_set(err, ERR_DENIED, "the version is under legal hold");
    if (m->retain_until_ms > db_tx_now_ms(c->tx) && (m->retain_compliance || !bypass))
        return err_set(err, ERR_DENIED, "the version is retained");
    return 0;
}

int change_drop(struct row_change *c, const struct object_record *r, bool in_o, bool bypass,
                struct err *err)
{
    struct local_bucket *b = c->b;
    struct row row;
    int code = lock_check(c, r, bypass, err);

    if (code == 0)
        code = change_free(c, r, err);
    if (code < 0)
        return code;
    record_count(&c->counted, r, in_o, -1);
    if (in_o) {
        db_tx_delete(c->tx, b->local->rows, row_str(&c->row));
        return 0;
    }
    db_tx_delete(c->tx, b->local->rows, row_version(&row, b, c->key, r->sequence));
    if (r->is_null)
        db_tx_delete(c->tx, b->local->rows, row_key(&row, b, TAG_NULL, c->key));
    return 0;
}

/* Writes the record unchanged (docs/local-storage.md, L4) to a row of TAG_VERSION. */
static void version_put_row(struct row_change *c, struct str record, const struct object_record *r)
{
    struct local_bucket *b = c->b;
    struct row row;

    db_tx_put(c->tx, b->local->rows, row_version(&row, b, c->key, r->sequence), record);
    record_count(&c->counted, r, false, 1);
    if (!r->is_null)
        return;
    /* The TAG_NULL row names the null version (docs/local-storage.md, L3). */
    struct buf sequence = BUF_INIT(0);
    buf_append_be64(&sequence, r->sequence);
    db_tx_put(c->tx, b->local->rows, row_key(&row, b, TAG_NULL, c->key), buf_str(&sequence));
    buf_release(&sequence);
}

/* Drops a null version that is not current. A bucket that once kept versions may have such a
 * version. */
static int drop_older_null(struct row_change *c, struct err *err)
{
    struct stored old = {0};
    int code = find_null(&old, c->view, c->b, c->key, err);

    if (code == 0)
        code = change_drop(c, &old.r, false, false, err);
    stored_release(&old);
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Makes room for a new version: moves `current` to a row of TAG_VERSION, or drops it. The caller
 * replaces the row of TAG_OBJECT. */
static int displace(struct row_change *c, const struct stored *current, bool new_is_null,
                    struct err *err)
{
    int code = 0;
    bool there = current->r.sequence > 0;

    if (there)
        record_count(&c->counted, &current->r, true, -1);
    if (there && new_is_null && current->r.is_null) {
        code = lock_check(c, &current->r, false, err);
        return code < 0 ? code : change_free(c, &current->r, err);
    }
    if (new_is_null && c->bucket.info.versions != VERSIONS_NEVER)
        code = drop_older_null(c, err);
    if (code == 0 && there)
        version_put_row(c, buf_str(&current->row), &current->r);
    return code;
}

int change_install(struct row_change *c, const struct stored *current, struct object_record *r,
                   struct err *err)
{
    struct local *l = c->b->local;
    struct buf record = BUF_INIT(0);

    r->is_null = c->bucket.info.versions != VERSIONS_ON;
    r->modified_ms = db_tx_now_ms(c->tx);
    int code = change_sequence(c, &r->sequence, err);
    if (code == 0)
        code = displace(c, current, r->is_null, err);
    if (code == 0 && !r->is_marker)
        record_count(&c->counted, r, true, 1);
    if (code == 0) {
        record_put(&record, r);
        code = buf_error(&record);
    }
    if (code == 0 && r->is_marker) {
        version_put_row(c, buf_str(&record), r);
        if (current->r.sequence > 0)
            db_tx_delete(c->tx, l->rows, row_str(&c->row));
    } else if (code == 0) {
        db_tx_put(c->tx, l->rows, row_str(&c->row), buf_str(&record));
    }
    buf_release(&record);
    return code;
}

int change_promote(struct row_change *c, struct err *err)
{
    struct local_bucket *b = c->b;
    struct stored newest = {0};
    struct row row;
    int code = stored_newest(&newest, c->view, b, c->key, err);

    if (code == 0 && !newest.r.is_marker) {
        db_tx_put(c->tx, b->local->rows, row_str(&c->row), buf_str(&newest.row));
        db_tx_delete(c->tx, b->local->rows, row_version(&row, b, c->key, newest.r.sequence));
        record_count(&c->counted, &newest.r, true, 1);
        record_count(&c->counted, &newest.r, false, -1);
        if (newest.r.is_null)
            db_tx_delete(c->tx, b->local->rows, row_key(&row, b, TAG_NULL, c->key));
    }
    stored_release(&newest);
    return code == ERR_NOT_FOUND ? 0 : code;
}
