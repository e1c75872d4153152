/* Begins, fills and aborts uploads in parts. */
#include "lake/upload.h"

#include "lake/address.h"
#include "lake/body.h"
#include "object/condition.h"

#include "base/clock.h"
#include "base/ids.h"

/* An operation on an upload: the record of the upload, and the place where its parts are stored. */
struct upload_work {
    struct lake_bucket *b;
    struct arena *a;
    const struct upload_info *upload;
    struct lake_upload record;
    struct object_place place;
    struct upload_info data; /* names the upload in the namespace's bucket */
};

static int work_open_place(struct upload_work *w, enum place_use use, struct err *err)
{
    int code = lake_place_open_below(&w->place, w->b->lake, w->a, &w->b->repo, w->record.address,
                                     use, err);

    w->data = (struct upload_info){.key = w->place.key, .id = w->record.data_id};
    return code;
}

/* Reads the record of an upload that is not finished, and opens the place where its parts are
 * stored. */
static int work_open(struct upload_work *w, struct bucket *b, struct arena *a,
                     const struct upload_info *upload, enum place_use use, struct err *err)
{
    *w = (struct upload_work){.b = lake_bucket_of(b), .a = a, .upload = upload};
    int code = lake_upload_read(&w->record, w->b, a, upload, err);

    if (code == 0 && w->record.finished_ms)
        code = err_set(err, ERR_NOT_FOUND, "the upload is finished");
    return code < 0 ? code : work_open_place(w, use, err);
}

/* --- beginning --- */

static int upload_begin_data(struct upload_work *w, const struct object_meta *meta, struct err *err)
{
    struct object_meta own = {.owner = w->b->repo.owner,
                              .storage_class = meta->storage_class,
                              .checksum = meta->checksum};
    int code;

    w->record.address = lake_new_address(w->a);
    code = work_open_place(w, PLACE_READ, err);
    if (code < 0)
        return code;
    struct bucket *data = w->place.bucket;
    code = object_place_seal(&w->place, &own, err);
    if (code == 0)
        code = data->ops->upload_begin(data, w->a, w->place.key, &own, &w->record.data_id, err);
    return object_place_end(&w->place, code, err);
}

/* Aborts the upload in the namespace's bucket. If there is no such upload there, that counts as
 * success. */
static int upload_abort_data(struct upload_work *w, struct err *err)
{
    int code = work_open_place(w, PLACE_READ, err);

    if (code < 0)
        return code;
    code = w->place.bucket->ops->upload_abort(w->place.bucket, &w->data, err);
    return object_place_end(&w->place, code == ERR_NOT_FOUND ? 0 : code, err);
}

static int upload_describe(struct upload_work *w, const struct object_meta *meta, struct err *err)
{
    struct lake_entry entry = {.checksum_type = meta->checksum.type,
                               .checksum_kind = meta->checksum.kind};
    struct buf encoded = {0};
    int code = lake_entry_take_meta(&entry, w->a, meta, err);

    if (code < 0)
        return code;
    lake_entry_write(&encoded, &entry);
    w->record.entry = arena_str(w->a, buf_str(&encoded));
    code = buf_error(&encoded);
    buf_release(&encoded);
    w->record.initiator = meta->owner;
    w->record.started_ms = clock_wall_ms();
    return code < 0 ? err_code(err, code) : 0;
}

int lake_upload_begin(struct bucket *bucket, struct arena *a, struct str key,
                      const struct object_meta *meta, struct str *id, struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);
    struct upload_work w = {.b = b, .a = a};
    struct lake_at at = lake_bucket_at(b, key);
    char text[ID_TIME_LEN + 1];
    int code = lake_bucket_check_meta(meta, err);

    if (code == 0)
        code = lake_bucket_check_write(b, a, &at, err);
    if (code == 0)
        code = upload_describe(&w, meta, err);
    if (code == 0)
        code = upload_begin_data(&w, meta, err);
    if (code < 0)
        return code;
    id_time(text);
    *id = arena_str(a, str_z(text));
    w.record.name = lake_upload_name(b, a, key, *id);
    code = lake_upload_write(&w.record, b, a, true, err);
    /* No client knows the upload, so it is aborted. If that fails, its parts are collected
     * later. */
    if (code < 0) {
        struct err late = {0};
        (void)!upload_abort_data(&w, &late);
    }
    return code == ERR_NOT_FOUND ? err_code(err, ERR_NO_BUCKET) : code;
}

/* --- parts --- */

int lake_upload_part(struct bucket *b, struct arena *a, const struct upload_info *upload,
                     uint32_t number, struct reader *body, uint64_t size,
                     const struct put_options *o, struct upload_part *out, struct err *err)
{
    struct upload_work w;
    int code = work_open(&w, b, a, upload, PLACE_READ, err);

    if (code < 0)
        return code;
    struct bucket *data = w.place.bucket;
    struct body_pass *pass = body_pass_new(a, &w.place, body, o);
    code = pass ? 0 : err_code(err, ERR_NO_MEMORY);
    if (code == 0) {
        struct put_options own = body_pass_options(pass);
        own.meta.checksum = o->meta.checksum;
        code = data->ops->upload_part(data, a, &w.data, number, body_pass_reader(pass), size, &own,
                                      out, err);
    }
    return object_place_end(&w.place, code, err);
}

/* Copies a range of an object that is on the same storage as the parts. */
static int part_copy_data(struct upload_work *w, uint32_t number, struct bucket *from,
                          const struct object_info *source, const struct object_range *range,
                          struct upload_part *out, struct err *err)
{
    struct bucket *data = w->place.bucket;

    if (data->ops != from->ops || data->storage != from->storage || source->meta.encryption.len)
        return ERR_UNSUPPORTED;
    return data->ops->upload_part_copy(data, w->a, &w->data, number, from, source, range, out, err);
}

/* As part_copy_data(), but the source is an object of a repository. */
static int part_copy_entry(struct upload_work *w, uint32_t number, struct lake_bucket *from,
                           const struct object_info *source, const struct object_range *range,
                           struct upload_part *out, struct err *err)
{
    struct lake_at at = lake_bucket_at(from, source->key);
    struct get_result head = {0};
    struct lake_object found;
    struct object_place p = {0};
    int code = lake_stat(from->lake, w->a, &from->repo, at.ref, at.path, &found, err);

    if (code == 0 && !str_eq(found.entry.etag, source->etag))
        code = err_code(err, ERR_CONFLICT);
    if (code == 0)
        code = lake_address_open(&p, from->lake, w->a, &from->repo, &found.entry, PLACE_READ, err);
    if (code != 0)
        return code;
    code = p.bucket->ops->head(p.bucket, w->a, p.key, STR_EMPTY, NULL, &head, err);
    if (code == 0)
        code = lake_address_check(&p, &found.entry, &head.info, err);
    if (code == 0)
        code = part_copy_data(w, number, p.bucket, &head.info, range, out, err);
    return object_place_end(&p, code, err);
}

int lake_upload_part_copy(struct bucket *b, struct arena *a, const struct upload_info *upload,
                          uint32_t number, struct bucket *from, const struct object_info *source,
                          const struct object_range *range, struct upload_part *out,
                          struct err *err)
{
    struct upload_work w;
    int code = work_open(&w, b, a, upload, PLACE_READ, err);

    if (code < 0)
        return code;
    if (from->ops == &lake_bucket_ops)
        code = part_copy_entry(&w, number, lake_bucket_of(from), source, range, out, err);
    else
        code = part_copy_data(&w, number, from, source, range, out, err);
    return object_place_end(&w.place, code, err);
}

int lake_upload_list_parts(struct bucket *b, struct arena *a, const struct upload_info *upload,
                           uint32_t after, size_t limit, struct part_list *out, struct err *err)
{
    struct upload_work w;
    int code = work_open(&w, b, a, upload, PLACE_READ, err);

    if (code < 0)
        return code;
    struct bucket *data = w.place.bucket;
    code = data->ops->list_parts(data, a, &w.data, after, limit, out, err);
    code = object_place_end(&w.place, code, err);
    return code < 0 ? code
                    : lake_upload_info(&w.record, a, upload->key, upload->id, &out->upload, err);
}

/* --- aborting --- */

int lake_upload_abort(struct bucket *b, const struct upload_info *upload, struct err *err)
{
    struct arena a = {0};
    struct upload_work w = {.b = lake_bucket_of(b), .a = &a, .upload = upload};
    int code = lake_upload_read(&w.record, w.b, &a, upload, err);

    if (code == 0 && w.record.finished_ms)
        code = err_set(err, ERR_NOT_FOUND, "the upload is finished");
    if (code == 0)
        code = upload_abort_data(&w, err);
    if (code == 0)
        code = lake_row_remove(w.b->lake, &a, &w.b->repo, w.record.name, err);
    arena_release(&a);
    return code;
}
