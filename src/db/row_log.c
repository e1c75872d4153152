/* The implementation of the log of rows (row_log.h). */
#include "db/row_log.h"

static struct str row_log_key(struct buf *out, const struct row_log *l, struct str place)
{
    BUG_ON(l->prefix.len == 0);
    buf_reset(out);
    buf_append_str(out, l->prefix);
    buf_append_str(out, place);
    return buf_str(out);
}

/* Returns the key at which the range of the rows in places before `to` ends. An empty `to` is the
 * end of the log. */
static struct str row_log_end(struct buf *out, const struct row_log *l, struct str to)
{
    if (to.len)
        return row_log_key(out, l, to);
    buf_reset(out);
    db_prefix_end(l->prefix, out);
    return buf_str(out);
}

void row_log_put(const struct row_log *l, struct db_tx *tx, struct str place, struct str value)
{
    struct buf key = BUF_INIT(0);

    db_tx_put(tx, l->cf, row_log_key(&key, l, place), value);
    buf_release(&key);
}

/* --- reading --- */

static int row_log_read_rows(const struct row_log *l, struct arena *a, struct db_iter *it,
                             size_t limit, struct logged_row *rows, size_t *count, struct err *err)
{
    struct str key, value;
    int code = 0;

    *count = 0;
    while (*count < limit && (code = db_iter_next(it, &key, &value, err)) == 0)
        rows[(*count)++] =
            (struct logged_row){arena_str(a, str_skip(key, l->prefix.len)), arena_str(a, value)};
    if (code < 0 && code != ERR_END)
        return code;
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

int row_log_read(const struct row_log *l, struct arena *a, const struct row_log_span *span,
                 struct logged_row *rows, size_t *count, struct err *err)
{
    struct buf from = BUF_INIT(0), to = BUF_INIT(0);
    struct db_range range = {.from = row_log_key(&from, l, span->from),
                             .to = row_log_end(&to, l, span->to)};
    struct db_iter *it = NULL;
    int code = db_iter_open(&it, db_latest(l->db), l->cf, &range, err);

    if (code == 0)
        code = row_log_read_rows(l, a, it, span->limit, rows, count, err);
    db_iter_close(it);
    buf_release(&from);
    buf_release(&to);
    return code;
}

int row_log_count(const struct row_log *l, uint64_t *out, struct err *err)
{
    struct buf to = BUF_INIT(0);
    struct db_range range = {.from = l->prefix, .to = row_log_end(&to, l, STR_EMPTY)};
    struct db_iter *it = NULL;
    struct str key, value;
    uint64_t count = 0;
    int code = db_iter_open(&it, db_latest(l->db), l->cf, &range, err);
    while (code == 0 && (code = db_iter_next(it, &key, &value, err)) == 0)
        count++;
    db_iter_close(it);
    buf_release(&to);
    if (code != ERR_END)
        return code;
    *out = count;
    return 0;
}

/* --- deleting --- */

struct log_drop {
    const struct row_log *log;
    const struct str *places;
    size_t count;
};

static int log_drop_run(struct db_tx *tx, void *ctx, struct err *err)
{
    const struct log_drop *d = ctx;
    struct buf key = BUF_INIT(0);

    (void)err;
    for (size_t i = 0; i < d->count; i++)
        db_tx_delete(tx, d->log->cf, row_log_key(&key, d->log, d->places[i]));
    buf_release(&key);
    return 0;
}

int row_log_drop(const struct row_log *l, const struct str *places, size_t count, struct err *err)
{
    struct log_drop d = {l, places, count};

    return db_apply(l->db, DB_VOLATILE, log_drop_run, &d, err);
}

int row_log_drop_before(const struct row_log *l, struct str to, struct err *err)
{
    struct buf end = BUF_INIT(0);
    int code = db_delete_range(l->db, l->cf, l->prefix, row_log_end(&end, l, to), err);

    buf_release(&end);
    return code;
}

/* Makes a durable write, which returns only when all changes that ran before it are committed or
 * have failed. The write deletes a row that never exists, because no row has an empty place. */
int row_log_settle(const struct row_log *l, struct err *err)
{
    return db_delete(l->db, l->cf, l->prefix, DB_DURABLE, err);
}
