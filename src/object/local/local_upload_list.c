/* Listing uploads and their parts. */
#include "object/local/local_int.h"
#include "base/bytes.h"

struct gathered {
    VEC(struct upload_info) uploads;
    VEC(struct str) prefixes;
};

static void gathered_release(struct gathered *g)
{
    vec_release(&g->uploads);
    vec_release(&g->prefixes);
}

static int upload_info_get(struct upload_info *out, struct arena *a, struct str key, struct str id,
                           struct str value, struct err *err)
{
    struct upload_record r;
    int code = upload_record_get(value, &r, err);

    *out = (struct upload_info){0};
    if (code == 0)
        code = upload_record_info(&r, a, out, err);
    out->key = arena_str(a, key);
    out->id = arena_hex(a, id.p, id.len);
    return code < 0 ? code : arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Appends the row key where the listing begins: after the upload `after_version` of the key
 * `after`, or after all uploads of that key. */
static void uploads_start(struct buf *out, struct local_bucket *b, const struct list_options *o)
{
    unsigned char id[UPLOAD_ID_LEN];
    struct row row;

    if (o->after.len && o->after.len <= OBJECT_KEY_MAX &&
        hex_parse(o->after_version, id, sizeof(id))) {
        buf_append_str(out, row_upload(&row, b, o->after, id));
        buf_append_char(out, '\0');
        return;
    }
    list_start(out, b, TAG_UPLOAD, o);
}

static int uploads_gather(struct db_iter *it, struct local_bucket *b, struct arena *a,
                          const struct list_options *o, struct gathered *g, struct upload_list *out,
                          struct err *err)
{
    size_t limit = size_min(o->limit, OBJECT_LIST_MAX);
    struct upload_info info;
    struct str row, value;
    int code;

    while ((code = db_iter_next(it, &row, &value, err)) == 0) {
        if (row.len <= ROW_BUCKET_LEN + ROW_UPLOAD_TAIL)
            return err_set(err, ERR_CORRUPT, "the key of an upload's row is too short");
        struct str key = str_skip(str_head(row, row.len - ROW_UPLOAD_TAIL), ROW_BUCKET_LEN);
        struct str common = list_common(key, o);
        if (g->uploads.len + g->prefixes.len == limit) {
            out->more = true;
            return 0;
        }
        if (common.len) {
            struct buf end = BUF_INIT(0);
            struct row prefix_row;
            out->next_key = arena_str(a, common);
            out->next_id = STR_EMPTY;
            vec_push(&g->prefixes, out->next_key);
            db_prefix_end(row_key(&prefix_row, b, TAG_UPLOAD, out->next_key), &end);
            db_iter_seek(it, buf_str(&end));
            buf_release(&end);
            continue;
        }
        code = upload_info_get(&info, a, key, str_skip(row, row.len - UPLOAD_ID_LEN), value, err);
        if (code < 0)
            return code;
        vec_push(&g->uploads, info);
        out->next_key = info.key;
        out->next_id = info.id;
    }
    return code == ERR_END ? 0 : code;
}

static int gathered_take(const struct gathered *g, struct arena *a, struct upload_list *out,
                         struct err *err)
{
    out->count = g->uploads.len;
    out->prefix_count = g->prefixes.len;
    out->uploads = arena_array(a, out->count, sizeof(*out->uploads));
    out->prefixes = arena_array(a, out->prefix_count, sizeof(*out->prefixes));
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    if (out->count)
        memcpy(out->uploads, g->uploads.items, out->count * sizeof(*out->uploads));
    if (out->prefix_count)
        memcpy(out->prefixes, g->prefixes.items, out->prefix_count * sizeof(*out->prefixes));
    return 0;
}

int local_list_uploads(struct bucket *bucket, struct arena *a, const struct list_options *o,
                       struct upload_list *out, struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct db_view *latest = db_latest(b->local->db);
    struct buf start = BUF_INIT(0), end = BUF_INIT(0), bucket_row = BUF_INIT(0);
    struct gathered g = {0};
    struct bucket_record r;
    struct db_iter *it = NULL;
    struct row row;
    int code = bucket_row_get(b, latest, &bucket_row, &r, err);

    *out = (struct upload_list){0};
    struct str prefix = row_key(&row, b, TAG_UPLOAD, str_head(o->prefix, OBJECT_KEY_MAX));
    db_prefix_end(prefix, &end);
    struct db_range range = {.from = prefix, .to = buf_str(&end)};
    if (code == 0)
        code = db_iter_open(&it, latest, b->local->rows, &range, err);
    if (code == 0 && o->limit > 0 && o->prefix.len <= OBJECT_KEY_MAX) {
        uploads_start(&start, b, o);
        db_iter_seek(it, buf_str(&start));
        code = uploads_gather(it, b, a, o, &g, out, err);
    }
    if (code == 0)
        code = gathered_take(&g, a, out, err);
    db_iter_close(it);
    gathered_release(&g);
    buf_release(&start);
    buf_release(&end);
    buf_release(&bucket_row);
    return fence_checked(b, code, err);
}

/* --- listing the parts of an upload --- */

static int part_info(struct upload_part *out, struct arena *a, uint32_t number, struct str value,
                     struct err *err)
{
    struct part_record r;
    int code = part_record_get(value, &r, err);

    if (code < 0)
        return code;
    *out = (struct upload_part){.number = number,
                                .size = r.size,
                                .modified_ms = r.modified_ms,
                                .etag = arena_str(a, r.etag),
                                .checksum = r.checksum};
    out->checksum.value = arena_str(a, r.checksum.value);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

static int find_upload(struct part_list *out, struct db_view *view, struct local_bucket *b,
                       struct arena *a, const struct upload_info *upload, unsigned char *id,
                       struct err *err)
{
    struct buf value = BUF_INIT(0);
    struct row row;
    int code = key_check(upload->key, err);

    if (code == 0)
        code = upload_id_parse(upload->id, id, err);
    if (code == 0)
        code = db_get(view, b->local->rows, row_upload(&row, b, upload->key, id), &value, err);
    if (code == ERR_NOT_FOUND)
        code = err_set(err, ERR_NOT_FOUND, "no such upload");
    if (code == 0)
        code = upload_info_get(&out->upload, a, upload->key, str_n(id, UPLOAD_ID_LEN),
                               buf_str(&value), err);
    buf_release(&value);
    return code;
}

static int gather_parts(struct db_iter *it, struct arena *a, size_t limit, struct part_list *out,
                        struct err *err)
{
    struct str row, value;
    int code;

    while ((code = db_iter_next(it, &row, &value, err)) == 0) {
        if (out->count == limit) {
            out->more = true;
            return 0;
        }
        code = part_info(&out->parts[out->count], a, be32_read(row.p + row.len - 4), value, err);
        if (code < 0)
            return code;
        out->count++;
    }
    return code == ERR_END ? 0 : code;
}

int local_list_parts(struct bucket *bucket, struct arena *a, const struct upload_info *upload,
                     uint32_t after, size_t limit, struct part_list *out, struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct local *l = b->local;
    unsigned char id[UPLOAD_ID_LEN];
    struct buf end = BUF_INIT(0);
    struct db_view *view = NULL;
    struct db_iter *it = NULL;
    struct row row;
    int code = db_snapshot(&view, l->db, err);

    *out = (struct part_list){0};
    if (code == 0)
        code = find_upload(out, view, b, a, upload, id, err);
    if (code == 0) {
        limit = size_min(limit, OBJECT_MAX_PARTS);
        out->parts = arena_array(a, limit, sizeof(*out->parts));
        if (limit && !out->parts)
            code = err_code(err, ERR_NO_MEMORY);
        db_prefix_end(row_name(&row, l, TAG_PART, str_n(id, sizeof(id))), &end);
    }
    if (code == 0 && after < UINT32_MAX && limit > 0) {
        struct db_range range = {.from = row_part(&row, l, id, after + 1), .to = buf_str(&end)};
        code = db_iter_open(&it, view, l->rows, &range, err);
        if (code == 0)
            code = gather_parts(it, a, limit, out, err);
    }
    db_iter_close(it);
    db_snapshot_free(view);
    buf_release(&end);
    return fence_checked(b, code, err);
}

/* --- listing the parts of an object --- */

static int gather_pieces(struct str list, struct arena *a, uint32_t after, struct part_list *out,
                         size_t limit, struct err *err)
{
    struct piece piece;
    int code;

    while ((code = piece_next(&list, &piece, err)) == 0) {
        if (piece.number <= after)
            continue;
        if (out->count == limit) {
            out->more = true;
            return 0;
        }
        struct upload_part *part = &out->parts[out->count++];
        *part = (struct upload_part){
            .number = piece.number, .size = piece.size, .checksum = piece.checksum};
        part->checksum.value = arena_str(a, piece.checksum.value);
    }
    return code == ERR_END ? 0 : code;
}

int local_object_parts(struct bucket *bucket, struct arena *a, const struct object_info *object,
                       uint32_t after, size_t limit, struct part_list *out, struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct db_view *view = NULL;
    struct stored found = {0};
    struct buf list = BUF_INIT(0);
    int code = db_snapshot(&view, b->local->db, err);

    *out = (struct part_list){0};
    if (code == 0)
        code = stored_find(&found, view, b, object->key, object->version, err);
    if (code == 0 && found.r.part_count)
        code = stored_parts(&list, view, b->local, &found.r, err);
    limit = size_min(limit, found.r.part_count);
    if (code == 0 && found.r.part_count) {
        out->parts = arena_array(a, limit + 1, sizeof(*out->parts));
        code = out->parts ? gather_pieces(buf_str(&list), a, after, out, limit, err)
                          : err_code(err, ERR_NO_MEMORY);
    }
    if (code == 0 && arena_error(a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    stored_release(&found);
    db_snapshot_free(view);
    buf_release(&list);
    return fence_checked(b, code, err);
}
