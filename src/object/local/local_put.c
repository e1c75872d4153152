/* Writing objects: put and copy. */
#include "object/local/local_int.h"
#include "os/file.h"

#include <stdlib.h>

struct put_change {
    struct row_change change;
    const struct put_options *o;
    struct object_record r; /* the new version; the change sets its sequence and time */
    struct blob blob;
    struct buf small; /* the bytes of an inline body */
};

struct copy_change {
    struct row_change change;
    const struct put_options *o;
    const struct object_meta *meta;
    struct local_bucket *from;
    const struct object_info *source;
    struct object_record r;
    struct buf etag; /* the source's ETag; r.etag points into it */
};

/* Writes the row of an inline body or of a blob, in the same change as the object's row. */
static void put_whole_body(struct put_change *p)
{
    struct local *l = p->change.b->local;
    struct buf value = BUF_INIT(0);
    struct row row;

    if (p->r.where == WHERE_INLINE)
        db_tx_put(p->change.tx, l->bytes, row_bytes(&row, l, p->r.id), buf_str(&p->small));
    if (p->r.where != WHERE_BLOB)
        return;
    blob_record_put(&value, &(struct blob_record){1, p->blob.size, p->blob.checksum});
    db_tx_put(p->change.tx, l->rows, row_id(&row, l, TAG_BLOB, p->r.id), buf_str(&value));
    buf_release(&value);
}

static int put_run(struct row_change *c, struct err *err)
{
    struct put_change *p = container_of(c, struct put_change, change);

    put_whole_body(p);
    int code = change_install(c, &c->current, &p->r, err);
    return code < 0 ? code : change_tell(c, p->o->note, CHANGE_PUT | THINGS_OF_OBJECT, &p->r, err);
}

int put_answer(const struct row_change *c, struct arena *a, const struct object_record *r,
               struct put_result *out, struct err *err)
{
    *out = (struct put_result){
        .etag = arena_str(a, r->etag), .modified_ms = r->modified_ms, .size = r->size};
    if (c->bucket.info.versions != VERSIONS_NEVER)
        out->version = version_text(c->b, a, c->key, r);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

static void put_begin(struct put_change *p, struct local_bucket *b, struct str key,
                      const struct put_options *o)
{
    *p = (struct put_change){
        .change = {.b = b, .key = key, .conditions = &o->conditions, .fn = put_run},
        .o = o,
        .blob = {.fd = -1}};
}

/* Stores the bytes, as a file or in p->small, and fills the record. */
static int put_take(struct put_change *p, const struct blob_source *from, struct err *err)
{
    const struct put_options *o = p->o;
    const struct blob *blob = &p->blob;
    int code = change_key(&p->change, err);

    if (code == 0)
        code = blob_take(p->change.b->local, from, &(struct blob_target){o, &o->meta, 0}, &p->blob,
                         &p->small, err);
    p->r.meta = o->meta;
    if (code == 0 && o->verify)
        code = o->verify(o->ctx, &p->r.meta, err);
    p->r.size = blob->plain;
    p->r.etag = o->etag.len ? o->etag : str_z(blob->etag);
    p->r.where = blob->id ? WHERE_BLOB : blob->size ? WHERE_INLINE : WHERE_NONE;
    p->r.id = blob->id ? blob->id : blob->bytes_id;
    p->r.checksum = blob->checksum;
    return code;
}

/* Finishes a put whose change returned `code`. Returns `code`, or the error of making the
 * result. */
static int put_end(struct put_change *p, struct arena *a, struct put_result *out, int code,
                   struct err *err)
{
    fd_close(&p->blob.fd);
    if (code < 0)
        blob_unused(p->change.b->local, &p->change, p->blob.id);
    else
        code = put_answer(&p->change, a, &p->r, out, err);
    buf_release(&p->small);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int local_put(struct bucket *bucket, struct arena *a, struct str key, struct reader *body,
              uint64_t size, const struct put_options *o, struct put_result *out, struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct blob_source from = {body, size, b->local->inline_max, o->etag.len == 0};
    struct put_change p;

    put_begin(&p, b, key, o);
    int code = put_take(&p, &from, err);
    if (code == 0)
        code = change_apply(&p.change, err);
    return put_end(&p, a, out, code, err);
}

/* --- several puts --- */

/* Makes the files durable, and then the folders that have them. A folder is synced once for each
 * run of files that follow each other in it (docs/local-storage.md, L7). */
static int puts_sync(struct put_change *all, size_t count, struct err *err)
{
    struct local *l = all[0].change.b->local;
    uint64_t last = 0;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++)
        if (all[i].blob.fd >= 0)
            code = blob_sync_file(l, &all[i].blob, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        uint64_t id = all[i].blob.id;
        if (id && !(last && blob_is_beside(id, last)))
            code = blob_sync_folder(l, id, err);
        last = id ? id : last;
    }
    return code;
}

int local_put_all(struct bucket *bucket, struct arena *a, struct object_put *puts, size_t count,
                  struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct put_change *all = xcalloc(count, sizeof(*all));
    struct str_reader body;
    int code = 0;

    for (size_t i = 0; i < count; i++) {
        const struct object_put *put = &puts[i];
        struct blob_source from = {&body.reader, put->bytes.len, b->local->inline_max,
                                   put->o.etag.len == 0, .later = true};
        put_begin(&all[i], b, put->key, &put->o);
        str_reader_init(&body, put->bytes);
        if (code == 0)
            code = put_take(&all[i], &from, err);
    }
    if (code == 0)
        code = puts_sync(all, count, err);
    if (code == 0)
        code = change_apply_all(&all[0].change, sizeof(all[0]), count, err);
    int made = code;
    for (size_t i = 0; i < count; i++) {
        int ended = put_end(&all[i], a, &puts[i].result, made, err);
        code = code < 0 ? code : ended;
    }
    free(all);
    return code;
}

/* --- copying --- */

static int copy_find_source(struct copy_change *p, struct stored *source, struct err *err)
{
    struct row_change *c = &p->change;
    int code = stored_find(source, c->view, p->from, p->source->key, p->source->version, err);

    if (code == 0 && source->r.is_marker)
        return err_code(err, ERR_NOT_FOUND);
    /* The copy's data key belongs to the source that the caller saw (docs/encryption.md, E6). */
    if (code == 0 && (!str_eq(source->r.etag, p->source->etag) ||
                      !str_eq(source->r.meta.encryption, p->source->meta.encryption)))
        return err_set(err, ERR_CONFLICT, "the source of the copy has changed");
    return code;
}

static int copy_change_run(struct row_change *c, struct err *err)
{
    struct copy_change *p = container_of(c, struct copy_change, change);
    struct stored source = {0};
    int code = copy_find_source(p, &source, err);

    if (code == 0) {
        p->r = source.r;
        p->r.meta = *p->meta;
        p->r.headers_raw = STR_EMPTY;
        buf_reset(&p->etag);
        buf_append_str(&p->etag, p->o->etag.len ? p->o->etag : source.r.etag);
        p->r.etag = buf_str(&p->etag);
        code = change_share(c, &p->r, err); /* must come before the old version is dropped */
    }
    if (code == 0)
        code = change_install(c, &c->current, &p->r, err);
    if (code == 0)
        code = change_tell(c, p->o->note, CHANGE_PUT | THINGS_OF_OBJECT, &p->r, err);
    stored_release(&source);
    return code;
}

/* The arguments of a copy whose source is a bucket with parts (object/overlay.h). */
struct lent_copy {
    struct bucket *to;
    struct arena *a;
    struct str key;
    const struct object_info *source;
    const struct put_options *o;
    struct put_result *out;
};

static int copy_lent(void *ctx, struct bucket *part, struct err *err)
{
    const struct lent_copy *c = ctx;

    return local_copy(c->to, c->a, c->key, part, c->source, c->o, c->out, err);
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int local_copy(struct bucket *bucket, struct arena *a, struct str key, struct bucket *from,
               const struct object_info *source, const struct put_options *o,
               struct put_result *out, struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct object_meta meta = o->meta;
    struct copy_change p = {
        .change = {.b = b, .key = key, .conditions = &o->conditions, .fn = copy_change_run},
        .o = o,
        .meta = &meta,
        .source = source};
    struct lent_copy lent = {bucket, a, key, source, o, out};
    int code = change_key(&p.change, err);

    if (code == 0 && from->ops->lend)
        return from->ops->lend(from, source->key, copy_lent, &lent, err);
    if (code == 0 && from->ops != &local_bucket_ops)
        return err_set(err, ERR_UNSUPPORTED, "the source is on another storage");
    if (code < 0)
        return code;
    p.from = local_bucket_of(from);
    if (p.from->local != b->local)
        return err_set(err, ERR_UNSUPPORTED, "the source is on another storage");
    /* A copy of sealed bytes is sealed too (docs/encryption.md, E1). */
    if (!source->meta.encryption.len != !o->meta.encryption.len)
        return err_set(err, ERR_UNSUPPORTED, "only one of source and copy is sealed");
    code = blob_space(b->local, 0, err);
    if (code == 0 && o->verify)
        code = o->verify(o->ctx, &meta, err);
    if (code == 0)
        code = change_apply(&p.change, err);
    if (code == 0)
        code = put_answer(&p.change, a, &p.r, out, err);
    buf_release(&p.etag);
    return code;
}
