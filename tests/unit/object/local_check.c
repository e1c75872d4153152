/* Whether a local storage's rows and files agree. */
#include "unit/object/local_check.h"

#include "object/local/local_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

struct holder {
    uint64_t bucket;
    struct bucket_usage rows; /* as its rows add up */
};

struct look {
    struct local *l;
    VEC(uint64_t) blobs, bytes; /* every mention */
    VEC(struct holder) buckets;
    struct buf last_version; /* bucket id and key of the v row seen last */
    uint64_t files, owned;
};

typedef int row_fn(struct look *k, struct str key, struct str value, struct err *err);

static int wrong(struct err *err, const char *what, struct str key)
{
    struct buf hex = BUF_INIT(0);

    buf_append_hex(&hex, key.p, key.len);
    int code = err_set(err, ERR_CORRUPT, "%s: row " STR_FMT " (%s)", what,
                       STR_ARG(str_skip(key, size_min(key.len, ROW_BUCKET_LEN))), hex.p);
    buf_release(&hex);
    return code;
}

static int each(struct look *k, struct db_cf *cf, struct str prefix, row_fn *fn, struct err *err)
{
    struct buf start = BUF_INIT(0), end = BUF_INIT(0);
    struct db_iter *it = NULL;
    struct str key, value;

    buf_append_str(&start, prefix);
    db_prefix_end(prefix, &end);
    struct db_range range = {.from = buf_str(&start), .to = buf_str(&end)};
    int code = db_iter_open(&it, db_latest(k->l->db), cf, &range, err);
    while (code == 0 && (code = db_iter_next(it, &key, &value, err)) == 0)
        code = fn(k, key, value, err);
    db_iter_close(it);
    buf_release(&start);
    buf_release(&end);
    return code == ERR_END ? 0 : code;
}

static int each_tag(struct look *k, enum tag tag, row_fn *fn, struct err *err)
{
    struct row row;
    return each(k, k->l->rows, row_tag(&row, k->l, tag), fn, err);
}

static int mention(struct look *k, const struct object_record *r, struct err *err)
{
    struct buf parts = BUF_INIT(0);
    struct piece piece;
    uint64_t size = 0;
    uint32_t count = 0;
    int code = 0;

    if (r->where == WHERE_BLOB)
        vec_push(&k->blobs, r->id);
    if (r->where == WHERE_INLINE || r->where == WHERE_PARTED)
        vec_push(&k->bytes, r->id);
    if (r->where != WHERE_PARTS && r->where != WHERE_PARTED)
        return 0;
    code = stored_parts(&parts, db_latest(k->l->db), k->l, r, err);
    struct str rest = buf_str(&parts);
    while (code == 0 && (code = piece_next(&rest, &piece, err)) == 0) {
        vec_push(&k->blobs, piece.blob);
        size += piece.size;
        count++;
    }
    buf_release(&parts);
    if (code == ERR_END)
        code = size == r->size && count == r->part_count
                   ? 0
                   : err_set(err, ERR_CORRUPT, "a list of parts does not add up");
    return code;
}

static struct holder *holder_of(struct look *k, struct str key)
{
    uint64_t id = row_u64(str_skip(key, ROW_PREFIX_LEN));

    for (size_t i = 0; i < k->buckets.len; i++)
        if (k->buckets.items[i].bucket == id)
            return &k->buckets.items[i];
    return NULL;
}

static int in_bucket(struct look *k, struct str key, struct err *err)
{
    return holder_of(k, key) ? 0 : wrong(err, "no bucket (L5)", key);
}

static int is_owned(struct look *k, struct str owner, struct str name, struct err *err)
{
    struct buf value = BUF_INIT(0);
    struct row row;
    int code =
        db_get(db_latest(k->l->db), k->l->rows, row_owned(&row, k->l, owner, name), &value, err);

    buf_release(&value);
    return code == ERR_NOT_FOUND ? wrong(err, "a bucket that its owner has not (L13)", name) : code;
}

static int see_bucket(struct look *k, struct str key, struct str value, struct err *err)
{
    struct bucket_record r;
    int code = bucket_record_get(value, &r, err);

    vec_push(&k->buckets, (struct holder){.bucket = r.id});
    if (code == 0)
        code = is_owned(k, r.info.owner, str_skip(key, ROW_PREFIX_LEN), err);
    return code;
}

/* All buckets have theirs: what is more belongs to none. */
static int see_owned(struct look *k, struct str key, struct str value, struct err *err)
{
    k->owned++;
    return k->owned > k->buckets.len ? wrong(err, "an owner's row of no bucket (L13)", key) : 0;
}

static int see_object(struct look *k, struct str key, struct str value, struct err *err)
{
    struct object_record r;
    int code = record_get(value, &r, err);

    if (code == 0 && r.is_marker)
        code = wrong(err, "a marker in o (L1)", key);
    if (code == 0)
        code = in_bucket(k, key, err);
    if (code < 0)
        return code;
    struct bucket_usage *held = &holder_of(k, key)->rows;
    held->objects++;
    held->bytes += r.size;
    return mention(k, &r, err);
}

/* The rows of o and n that go with a v row. */
static int look_up(struct look *k, enum tag tag, struct str name, struct buf *out, struct err *err)
{
    struct row row;

    buf_reset(out);
    row_name(&row, k->l, tag, name);
    int code = db_get(db_latest(k->l->db), k->l->rows, str_n(row.bytes, row.len), out, err);
    return code == ERR_NOT_FOUND ? 0 : code;
}

static int see_version(struct look *k, struct str key, struct str value, struct err *err)
{
    struct str name = str_skip(str_head(key, key.len - ROW_VERSION_TAIL), ROW_PREFIX_LEN);
    uint64_t sequence = ~row_u64(str_skip(key, key.len - 8));
    struct object_record r, current;
    struct buf other = BUF_INIT(0);
    int code = record_get(value, &r, err);

    if (code == 0 && r.sequence != sequence)
        code = wrong(err, "another sequence in the record (L4)", key);
    if (code == 0)
        code = in_bucket(k, key, err);
    if (code == 0)
        code = look_up(k, TAG_OBJECT, name, &other, err);
    if (code == 0 && other.len) {
        code = record_get(buf_str(&other), &current, err);
        if (code == 0 && current.sequence <= sequence)
            code = wrong(err, "newer than o (L2)", key);
        if (code == 0 && current.is_null && r.is_null)
            code = wrong(err, "two null versions (L3)", key);
    } else if (code == 0 && !str_eq(name, buf_str(&k->last_version)) && !r.is_marker) {
        code = wrong(err, "the newest is no marker and not in o (L1)", key);
    }
    if (code == 0)
        code = look_up(k, TAG_NULL, name, &other, err);
    if (code == 0 && r.is_null && (other.len != 8 || row_u64(buf_str(&other)) != sequence))
        code = wrong(err, "a null version without its n row (L3)", key);
    buf_reset(&k->last_version);
    buf_append_str(&k->last_version, name);
    buf_release(&other);
    if (code < 0)
        return code;
    struct bucket_usage *held = &holder_of(k, key)->rows;
    held->old_versions += !r.is_marker;
    held->old_bytes += r.is_marker ? 0 : r.size;
    return mention(k, &r, err);
}

static int see_null(struct look *k, struct str key, struct str value, struct err *err)
{
    struct buf version = BUF_INIT(0);
    struct buf name = BUF_INIT(0);
    struct object_record r;

    buf_append_str(&name, str_skip(key, ROW_PREFIX_LEN));
    buf_append_char(&name, '\0');
    buf_append_be64(&name, ~row_u64(value));
    int code = look_up(k, TAG_VERSION, buf_str(&name), &version, err);
    if (code == 0 && version.len == 0)
        code = wrong(err, "an n row without its version (L3)", key);
    if (code == 0)
        code = record_get(buf_str(&version), &r, err);
    if (code == 0 && !r.is_null)
        code = wrong(err, "an n row of a version that is not null (L3)", key);
    buf_release(&version);
    buf_release(&name);
    return code;
}

static int see_part(struct look *k, struct str key, struct str value, struct err *err)
{
    struct part_record r;
    int code = part_record_get(value, &r, err);

    vec_push(&k->blobs, r.blob);
    return code;
}

static size_t mentions(const uint64_t *ids, size_t count, uint64_t id)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        n += ids[i] == id;
    return n;
}

static int see_blob(struct look *k, struct str key, struct str value, struct err *err)
{
    uint64_t id = row_u64(str_skip(key, ROW_PREFIX_LEN));
    struct buf path = BUF_INIT(0);
    struct blob_record r;
    struct stat st;
    int code = blob_record_get(value, &r, err);

    if (code == 0 && mentions(k->blobs.items, k->blobs.len, id) != r.refs)
        code = wrong(err, "a wrong count of references (L6)", key);
    blob_path(&path, k->l, id);
    if (code == 0 && (stat(path.p, &st) != 0 || (uint64_t)st.st_size != r.size))
        code = err_set(err, ERR_CORRUPT, "%s is missing or has another size", path.p);
    buf_release(&path);
    return code;
}

static int see_garbage(struct look *k, struct str key, struct str value, struct err *err)
{
    return wrong(err, "garbage that was not collected", key);
}

static int see_bytes(struct look *k, struct str key, struct str value, struct err *err)
{
    if (mentions(k->bytes.items, k->bytes.len, row_u64(str_skip(key, 4))) != 1)
        return wrong(err, "bytes that are not named once", key);
    return 0;
}

static int blob_there(struct look *k, uint64_t id, struct err *err)
{
    struct buf value = BUF_INIT(0);
    struct row row;
    int code =
        db_get(db_latest(k->l->db), k->l->rows, row_id(&row, k->l, TAG_BLOB, id), &value, err);

    buf_release(&value);
    return code == ERR_NOT_FOUND
               ? err_set(err, ERR_CORRUPT, "blob %016llx has no row", (unsigned long long)id)
               : code;
}

static int see_file(void *ctx, uint64_t id, const char *path, struct err *err)
{
    struct look *k = ctx;

    k->files++;
    if (id == 0 || blob_there(k, id, err) < 0)
        return err_set(err, ERR_CORRUPT, "%s is a leftover", path);
    return 0;
}

static int count_file(void *ctx, uint64_t id, const char *path, struct err *err)
{
    ++*(size_t *)ctx;
    return 0;
}

int local_check_files(struct storage *s, size_t *count, struct err *err)
{
    struct local *l = local_of(s);
    int code = 0;

    *count = 0;
    for (uint32_t epoch = 1; epoch <= l->epoch && code == 0; epoch++)
        code = epoch_each_file(l, epoch, count_file, count, err);
    return code;
}

/* Counts that were compared are taken away: what is left has no row. */
static int see_usage(struct look *k, struct str key, struct str value, struct err *err)
{
    struct holder *h = holder_of(k, key);
    struct bucket_usage u;
    int code = usage_record_get(value, &u, err);

    if (code < 0 || !h)
        return code < 0 ? code : wrong(err, "counts of no bucket (L11)", key);
    if (u.objects != h->rows.objects || u.bytes != h->rows.bytes ||
        u.old_versions != h->rows.old_versions || u.old_bytes != h->rows.old_bytes)
        return wrong(err, "counts that are not those of the rows (L11)", key);
    h->rows = (struct bucket_usage){0};
    return 0;
}

static int all_counted(struct look *k, struct err *err)
{
    for (size_t i = 0; i < k->buckets.len; i++)
        if (k->buckets.items[i].rows.objects || k->buckets.items[i].rows.old_versions)
            return err_set(err, ERR_CORRUPT, "a bucket that was not counted (L11)");
    return 0;
}

int local_check_whole(struct storage *s, struct err *err)
{
    static const struct {
        enum tag tag;
        row_fn *fn;
    } tags[] = {{TAG_BUCKET, see_bucket},   {TAG_OWNED, see_owned},     {TAG_OBJECT, see_object},
                {TAG_VERSION, see_version}, {TAG_NULL, see_null},       {TAG_PART, see_part},
                {TAG_BLOB, see_blob},       {TAG_GARBAGE, see_garbage}, {TAG_USAGE, see_usage}};
    struct look k = {.l = local_of(s)};
    struct row row;
    int code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(tags) && code == 0; i++)
        code = each_tag(&k, tags[i].tag, tags[i].fn, err);
    if (code == 0)
        code = all_counted(&k, err);
    if (code == 0) /* the storage's id alone */
        code = each(&k, k.l->bytes, str_head(row_tag(&row, k.l, TAG_BLOB), 4), see_bytes, err);
    for (size_t i = 0; i < k.blobs.len && code == 0; i++)
        code = blob_there(&k, k.blobs.items[i], err);
    for (uint32_t epoch = 1; epoch <= k.l->epoch && code == 0; epoch++)
        code = epoch_each_file(k.l, epoch, see_file, &k, err);
    vec_release(&k.blobs);
    vec_release(&k.bytes);
    vec_release(&k.buckets);
    buf_release(&k.last_version);
    return code;
}
