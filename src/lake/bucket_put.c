/* Putting and copying objects into the lake's buckets (docs/lake-s3.md, S2 and S3). */
#include "lake/address.h"
#include "lake/body.h"
#include "lake/bucket_int.h"
#include "lake/keep.h"

/* Checks the key and the options of a write, before the first byte of the body is read. */
static int bucket_prepare(struct bucket_change *c, const struct put_options *o,
                          struct lake_entry *entry, struct err *err)
{
    int code = lake_bucket_check_meta(&o->meta, err);

    if (code == 0)
        code = lake_bucket_check_write(c->b, c->a, &c->at, err);
    return code < 0 ? code : lake_entry_take_meta(entry, c->a, &o->meta, err);
}

int lake_bucket_put(struct bucket *bucket, struct arena *a, struct str key, struct reader *body,
                    uint64_t size, const struct put_options *o, struct put_result *out,
                    struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);
    struct bucket_change c = {
        .b = b, .a = a, .at = lake_bucket_at(b, key), .conditions = &o->conditions};
    struct lake_entry entry = {0};
    int code = bucket_prepare(&c, o, &entry, err);

    if (code == 0)
        code = lake_body_put(b->lake, a, &b->repo, body, size, o, &entry, err);
    return code < 0 ? code : bucket_change_finish(&c, &entry, out, err);
}

/* --- copying --- */

/* Finds the entry of the source, which may be at any ref of any repository. */
static int copy_find(struct lake_bucket *from, struct arena *a, const struct object_info *source,
                     struct lake_entry *out, struct err *err)
{
    struct lake_at at = lake_bucket_at(from, source->key);
    struct lake_object found;
    int code = lake_stat(from->lake, a, &from->repo, at.ref, at.path, &found, err);

    if (code < 0)
        return code;
    if (!str_eq(found.entry.etag, source->etag))
        return err_code(err, ERR_CONFLICT);
    *out = found.entry;
    return 0;
}

/* Copies the body of an entry of another repository. */
static int copy_from_repo(struct bucket_change *c, struct lake_bucket *from,
                          const struct put_options *o, struct lake_entry *entry, struct err *err)
{
    struct get_result head = {0};
    struct object_place p;
    int code = lake_address_open(&p, from->lake, c->a, &from->repo, entry, PLACE_READ, err);

    if (code < 0)
        return code;
    code = p.bucket->ops->head(p.bucket, c->a, p.key, STR_EMPTY, NULL, &head, err);
    struct lake_body_source source = {p.bucket, &head.info};
    struct str etag = entry->etag;
    if (code == 0)
        code = lake_address_check(&p, entry, &head.info, err);
    if (code == 0 && head.info.meta.encryption.len)
        code = ERR_UNSUPPORTED;
    if (code == 0)
        code = lake_body_copy(c->b->lake, c->a, &c->b->repo, &source, o, entry, err);
    entry->etag = etag;
    return object_place_end(&p, code, err);
}

/* Copies from a bucket of any kind. Inside a repository the new entry has the address of the old
 * one, so no byte moves. */
static int copy_entry_body(struct bucket_change *c, struct bucket *from,
                           const struct object_info *source, const struct put_options *o,
                           struct lake_entry *entry, bool *shares, struct err *err)
{
    struct lake_body_source plain = {from, source};
    int code;

    *shares = false;
    if (from->ops != &lake_bucket_ops)
        return source->meta.encryption.len
                   ? ERR_UNSUPPORTED
                   : lake_body_copy(c->b->lake, c->a, &c->b->repo, &plain, o, entry, err);
    struct lake_bucket *other = lake_bucket_of(from);
    code = copy_find(other, c->a, source, entry, err);
    *shares = code == 0 && str_eq(other->repo.partition, c->b->repo.partition);
    return code < 0 || *shares ? code : copy_from_repo(c, other, o, entry, err);
}

/* Sets the time of the copied entry and the checksum that the request asked for. */
static void copy_describe(struct lake_entry *entry, const struct put_options *o)
{
    entry->modified_ms = clock_wall_ms();
    entry->checksum_type = o->meta.checksum.type;
    entry->checksum_kind = o->meta.checksum.kind;
    entry->checksum = o->meta.checksum.value;
    if (o->etag.len)
        entry->etag = o->etag;
}

int lake_bucket_copy(struct bucket *bucket, struct arena *a, struct str key, struct bucket *from,
                     const struct object_info *source, const struct put_options *o,
                     struct put_result *out, struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);
    struct bucket_change c = {
        .b = b, .a = a, .at = lake_bucket_at(b, key), .conditions = &o->conditions};
    struct lake_entry entry = {0}, meta = {0};
    struct lake_keep keep;
    bool shares = false;
    int code = bucket_prepare(&c, o, &meta, err);

    if (code == 0)
        code = lake_keep_begin(&keep, b->lake, a, &b->repo, err);
    if (code == 0)
        code = copy_entry_body(&c, from, source, o, &entry, &shares, err);
    if (code == 0)
        code = lake_entry_take_meta(&entry, a, &o->meta, err);
    if (code < 0)
        return code;
    copy_describe(&entry, o);
    if (!shares)
        return bucket_change_finish(&c, &entry, out, err);
    c.keep = &keep;
    return bucket_change_put(&c, &entry, out, err);
}
