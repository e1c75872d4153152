/* The usage of buckets: counted in every change that puts or removes versions
 * (docs/local-storage.md, L11), and compared with the rows by the scrub. For storages of an older
 * format, the usage and the rows of owners (L13) are built at the start. */
#include "object/local/local_int.h"

static bool is_nothing(const struct bucket_usage *u)
{
    return !(u->objects | u->bytes | u->old_versions | u->old_bytes);
}

int usage_get(struct local_bucket *b, struct db_view *view, struct bucket_usage *out,
              struct err *err)
{
    struct buf value = BUF_INIT(0);
    int code = db_get(view, b->local->rows, str_n(b->usage_row, ROW_BUCKET_LEN), &value, err);

    *out = (struct bucket_usage){0};
    if (code == 0)
        code = usage_record_get(buf_str(&value), out, err);
    buf_release(&value);
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* A count that would fall below zero was wrong before, and becomes 0. The scrub corrects the count;
 * a wrong count is no reason to refuse a write. */
int change_count_end(struct row_change *c, struct err *err)
{
    struct bucket_usage u = {0}, *more = &c->counted;
    uint64_t *const counts[] = {&u.objects, &u.bytes, &u.old_versions, &u.old_bytes};
    const uint64_t add[] = {more->objects, more->bytes, more->old_versions, more->old_bytes};
    struct buf value = BUF_INIT(0);

    if (is_nothing(more))
        return 0;
    int code = usage_get(c->b, c->view, &u, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        bool falls = add[i] >> 63; /* differences are modulo 2^64 */
        *counts[i] = falls && *counts[i] < 0 - add[i] ? 0 : *counts[i] + add[i];
    }
    usage_record_put(&value, &u);
    db_tx_put(c->tx, c->b->local->rows, str_n(c->b->usage_row, ROW_BUCKET_LEN), buf_str(&value));
    buf_release(&value);
    return 0;
}

int local_usage(struct bucket *bucket, struct bucket_usage *out, struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);

    return usage_get(b, db_latest(b->local->db), out, err);
}

/* --- counting rows --- */

/* Counts the rows under the tag. A record that cannot be read is not counted, because no change can
 * remove it either. */
static int count_rows(struct local_bucket *b, struct db_view *view, enum tag tag,
                      struct bucket_usage *out, struct err *err)
{
    struct buf end = BUF_INIT(0);
    struct db_iter *it = NULL;
    struct object_record r;
    struct str key, value;
    struct row row;

    struct str from = row_key(&row, b, tag, STR_EMPTY);
    db_prefix_end(from, &end);
    struct db_range range = {.from = from, .to = buf_str(&end)};
    int code = db_iter_open(&it, view, b->local->rows, &range, err);
    while (code == 0 && (code = db_iter_next(it, &key, &value, err)) == 0)
        if (record_get(value, &r, NULL) == 0)
            record_count(out, &r, tag == TAG_OBJECT, 1);
    db_iter_close(it);
    buf_release(&end);
    return code == ERR_END ? 0 : code;
}

static int usage_count(struct local_bucket *b, struct db_view *view, struct bucket_usage *out,
                       struct err *err)
{
    *out = (struct bucket_usage){0};
    int code = count_rows(b, view, TAG_OBJECT, out, err);
    return code < 0 ? code : count_rows(b, view, TAG_VERSION, out, err);
}

static int build_one(struct local *l, struct str name, struct str bucket_row, struct err *err)
{
    struct local_bucket shell = {.local = l};
    struct buf value = BUF_INIT(0);
    struct bucket_record r;
    struct bucket_usage u;
    struct row row;
    int code = bucket_record_get(bucket_row, &r, err);

    if (code < 0)
        return code;
    shell.id = r.id;
    code = usage_count(&shell, db_latest(l->db), &u, err);
    usage_record_put(&value, &u);
    if (code == 0)
        code = db_put(l->db, l->rows, row_id(&row, l, TAG_USAGE, r.id), buf_str(&value),
                      DB_VOLATILE, err);
    if (code == 0)
        code = db_put(l->db, l->rows, row_owned(&row, l, r.info.owner, name), STR_EMPTY,
                      DB_VOLATILE, err);
    buf_release(&value);
    return code;
}

int usage_build(struct local *l, struct err *err)
{
    struct buf start = BUF_INIT(0), end = BUF_INIT(0);
    struct db_iter *it = NULL;
    struct str key, value;
    struct row row;

    buf_append_str(&start, row_tag(&row, l, TAG_BUCKET));
    db_prefix_end(buf_str(&start), &end);
    struct db_range range = {.from = buf_str(&start), .to = buf_str(&end)};
    int code = db_iter_open(&it, db_latest(l->db), l->rows, &range, err);
    while (code == 0 && (code = db_iter_next(it, &key, &value, err)) == 0)
        code = build_one(l, str_skip(key, ROW_PREFIX_LEN), value, err);
    db_iter_close(it);
    buf_release(&start);
    buf_release(&end);
    return code == ERR_END ? 0 : code;
}

/* --- comparing and correcting counts, for the scrub --- */

/* Sets *missing to the difference between the rows and the usage row, both read in one snapshot. */
static int usage_compare(struct local_bucket *b, struct bucket_usage *missing, struct err *err)
{
    struct db_view *view = NULL;
    struct bucket_usage kept = {0};
    int code = db_snapshot(&view, b->local->db, err);

    if (code < 0)
        return code;
    code = usage_count(b, view, missing, err);
    if (code == 0)
        code = usage_get(b, view, &kept, err);
    db_snapshot_free(view);
    if (code < 0)
        return code;
    missing->objects -= kept.objects;
    missing->bytes -= kept.bytes;
    missing->old_versions -= kept.old_versions;
    missing->old_bytes -= kept.old_bytes;
    return 0;
}

struct mend_change {
    struct row_change change;
    struct bucket_usage missing;
};

static int mend_run(struct row_change *c, struct err *err)
{
    (void)err;
    c->counted = container_of(c, struct mend_change, change)->missing;
    return 0;
}

int usage_mend(struct local_bucket *b, bool *was_wrong, struct err *err)
{
    struct mend_change m = {.change = {.b = b, .fn = mend_run}};
    int code = usage_compare(b, &m.missing, err);

    *was_wrong = code == 0 && !is_nothing(&m.missing);
    if (!*was_wrong)
        return code;
    /* A write after the comparison changes rows and counts by the same amount, so the difference
     * stays the same. */
    code = change_apply(&m.change, err);
    if (code == ERR_NO_BUCKET)
        *was_wrong = false; /* the bucket was removed meanwhile */
    return code == ERR_NO_BUCKET ? 0 : code;
}
