/* Rows of the access log: writes them, reads those of an object, and deletes them after
 * delivery. */
#include "s3/log/access_log_int.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "http/wire.h"

void log_rows_name(struct buf *out, struct str storage, struct str bucket)
{
    buf_append_str(out, storage);
    buf_append_char(out, '\0');
    buf_append_str(out, bucket);
    buf_append_char(out, '\0');
}

struct log_pending *log_pending_find(struct access_log *l, struct str name)
{
    vec_each (&l->pending, struct log_pending *, p)
        if (str_eq(buf_str(&p->name), name))
            return p;
    return NULL;
}

static void pending_add(struct access_log *l, struct str name, int64_t first_ms, size_t bytes)
{
    struct log_pending *p = log_pending_find(l, name);

    if (!p) {
        struct log_pending fresh = {.name = BUF_INIT(0), .oldest_ms = first_ms};
        buf_append_str(&fresh.name, name);
        vec_push(&l->pending, fresh);
        p = vec_last(&l->pending);
    }
    if (first_ms < p->oldest_ms)
        p->oldest_ms = first_ms;
    p->bytes += bytes;
}

/* --- writing --- */

static void log_row_append(struct buf *out, const struct log_lines *lines)
{
    buf_appendf(out, "t=%lld&n=%llu&o=", (long long)lines->first_ms,
                (unsigned long long)lines->records);
    url_encode(out, str_z(lines->owner), false);
    buf_appendf(out, "&d=%lld&c=", (long long)lines->day);
    url_encode(out, str_z(lines->config), false);
    buf_append_char(out, '\n');
    buf_append_str(out, buf_str(&lines->text));
}

struct write {
    struct access_log *l;
    struct log_lines **lines;
    size_t count;
};

static int write_run(struct db_tx *tx, void *ctx, struct err *err)
{
    struct write *w = ctx;
    struct buf key = BUF_INIT(0), value = BUF_INIT(0);

    for (size_t i = 0; i < w->count; i++) {
        struct log_lines *lines = w->lines[i];
        buf_reset(&key);
        buf_reset(&value);
        log_rows_name(&key, str_z(lines->storage), str_z(lines->bucket));
        buf_append_be64(&key, w->l->sequence + i);
        log_row_append(&value, lines);
        db_tx_put(tx, w->l->rows, buf_str(&key), buf_str(&value));
    }
    int code = buf_error(&value);
    buf_release(&key);
    buf_release(&value);
    return code < 0 ? err_code(err, code) : 0;
}

int log_rows_write(struct access_log *l, struct log_lines **lines, size_t count, struct err *err)
{
    struct write w = {l, lines, count};
    struct buf name = BUF_INIT(0);
    int code = db_apply(l->o.db, DB_DURABLE, write_run, &w, err);

    l->sequence += count;
    for (size_t i = 0; code == 0 && i < count; i++) {
        buf_reset(&name);
        log_rows_name(&name, str_z(lines[i]->storage), str_z(lines[i]->bucket));
        pending_add(l, buf_str(&name), lines[i]->first_ms, lines[i]->text.len);
    }
    buf_release(&name);
    return code;
}

/* --- reading --- */

static bool log_row_take_number(struct str *rest, const char *name, int64_t *out)
{
    struct str found, value;

    return url_query_next(rest, &found, &value) && str_eq(found, str_z(name)) &&
           str_i64(value, out) == 0;
}

int log_row_parse(struct str value, struct log_row *out)
{
    struct str head;
    int64_t records = 0;

    str_cut(value, '\n', &head, &out->text);
    if (!log_row_take_number(&head, "t", &out->first_ms) ||
        !log_row_take_number(&head, "n", &records) || records < 0)
        return ERR_CORRUPT;
    out->records = (uint64_t)records;
    out->same = head;
    return 0;
}

int log_row_source(struct arena *a, struct str same, struct str *owner, int64_t *day,
                   struct str *config)
{
    int code = url_query_take(&same, a, "o", owner);

    if (code == 0 && !log_row_take_number(&same, "d", day))
        code = ERR_CORRUPT;
    return code < 0 ? code : url_query_take(&same, a, "c", config);
}

static uint64_t sequence_of(struct str key)
{
    return be_read(key.p + key.len - LOG_SEQUENCE_LEN, LOG_SEQUENCE_LEN);
}

/* Reads the rows of one object. A row that cannot be parsed is left out of the object, and is
 * deleted together with the object's other rows. */
int log_rows_read(struct access_log *l, struct str name, uint64_t from, struct log_batch *out,
                  struct err *err)
{
    struct buf start = BUF_INIT(0), end = BUF_INIT(0);
    struct db_view *view = NULL;
    struct db_iter *it = NULL;
    struct str key, value;
    int code = db_snapshot(&view, l->o.db, err);

    buf_append_str(&start, name);
    buf_append_be64(&start, from);
    db_prefix_end(name, &end);
    struct db_range range = {.from = buf_str(&start), .to = buf_str(&end)};
    if (code == 0)
        code = db_iter_open(&it, view, l->rows, &range, err);
    while (code == 0 && out->text.len < LOG_OBJECT_BYTES) {
        struct log_row row = {0};
        code = db_iter_next(it, &key, &value, err);
        if (code < 0)
            break;
        if (log_row_parse(value, &row) == 0) {
            if (out->records && !str_eq(row.same, buf_str(&out->same)))
                break;
            if (!out->records) {
                out->oldest_ms = row.first_ms;
                buf_append_str(&out->same, row.same);
            }
            out->records += row.records;
            buf_append_str(&out->text, row.text);
        }
        vec_push(&out->sequences, sequence_of(key));
    }
    db_iter_close(it);
    if (view)
        db_snapshot_free(view);
    buf_release(&start);
    buf_release(&end);
    return code == ERR_END ? 0 : code;
}

void log_batch_release(struct log_batch *b)
{
    buf_release(&b->text);
    buf_release(&b->same);
    vec_release(&b->sequences);
}

/* --- deleting --- */

struct removal {
    struct access_log *l;
    struct str name;
    const struct log_batch *batch;
};

static int removal_run(struct db_tx *tx, void *ctx, struct err *err)
{
    struct removal *r = ctx;
    struct buf key = BUF_INIT(0);

    (void)err;
    for (size_t i = 0; i < r->batch->sequences.len; i++) {
        buf_reset(&key);
        buf_append_str(&key, r->name);
        buf_append_be64(&key, r->batch->sequences.items[i]);
        db_tx_delete(tx, r->l->rows, buf_str(&key));
    }
    buf_release(&key);
    return 0;
}

int log_rows_delete(struct access_log *l, struct str name, const struct log_batch *batch,
                    struct err *err)
{
    struct removal r = {l, name, batch};

    return db_apply(l->o.db, DB_DURABLE, removal_run, &r, err);
}

/* --- the start --- */

int log_rows_load(struct access_log *l, struct err *err)
{
    struct db_range all = {0};
    struct db_view *view = NULL;
    struct db_iter *it = NULL;
    struct str key, value;
    struct log_row row;
    int code = db_snapshot(&view, l->o.db, err);

    l->sequence = (uint64_t)clock_wall_ms() * US_PER_MS;
    if (code == 0)
        code = db_iter_open(&it, view, l->rows, &all, err);
    while (code == 0 && (code = db_iter_next(it, &key, &value, err)) == 0) {
        if (key.len <= LOG_SEQUENCE_LEN)
            continue;
        if (log_row_parse(value, &row) < 0)
            row = (struct log_row){0};
        if (sequence_of(key) >= l->sequence)
            l->sequence = sequence_of(key) + 1;
        pending_add(l, str_head(key, key.len - LOG_SEQUENCE_LEN), row.first_ms, row.text.len);
    }
    db_iter_close(it);
    if (view)
        db_snapshot_free(view);
    return code == ERR_END ? 0 : code;
}
