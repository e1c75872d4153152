/* Reading: views, single rows and ranges. */
#include "db/db_int.h"

#include <stdlib.h>

enum position {
    BEFORE, /* RocksDB's iterator is not placed yet */
    AT,     /* RocksDB's iterator is on a row that db_iter_next() has not returned yet */
    OWED,   /* `known` is the key of the next row, but RocksDB's iterator is not there yet */
    ON,     /* RocksDB's iterator is on the row that db_iter_next() returned last */
    PAST,   /* the end was reached */
};

struct db_iter {
    rocksdb_iterator_t *rows;
    rocksdb_readoptions_t *read; /* owned; has the bounds of the range */
    struct db_tx *tx;
    const char *path; /* borrowed from the db */
    struct db_range range;
    enum position position;
    struct gaps *gaps; /* NULL: the iterator does not use the cache of gaps */
    struct gaps_reader reader;
    struct buf known;      /* the key that db_iter_skip() found in `gaps` */
    struct buf key, value; /* copies of the row in builds with ThreadSanitizer, else empty */
};

#ifdef __SANITIZE_THREAD__
/* Copies a row in code that ThreadSanitizer does not check, and returns the copy. RocksDB returns
 * bytes inside a memtable, and orders their writing by atomics that ThreadSanitizer does not see. A
 * suppression would need the writer's stack, which is sometimes lost. */
__attribute__((no_sanitize("thread"))) static struct str seen(struct buf *copy, struct str row)
{
    /* With `volatile` the compiler does not turn the loop into a memcpy, which ThreadSanitizer
     * would check. */
    const volatile char *from = row.p;

    buf_reset(copy);
    char *to = buf_reserve(copy, row.len);
    BUG_ON(row.len && !to);
    for (size_t i = 0; i < row.len; i++)
        to[i] = from[i];
    buf_commit(copy, row.len);
    return str_n(to, row.len);
}
#else
static struct str seen(struct buf *copy, struct str row)
{
    return row;
}
#endif

int db_snapshot(struct db_view **out, struct db *db, struct err *err)
{
    struct db_view *view = xcalloc(1, sizeof(*view));

    view->db = db;
    uint64_t before = rows_now(db->rows);
    view->snapshot = rocksdb_create_snapshot(db->rocks);
    view->rows_now = rows_now(db->rows) == before ? before : ROWS_STALE;
    view->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(view->read, view->snapshot);
    *out = view;
    return 0;
}

void db_snapshot_free(struct db_view *view)
{
    if (!view)
        return;
    rocksdb_readoptions_destroy(view->read);
    rocksdb_release_snapshot(view->db->rocks, view->snapshot);
    free(view);
}

struct db_view *db_latest(struct db *db)
{
    return &db->latest;
}

/* Reads one row through an iterator over just its key. This is slow, but it is right whether the
 * pending batches put the row, delete it or do not have it. */
static int get_by_range(struct db_view *view, struct db_cf *cf, struct str key, struct buf *out,
                        struct err *err)
{
    struct buf end = BUF_INIT(0);
    struct db_iter *it = NULL;
    struct str found, value;

    buf_append_str(&end, key);
    buf_append_char(&end, '\0');
    struct db_range itself = {.from = key, .to = buf_str(&end)};
    int code = db_iter_open(&it, view, cf, &itself, err);
    if (code == 0)
        code = db_iter_next(it, &found, &value, err);
    if (code == 0) {
        buf_append_str(out, value);
        code = buf_error(out);
    }
    db_iter_close(it);
    buf_release(&end);
    return code == ERR_END ? err_code(err, ERR_NOT_FOUND) : code;
}

/* Reads a row that may be in a pending batch; `where` says in which. RocksDB's look-up in a batch
 * alone cannot distinguish a row that the batch deletes from a row that the batch does not have; a
 * look-up in the batch and the database together can. So if both batches may have the key, and
 * `into` may have deleted it, the slower get_by_range() is used. */
static int get_pending(struct db_view *view, unsigned where, const struct rows_look *look,
                       struct buf *out, struct err *err)
{
    struct db *db = view->db;
    struct db_tx *tx = view->tx;
    rocksdb_column_family_handle_t *cf = look->cf->handle;
    struct str key = look->key;
    char *message = NULL, *value = NULL;
    size_t len = 0;

    if (where == (TX_INTO | TX_BELOW)) {
        value = rocksdb_writebatch_wi_get_from_batch_cf(tx->into->rows, db->options, cf, key.p,
                                                        key.len, &len, &message);
        if (!value && !message && tx_may_have_deleted(tx, key))
            return get_by_range(view, look->cf, key, out, err);
    }
    if (!value && !message)
        value = rocksdb_writebatch_wi_get_from_batch_and_db_cf(
            where & TX_BELOW ? tx->below->rows : tx->into->rows, db->rocks, view->read, cf, key.p,
            key.len, &len, &message);
    if (message)
        return error_take(err, message, "reading", db->path);
    if (!value)
        return err_code(err, ERR_NOT_FOUND);
    buf_append(out, value, len);
    rocksdb_free(value);
    return buf_error(out);
}

int db_get(struct db_view *view, struct db_cf *cf, struct str key, struct buf *out, struct err *err)
{
    char *message = NULL;
    rocksdb_pinnableslice_t *slice;
    struct rows *rows = view->db->rows;
    struct rows_look look = {.cf = cf, .key = key};
    unsigned where = view->tx ? tx_look(view->tx, key) : 0;
    size_t len;

    if (where)
        return get_pending(view, where, &look, out, err);
    enum rows_answer known = rows_get(rows, &look, view->snapshot ? &view->rows_now : NULL, out);
    if (known != ROWS_MISS)
        return known == ROWS_HIT ? buf_error(out) : err_code(err, ERR_NOT_FOUND);
    slice =
        rocksdb_get_pinned_cf(view->db->rocks, view->read, cf->handle, key.p, key.len, &message);
    if (message)
        return error_take(err, message, "reading", view->db->path);
    if (!slice && cf->absent && !view->tx)
        rows_keep_absent(rows, &look);
    if (!slice)
        return err_code(err, ERR_NOT_FOUND);
    const char *value = rocksdb_pinnableslice_value(slice, &len);
    buf_append(out, value, len);
    rows_keep(rows, &look, str_n(value, len));
    rocksdb_pinnableslice_destroy(slice);
    return buf_error(out);
}

int db_iter_open(struct db_iter **out, struct db_view *view, struct db_cf *cf,
                 const struct db_range *r, struct err *err)
{
    struct db_iter *it = xcalloc(1, sizeof(*it));

    it->range = *r;
    it->path = view->db->path;
    it->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(it->read, view->snapshot);
    if (r->from.len > 0)
        rocksdb_readoptions_set_iterate_lower_bound(it->read, r->from.p, r->from.len);
    if (r->to.len > 0)
        rocksdb_readoptions_set_iterate_upper_bound(it->read, r->to.p, r->to.len);
    if (r->skips && !view->tx && !view->snapshot && cf->gaps) {
        it->gaps = cf->gaps;
        /* The reader is registered before the iterator is made (gaps.h, G2). */
        gaps_enter(it->gaps, &it->reader, r->from, r->to);
    }
    it->rows = rocksdb_create_iterator_cf(view->db->rocks, it->read, cf->handle);
    if (view->tx) {
        it->tx = view->tx;
        it->tx->iterators++;
        unsigned where = tx_look_all(it->tx);
        if (where & TX_BELOW)
            it->rows = rocksdb_writebatch_wi_create_iterator_with_base_cf(it->tx->below->rows,
                                                                          it->rows, cf->handle);
        if (where & TX_INTO)
            it->rows = rocksdb_writebatch_wi_create_iterator_with_base_cf(it->tx->into->rows,
                                                                          it->rows, cf->handle);
    }
    *out = it;
    return 0;
}

void db_iter_close(struct db_iter *it)
{
    if (!it)
        return;
    if (it->tx)
        it->tx->iterators--;
    if (it->gaps)
        gaps_leave(it->gaps, &it->reader);
    rocksdb_iter_destroy(it->rows);
    rocksdb_readoptions_destroy(it->read);
    buf_release(&it->known);
    buf_release(&it->key);
    buf_release(&it->value);
    free(it);
}

static struct str current_key(struct db_iter *it)
{
    size_t len;
    const char *p = rocksdb_iter_key(it->rows, &len);
    return seen(&it->key, str_n(p, len));
}

/* Whether the current row is in the range. RocksDB applies the bounds to its own rows but not to
 * pending rows, so both ends are checked here. */
static bool in_range(struct db_iter *it)
{
    struct str key = current_key(it);
    return str_cmp(key, it->range.from) >= 0 &&
           (it->range.to.len == 0 || str_cmp(key, it->range.to) < 0);
}

static void place_last(struct db_iter *it)
{
    struct str to = it->range.to;

    if (to.len == 0) {
        rocksdb_iter_seek_to_last(it->rows);
        return;
    }
    rocksdb_iter_seek_for_prev(it->rows, to.p, to.len);
    if (rocksdb_iter_valid(it->rows) && str_eq(current_key(it), to))
        rocksdb_iter_prev(it->rows);
}

static void place_first(struct db_iter *it)
{
    if (it->range.from.len == 0)
        rocksdb_iter_seek_to_first(it->rows);
    else
        rocksdb_iter_seek(it->rows, it->range.from.p, it->range.from.len);
}

void db_iter_seek(struct db_iter *it, struct str key)
{
    if (it->range.reverse) {
        if (it->range.to.len > 0 && str_cmp(key, it->range.to) >= 0)
            place_last(it);
        else
            rocksdb_iter_seek_for_prev(it->rows, key.len ? key.p : "", key.len);
    } else if (str_cmp(key, it->range.from) <= 0) {
        place_first(it);
    } else {
        rocksdb_iter_seek(it->rows, key.p, key.len);
    }
    it->position = AT;
}

static void iter_advance(struct db_iter *it)
{
    if (it->position == BEFORE && it->range.reverse)
        place_last(it);
    else if (it->position == BEFORE)
        place_first(it);
    else if (it->position == OWED)
        rocksdb_iter_seek(it->rows, it->known.len ? it->known.p : "", it->known.len);
    else if (it->position == ON && it->range.reverse)
        rocksdb_iter_prev(it->rows);
    else if (it->position == ON)
        rocksdb_iter_next(it->rows);
}

/* Checks that RocksDB's iterator is on a row of the range. ERR_END: it is not, so the range has
 * ended. */
static int on_row(struct db_iter *it, struct err *err)
{
    char *message = NULL;

    if (rocksdb_iter_valid(it->rows) && in_range(it))
        return 0;
    it->position = PAST;
    rocksdb_iter_get_error(it->rows, &message);
    return message ? error_take(err, message, "reading", it->path) : err_code(err, ERR_END);
}

int db_iter_skip(struct db_iter *it, struct str from, struct str *key, struct err *err)
{
    struct str end = it->range.to;

    BUG_ON(it->range.reverse);
    if (str_cmp(from, it->range.from) < 0)
        from = it->range.from;
    if (it->gaps && gaps_find(it->gaps, from, &it->known)) {
        *key = buf_str(&it->known);
        it->position = end.len && str_cmp(*key, end) >= 0 ? PAST : OWED;
        return it->position == PAST ? err_code(err, ERR_END) : 0;
    }
    db_iter_seek(it, from);
    int code = on_row(it, err);
    if (code == 0)
        *key = current_key(it);
    if (code == 0 && it->gaps)
        gaps_keep(it->gaps, &it->reader, from, *key);
    return code;
}

int db_iter_next(struct db_iter *it, struct str *key, struct str *value, struct err *err)
{
    size_t len;

    if (it->position == PAST)
        return err_code(err, ERR_END);
    iter_advance(it);
    it->position = ON;
    int code = on_row(it, err);
    if (code != 0)
        return code;
    *key = current_key(it);
    const char *p = rocksdb_iter_value(it->rows, &len);
    *value = seen(&it->value, str_n(p, len));
    return 0;
}

void db_prefix_end(struct str prefix, struct buf *out)
{
    size_t len = prefix.len;

    while (len > 0 && (unsigned char)prefix.p[len - 1] == 0xff)
        len--;
    if (len == 0)
        return;
    buf_append(out, prefix.p, len - 1);
    buf_append_char(out, (char)((unsigned char)prefix.p[len - 1] + 1));
}
