/* Uploads of many parts: begin, part, part from a copy, abort. */
#include "object/local/local_int.h"
#include "base/bytes.h"
#include "base/ids.h"

#include <stdlib.h>

int upload_id_parse(struct str text, unsigned char id[UPLOAD_ID_LEN], struct err *err)
{
    return hex_parse(text, id, UPLOAD_ID_LEN) ? 0 : err_set(err, ERR_NOT_FOUND, "no such upload");
}

/* --- beginning an upload --- */

struct begin_change {
    struct row_change change;
    const struct object_meta *meta;
    unsigned char id[UPLOAD_ID_LEN];
};

/* Makes the upload's id and row. Ids begin with the sequence number, so that the uploads of a key
 * are listed in the order in which they began. */
static int upload_begin_run(struct row_change *c, struct err *err)
{
    struct begin_change *p = container_of(c, struct begin_change, change);
    struct upload_record r = {.started_ms = db_tx_now_ms(c->tx), .meta = *p->meta};
    struct buf value = BUF_INIT(0);
    struct row row;
    uint64_t sequence;
    int code = change_sequence(c, &sequence, err);

    for (size_t i = 0; i < 8; i++)
        p->id[i] = (unsigned char)(sequence >> (56 - 8 * i));
    upload_record_put(&value, &r);
    if (code == 0)
        code = buf_error(&value);
    if (code == 0)
        db_tx_put(c->tx, c->b->local->rows, row_upload(&row, c->b, c->key, p->id), buf_str(&value));
    buf_release(&value);
    return code;
}

int local_upload_begin(struct bucket *bucket, struct arena *a, struct str key,
                       const struct object_meta *meta, struct str *id, struct err *err)
{
    struct begin_change p = {
        .change = {.b = local_bucket_of(bucket), .key = key, .fn = upload_begin_run}, .meta = meta};
    int code = key_check(key, err);

    random_bytes(p.id + 8, sizeof(p.id) - 8);
    if (code == 0)
        code = blob_space(p.change.b->local, 0, err);
    if (code == 0)
        code = change_apply(&p.change, err);
    if (code < 0)
        return code;
    *id = arena_hex(a, p.id, sizeof(p.id));
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* --- storing parts --- */

struct part_change {
    struct row_change change;
    unsigned char id[UPLOAD_ID_LEN];
    uint32_t number;
    struct part_record r;
    const struct blob *blob; /* a new blob; NULL: r names a blob of `from` */
    struct local_bucket *from;
    const struct object_info *source;
    char etag[33]; /* MD5 in hex of the bytes that the part shares */
};

int upload_there(struct row_change *c, const unsigned char id[UPLOAD_ID_LEN], struct buf *value,
                 struct err *err)
{
    struct row row;
    int code = db_get(c->view, c->b->local->rows, row_upload(&row, c->b, c->key, id), value, err);

    return code == ERR_NOT_FOUND ? err_set(err, ERR_NOT_FOUND, "no such upload") : code;
}

static int drop_part(struct row_change *c, struct str value, struct err *err)
{
    struct part_record old;
    int code = part_record_get(value, &old, err);

    return code < 0 ? code : change_unref(c, old.blob, err);
}

/* Checks that the source still names the blob that the part shares. */
static int source_check(struct part_change *p, struct err *err)
{
    struct stored source = {0};
    struct row_change *c = &p->change;
    struct buf parts = BUF_INIT(0);
    struct piece piece;
    bool found = false;
    int code = stored_find(&source, c->view, p->from, p->source->key, p->source->version, err);

    if (code == 0 && source.r.where == WHERE_BLOB)
        found = source.r.id == p->r.blob;
    else if (code == 0)
        code = stored_parts(&parts, c->view, c->b->local, &source.r, err);
    struct str rest = buf_str(&parts);
    while (code == 0 && !found && (code = piece_next(&rest, &piece, err)) == 0)
        found = piece.blob == p->r.blob;
    stored_release(&source);
    buf_release(&parts);
    if (!found && (code == 0 || code == ERR_END || code == ERR_AGAIN))
        return err_set(err, ERR_CONFLICT, "the source of the copy has changed");
    return code;
}

static int take_blob(struct part_change *p, struct err *err)
{
    struct row_change *c = &p->change;
    struct local *l = c->b->local;
    struct buf value = BUF_INIT(0);
    struct row row;

    if (!p->blob) {
        int code = source_check(p, err);
        return code < 0 ? code : change_ref(c, p->r.blob, err);
    }
    blob_record_put(&value, &(struct blob_record){1, p->blob->size, p->blob->checksum});
    db_tx_put(c->tx, l->rows, row_id(&row, l, TAG_BLOB, p->r.blob), buf_str(&value));
    buf_release(&value);
    return 0;
}

static int part_run(struct row_change *c, struct err *err)
{
    struct part_change *p = container_of(c, struct part_change, change);
    struct local *l = c->b->local;
    struct buf value = BUF_INIT(0);
    struct row row;
    int code = upload_there(c, p->id, &value, err);

    if (code == 0)
        code = take_blob(p, err);
    if (code == 0) {
        buf_reset(&value);
        code = db_get(c->view, l->rows, row_part(&row, l, p->id, p->number), &value, err);
        if (code == 0)
            code = drop_part(c, buf_str(&value), err);
        else if (code == ERR_NOT_FOUND)
            code = 0;
    }
    if (code == 0) {
        p->r.modified_ms = db_tx_now_ms(c->tx);
        buf_reset(&value);
        part_record_put(&value, &p->r);
        db_tx_put(c->tx, l->rows, row_part(&row, l, p->id, p->number), buf_str(&value));
    }
    buf_release(&value);
    return code;
}

static int part_begin(struct part_change *p, struct bucket *b, const struct upload_info *upload,
                      uint32_t number, struct err *err)
{
    p->change = (struct row_change){.b = local_bucket_of(b), .key = upload->key, .fn = part_run};
    p->number = number;
    if (number < 1 || number > OBJECT_MAX_PARTS)
        return err_set(err, ERR_INVALID, "part numbers are 1 to %d", OBJECT_MAX_PARTS);
    int code = key_check(upload->key, err);
    return code < 0 ? code : upload_id_parse(upload->id, p->id, err);
}

static int part_answer(const struct part_change *p, struct arena *a, struct upload_part *out,
                       struct err *err)
{
    *out = (struct upload_part){
        .number = p->number,
        .size = p->r.size,
        .modified_ms = p->r.modified_ms,
        .etag = arena_str(a, p->r.etag),
        .checksum = p->r.checksum,
    };
    out->checksum.value = arena_str(a, p->r.checksum.value);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Finds the upload before a long body is read. `out` points into `value`. */
static int upload_check(struct part_change *p, struct buf *value, struct upload_record *out,
                        struct err *err)
{
    struct local_bucket *b = p->change.b;
    struct row row;
    int code = db_get(db_latest(b->local->db), b->local->rows,
                      row_upload(&row, b, p->change.key, p->id), value, err);

    if (code == ERR_NOT_FOUND)
        return err_set(err, ERR_NOT_FOUND, "no such upload");
    return code < 0 ? code : upload_record_get(buf_str(value), out, err);
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int local_upload_part(struct bucket *bucket, struct arena *a, const struct upload_info *upload,
                      uint32_t number, struct reader *body, uint64_t size,
                      const struct put_options *o, struct upload_part *out, struct err *err)
{
    struct part_change p = {0};
    struct local *l = local_bucket_of(bucket)->local;
    struct object_meta meta = o->meta;
    struct blob_source from = {.body = body, .size = size, .md5 = o->etag.len == 0};
    struct buf row = BUF_INIT(0);
    struct upload_record begun = {0};
    struct blob blob = {0};
    int code = part_begin(&p, bucket, upload, number, err);

    if (code == 0)
        code = upload_check(&p, &row, &begun, err);
    if (code == 0)
        code = blob_take(l, &from, &(struct blob_target){o, &begun.meta, number}, &blob, NULL, err);
    buf_release(&row);
    if (code == 0 && o->verify)
        code = o->verify(o->ctx, &meta, err);
    p.r = (struct part_record){.size = blob.plain, .blob = blob.id, .checksum = meta.checksum};
    p.r.etag = o->etag.len ? o->etag : str_z(blob.etag);
    p.blob = &blob;
    if (code == 0)
        code = change_apply(&p.change, err);
    if (code == 0)
        return part_answer(&p, a, out, err);
    blob_unused(l, &p.change, blob.id);
    return code;
}

/* Finds the blob that contains the whole range, and sets p->r. *found false: the range is in
 * several blobs, or in none. */
static int range_blob(struct part_change *p, const struct object_record *r, const uint64_t range[2],
                      bool *found, struct err *err)
{
    struct local *l = p->change.b->local;
    struct buf parts = BUF_INIT(0);
    struct piece piece = {.blob = r->id, .offset = r->offset, .size = r->size};
    uint64_t at = 0;
    int code = 0;

    if (r->where == WHERE_PARTS || r->where == WHERE_PARTED) {
        code = stored_parts(&parts, db_latest(l->db), l, r, err);
        struct str rest = buf_str(&parts);
        while (code == 0 && (code = piece_next(&rest, &piece, err)) == 0 &&
               at + piece.size <= range[0])
            at += piece.size;
        buf_release(&parts);
    } else if (r->where != WHERE_BLOB) {
        return 0;
    }
    if (code < 0)
        return code == ERR_END ? 0 : code;
    *found = range[0] + range[1] <= at + piece.size;
    p->r.blob = piece.blob;
    p->r.offset = piece.offset + (range[0] - at);
    p->r.size = range[1];
    return 0;
}

/* Whether the part can share the source's bytes. If so, p->r says which bytes. */
static int find_shared(struct part_change *p, const struct get_result *got, bool *shared,
                       struct err *err)
{
    struct stored source = {0};
    uint64_t range[2] = {got->first, got->len};
    int code = stored_find(&source, db_latest(p->change.b->local->db), p->from, p->source->key,
                           p->source->version, err);

    if (code == 0 && got->len > 0 && !source.r.meta.encryption.len)
        code = range_blob(p, &source.r, range, shared, err);
    stored_release(&source);
    return code;
}

/* Whether the source's ETag is the MD5 that the part needs: the range must be a whole object that
 * was put whole. */
static bool etag_is_md5(const struct get_result *got)
{
    return got->len == got->info.size && got->info.part_count == 0 && got->info.etag.len == 32 &&
           got->info.meta.encryption.len == 0;
}

/* Uses the MD5 of the range that the caller has given, if it has given one. */
static int part_take_md5(struct part_change *p, struct str text, struct err *err)
{
    unsigned char md5[MD5_LEN];

    if (text.len && !hex_parse(text, md5, sizeof(md5)))
        return err_set(err, ERR_INVALID, "the MD5 of a part is not one");
    if (text.len)
        memcpy(p->etag, text.p, 2 * MD5_LEN);
    return 0;
}

/* Computes MD5 and checksum of the shared bytes where they are not known. */
static int digest_shared(struct part_change *p, struct get_result *got, struct arena *a,
                         struct err *err)
{
    struct object_checksum *sum = &p->r.checksum;
    bool sums = sum->type != CHECKSUM_NONE && !sum->value.len;
    bool is_given = p->etag[0] != '\0', has_md5 = is_given || etag_is_md5(got);
    struct digests *d;
    struct digest_value value;

    if (has_md5 && !is_given)
        memcpy(p->etag, got->info.etag.p, 32);
    if (has_md5 && !sums)
        return 0;
    d = digests_new((has_md5 ? 0 : 1u << DIGEST_MD5) | (sums ? 1u << sum->kind : 0));
    int code = blob_digest(got->body, d, err);
    if (code == 0 && !has_md5) {
        digests_final(d, DIGEST_MD5, &value);
        md5_hex(p->etag, value.bytes);
    }
    if (code == 0 && sums) {
        digests_final(d, sum->kind, &value);
        sum->value = digest_text(a, &value);
    }
    digests_free(d);
    return code;
}

static int share_part(struct part_change *p, struct get_result *got, struct arena *a,
                      struct upload_part *out, struct err *err)
{
    int code = digest_shared(p, got, a, err);

    p->r.etag = str_z(p->etag);
    if (code == 0)
        code = change_apply(&p->change, err);
    return code < 0 ? code : part_answer(p, a, out, err);
}

/* Uploads a part by reading bytes that cannot be shared. ERR_UNSUPPORTED: the caller must compute
 * the checksum, which is not known. */
static int upload_copy_part(struct bucket *bucket, struct arena *a,
                            const struct upload_info *upload, struct get_result *got,
                            struct upload_part *part, struct err *err)
{
    struct put_options o = {.meta.checksum = part->checksum};

    if (part->checksum.type != CHECKSUM_NONE && !part->checksum.value.len)
        return err_set(err, ERR_UNSUPPORTED, "the checksum of the part is not known");
    return local_upload_part(bucket, a, upload, part->number, got->body, got->len, &o, part, err);
}

/* The arguments of local_upload_part_copy(), without the source's bucket. */
struct part_copy {
    struct bucket *to;
    struct arena *a;
    const struct upload_info *upload;
    uint32_t number;
    const struct object_info *source;
    const struct object_range *range;
    struct upload_part *out;
};

/* Makes the part from the opened source. */
static int part_copy_from(const struct part_copy *c, struct part_change *p, struct bucket *from,
                          struct get_result *got, struct err *err)
{
    bool shared = false;
    int code = got->unlock ? err_set(err, ERR_UNSUPPORTED, "the source is sealed") : 0;

    if (code < 0)
        return code;
    if (from->ops == &local_bucket_ops && local_bucket_of(from)->local == p->change.b->local) {
        p->from = local_bucket_of(from);
        code = find_shared(p, got, &shared, err);
    }
    p->r.checksum = c->out->checksum;
    c->out->number = c->number;
    if (code == 0)
        code = part_take_md5(p, c->out->etag, err);
    if (code < 0)
        return code;
    return shared ? share_part(p, got, c->a, c->out, err)
                  : upload_copy_part(c->to, c->a, c->upload, got, c->out, err);
}

static int part_copy_run(void *ctx, struct bucket *from, struct err *err)
{
    const struct part_copy *c = ctx;
    struct part_change p = {.source = c->source};
    struct object_conditions same = {.if_match = c->source->etag};
    struct get_result got = {0};
    struct buf row = BUF_INIT(0);
    struct upload_record begun = {0};
    int code = part_begin(&p, c->to, c->upload, c->number, err);

    if (code == 0)
        code = upload_check(&p, &row, &begun, err);
    if (code == 0 && begun.meta.encryption.len)
        code = err_set(err, ERR_UNSUPPORTED, "the upload is sealed");
    buf_release(&row);
    if (code == 0)
        code = from->ops->get(from, c->a, c->source->key, c->source->version, &same, c->range, &got,
                              err);
    if (code == 0)
        code = part_copy_from(c, &p, from, &got, err);
    reader_close(got.body);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int local_upload_part_copy(struct bucket *bucket, struct arena *a, const struct upload_info *upload,
                           uint32_t number, struct bucket *from, const struct object_info *source,
                           const struct object_range *range, struct upload_part *out,
                           struct err *err)
{
    struct part_copy c = {bucket, a, upload, number, source, range, out};

    return from->ops->lend ? from->ops->lend(from, source->key, part_copy_run, &c, err)
                           : part_copy_run(&c, from, err);
}

/* --- aborting an upload --- */

struct abort_change {
    struct row_change change;
    unsigned char id[UPLOAD_ID_LEN];
};

static int by_part(const void *a, const void *b)
{
    const struct upload_part *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

int upload_drop_parts(struct row_change *c, const unsigned char id[UPLOAD_ID_LEN],
                      const struct kept_parts *kept, struct err *err)
{
    struct local *l = c->b->local;
    struct buf start = BUF_INIT(0), end = BUF_INIT(0);
    struct db_iter *it = NULL;
    struct str key, value;
    struct row row;

    buf_append_str(&start, row_name(&row, l, TAG_PART, str_n(id, UPLOAD_ID_LEN)));
    db_prefix_end(buf_str(&start), &end);
    struct db_range range = {.from = buf_str(&start), .to = buf_str(&end)};
    int code = db_iter_open(&it, c->view, l->rows, &range, err);
    while (code == 0 && (code = db_iter_next(it, &key, &value, err)) == 0) {
        struct upload_part part = {.number =
                                       (uint32_t)be_read(key.p + start.len, key.len - start.len)};
        if (!kept || !bsearch(&part, kept->parts, kept->count, sizeof(part), by_part))
            code = drop_part(c, value, err);
        db_tx_delete(c->tx, l->rows, key);
    }
    db_iter_close(it);
    buf_release(&start);
    buf_release(&end);
    return code == ERR_END ? 0 : code;
}

static int abort_run(struct row_change *c, struct err *err)
{
    struct abort_change *p = container_of(c, struct abort_change, change);
    struct buf value = BUF_INIT(0);
    struct row row;
    int code = upload_there(c, p->id, &value, err);

    if (code == 0)
        code = upload_drop_parts(c, p->id, NULL, err);
    if (code == 0)
        db_tx_delete(c->tx, c->b->local->rows, row_upload(&row, c->b, c->key, p->id));
    buf_release(&value);
    return code;
}

int local_upload_abort(struct bucket *bucket, const struct upload_info *upload, struct err *err)
{
    struct abort_change p = {
        .change = {
            .b = local_bucket_of(bucket), .key = upload->key, .fn = abort_run, .frees = true}};
    int code = key_check(upload->key, err);

    if (code == 0)
        code = upload_id_parse(upload->id, p.id, err);
    return code < 0 ? code : change_apply(&p.change, err);
}
