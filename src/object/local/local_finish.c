/* Finishing an upload: its parts become an object, in one change and without moving a byte. */
#include "object/local/local_int.h"
#include "base/clock.h"

enum { FINISHED_FOR_MS = MS_PER_DAY };

bool local_row_expired(struct str key, struct str value, int64_t now_wall_ms)
{
    struct finish_record r;

    if (key.len <= ROW_PREFIX_LEN || key.p[ROW_PREFIX_LEN - 1] != TAG_FINISHED)
        return false;
    return finish_record_get(value, &r, NULL) == 0 && r.until_ms <= now_wall_ms;
}

struct finish_change {
    struct row_change change;
    unsigned char id[UPLOAD_ID_LEN];
    const struct upload_part *parts;
    size_t count;
    const struct put_options *o;
    struct object_meta meta; /* the meta of `o`, after verify() was called */
    struct object_record r;
    struct buf upload_row, list, etag, digests; /* r points into them */
    uint64_t request;
    bool versioned;
};

/* Returns a hash of the request, by which the same request is recognized when it comes again, also
 * after the key has moved to another shard. */
static uint64_t request_hash(const struct local_bucket *b, struct str key,
                             const struct upload_part *parts, size_t count)
{
    uint64_t h = hash_xxh3(key, b->logical.id * 31 + count);

    for (size_t i = 0; i < count; i++)
        h = hash_xxh3(parts[i].etag, h * 31 + parts[i].number);
    return h;
}

static struct str bare_etag(struct str etag)
{
    if (etag.len >= 2 && etag.p[0] == '"' && etag.p[etag.len - 1] == '"')
        return str_n(etag.p + 1, etag.len - 2);
    return etag;
}

static int part_matches(const struct upload_part *asked, const struct part_record *have,
                        struct err *err)
{
    const struct object_checksum *want = &asked->checksum;

    if (!str_eq(bare_etag(asked->etag), have->etag) ||
        (want->type != CHECKSUM_NONE && have->checksum.type != CHECKSUM_NONE &&
         (want->kind != have->checksum.kind || !str_eq(want->value, have->checksum.value))))
        return err_set(err, ERR_INVALID, "InvalidPart");
    return 0;
}

static int finish_add_part(struct finish_change *p, size_t i, struct buf *value, struct err *err)
{
    struct row_change *c = &p->change;
    struct local *l = c->b->local;
    const struct upload_part *asked = &p->parts[i];
    struct part_record have = {0};
    unsigned char md5[16];
    struct row row;

    buf_reset(value);
    int code = db_get(c->view, l->rows, row_part(&row, l, p->id, asked->number), value, err);
    if (code == ERR_NOT_FOUND)
        return err_set(err, ERR_INVALID, "InvalidPart");
    if (code == 0)
        code = part_record_get(buf_str(value), &have, err);
    if (code == 0)
        code = part_matches(asked, &have, err);
    if (code == 0 && i + 1 < p->count && have.size < l->part_min)
        code = err_set(err, ERR_INVALID, "EntityTooSmall");
    if (code < 0)
        return code;
    piece_put(&p->list,
              &(struct piece){asked->number, have.blob, have.offset, have.size, have.checksum});
    p->r.size += have.size;
    /* An ETag that is not an MD5, such as that of an encrypted body, goes into the digest as
     * text. */
    if (hex_parse(have.etag, md5, sizeof(md5)))
        buf_append(&p->digests, md5, sizeof(md5));
    else
        buf_append_str(&p->digests, have.etag);
    return 0;
}

static void finish_etag(struct finish_change *p)
{
    struct digest_value md5;

    if (p->o->etag.len) {
        buf_append_str(&p->etag, p->o->etag);
    } else {
        digest_of(DIGEST_MD5, buf_str(&p->digests), &md5);
        buf_append_hex(&p->etag, md5.bytes, md5.len);
        buf_appendf(&p->etag, "-%zu", p->count);
    }
    p->r.etag = buf_str(&p->etag);
}

static int finish_gather(struct finish_change *p, struct err *err)
{
    struct row_change *c = &p->change;
    struct local *l = c->b->local;
    struct buf value = BUF_INIT(0);
    struct row row;
    int code = 0;

    for (size_t i = 0; i < p->count && code == 0; i++)
        code = finish_add_part(p, i, &value, err);
    buf_release(&value);
    if (code < 0)
        return code;
    finish_etag(p);
    p->r.part_count = (uint32_t)p->count;
    p->r.where = WHERE_PARTS;
    p->r.parts = buf_str(&p->list);
    if (p->count > RECORD_PARTS_MAX) {
        p->r.where = WHERE_PARTED;
        p->r.id = blob_bytes_id(l);
        p->r.checksum = hash_xxh3(buf_str(&p->list), 0);
        db_tx_put(c->tx, l->bytes, row_bytes(&row, l, p->r.id), buf_str(&p->list));
    }
    return buf_error(&p->list);
}

/* Answers a request to finish an upload that was finished before: the same key and parts get the
 * same answer. */
static int finish_again(struct finish_change *p, struct err *err)
{
    struct row_change *c = &p->change;
    struct local *l = c->b->local;
    struct finish_record done = {0};
    struct row row;

    buf_reset(&p->upload_row);
    int code =
        db_get(c->view, l->rows, row_name(&row, l, TAG_FINISHED, str_n(p->id, UPLOAD_ID_LEN)),
               &p->upload_row, err);
    if (code == 0)
        code = finish_record_get(buf_str(&p->upload_row), &done, err);
    if (code == ERR_NOT_FOUND ||
        (code == 0 && (done.until_ms <= db_tx_now_ms(c->tx) || done.request != p->request)))
        return err_set(err, ERR_NOT_FOUND, "no such upload");
    if (code < 0)
        return code;
    p->r = (struct object_record){.is_null = done.sequence == 0,
                                  .sequence = done.sequence,
                                  .size = done.size,
                                  .modified_ms = done.modified_ms,
                                  .etag = done.etag};
    p->versioned = done.versioned;
    return 0;
}

static void finish_remember(struct finish_change *p)
{
    struct row_change *c = &p->change;
    struct local *l = c->b->local;
    struct buf value = BUF_INIT(0);
    struct row row;

    finish_record_put(&value, &(struct finish_record){
                                  .until_ms = db_tx_now_ms(c->tx) + FINISHED_FOR_MS,
                                  .request = p->request,
                                  .sequence = p->r.is_null ? 0 : p->r.sequence,
                                  .versioned = p->versioned,
                                  .size = p->r.size,
                                  .modified_ms = p->r.modified_ms,
                                  .etag = p->r.etag,
                              });
    db_tx_put(c->tx, l->rows, row_name(&row, l, TAG_FINISHED, str_n(p->id, UPLOAD_ID_LEN)),
              buf_str(&value));
    buf_release(&value);
}

static int finish_upload(struct finish_change *p, struct err *err)
{
    struct row_change *c = &p->change;
    struct stored current = {0};
    struct upload_record upload;
    struct kept_parts kept = {p->parts, p->count};
    struct row row;
    int code = upload_record_get(buf_str(&p->upload_row), &upload, err);

    if (code == 0)
        code = change_current(c, &current, err);
    struct condition_state now = record_state(&current.r);
    if (code == 0)
        code = conditions_judge_write(&p->o->conditions, &now, err);
    if (code == 0)
        code = finish_gather(p, err);
    if (code == 0) {
        p->r.meta = upload.meta;
        p->r.headers_raw = upload.headers_raw;
        if (p->meta.checksum.type != CHECKSUM_NONE)
            p->r.meta.checksum = p->meta.checksum;
        code = upload_drop_parts(c, p->id, &kept, err);
    }
    if (code == 0)
        code = change_install(c, &current, &p->r, err);
    if (code == 0)
        code = change_tell(c, p->o->note, CHANGE_PUT | THINGS_OF_OBJECT, &p->r, err);
    if (code == 0) {
        db_tx_delete(c->tx, c->b->local->rows, row_upload(&row, c->b, c->key, p->id));
        p->versioned = c->bucket.info.versions != VERSIONS_NEVER;
        finish_remember(p);
    }
    stored_release(&current);
    return code;
}

static int finish_run(struct row_change *c, struct err *err)
{
    struct finish_change *p = container_of(c, struct finish_change, change);

    buf_reset(&p->upload_row);
    buf_reset(&p->list);
    buf_reset(&p->etag);
    buf_reset(&p->digests);
    p->r = (struct object_record){0};
    int code = upload_there(c, p->id, &p->upload_row, err);
    return code == ERR_NOT_FOUND ? finish_again(p, err) : code < 0 ? code : finish_upload(p, err);
}

static int order_check(const struct upload_part *parts, size_t count, struct err *err)
{
    if (count == 0 || count > OBJECT_MAX_PARTS)
        return err_set(err, ERR_INVALID, "InvalidPart");
    for (size_t i = 1; i < count; i++)
        if (parts[i].number <= parts[i - 1].number)
            return err_set(err, ERR_INVALID, "InvalidPartOrder");
    return 0;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int local_upload_finish(struct bucket *bucket, struct arena *a, const struct upload_info *upload,
                        const struct upload_part *parts, size_t count, const struct put_options *o,
                        struct put_result *out, struct err *err)
{
    struct finish_change p = {
        .change = {.b = local_bucket_of(bucket), .key = upload->key, .fn = finish_run},
        .parts = parts,
        .count = count,
        .o = o,
        .meta = o->meta,
        .request = request_hash(local_bucket_of(bucket), upload->key, parts, count),
    };
    int code = change_key(&p.change, err);

    if (code == 0)
        code = order_check(parts, count, err);
    if (code == 0)
        code = upload_id_parse(upload->id, p.id, err);
    if (code == 0 && o->verify)
        code = o->verify(o->ctx, &p.meta, err);
    if (code == 0)
        code = change_apply(&p.change, err);
    if (code == 0) {
        *out = (struct put_result){
            .etag = arena_str(a, p.r.etag), .modified_ms = p.r.modified_ms, .size = p.r.size};
        if (p.versioned)
            out->version = version_text(p.change.b, a, upload->key, &p.r);
        code = arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
    }
    buf_release(&p.upload_row);
    buf_release(&p.list);
    buf_release(&p.etag);
    buf_release(&p.digests);
    return code;
}
