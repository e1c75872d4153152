/* Finishes an upload in parts, in three steps: finishes the upload in the namespace's bucket,
 * stages the entry, and marks the record of the upload as finished. If weir stops between two
 * steps, the client finishes again, and the steps are repeated; the namespace's bucket gives the
 * same answer again. */
#include "lake/upload.h"

#include "lake/body.h"
#include "lake/place.h"
#include "object/condition.h"
#include "object/digest.h"

#include "base/clock.h"

struct finish {
    struct lake_bucket *b;
    struct arena *a;
    const struct upload_info *upload;
    struct upload_part *parts; /* the parts that the client names; ETags without quotes */
    size_t count;
    const struct put_options *o;
    struct lake_at at;
    struct lake_upload record;
    struct str digest; /* digest of the parts */
    /* there are no parts any more, because an earlier try has made a body from them */
    bool is_repeated;
    struct lake_entry entry;
};

/* Returns the ETag without its quotes. (Clients may leave the quotes out.) */
static struct str finish_bare_etag(struct str etag)
{
    return etag.len >= 2 && etag.p[0] == '"' ? str_n(etag.p + 1, etag.len - 2) : etag;
}

/* Copies the client's list of parts into the form that storages expect. */
static int finish_take_parts(struct finish *f, const struct upload_part *parts, size_t count,
                             struct err *err)
{
    f->parts = arena_array(f->a, count + 1, sizeof(*f->parts));
    if (!f->parts)
        return err_code(err, ERR_NO_MEMORY);
    f->count = count;
    for (size_t i = 0; i < count; i++) {
        f->parts[i] = parts[i];
        f->parts[i].etag = finish_bare_etag(parts[i].etag);
    }
    return 0;
}

static struct str finish_digest(struct finish *f)
{
    struct digest_value value;
    struct buf text = {0};

    for (size_t i = 0; i < f->count; i++)
        buf_appendf(&text, "%u " STR_FMT "\n", f->parts[i].number, STR_ARG(f->parts[i].etag));
    digest_of(DIGEST_SHA256, buf_str(&text), &value);
    buf_release(&text);
    return arena_hex(f->a, value.bytes, value.len);
}

/* Answers a client that finishes an upload again: gives the stored answer, if the parts are the
 * same. */
static int finish_answer_again(struct finish *f, struct put_result *out, struct err *err)
{
    const struct lake_upload *u = &f->record;

    if (!str_eq(u->parts, f->digest))
        return err_set(err, ERR_NOT_FOUND, "the upload is finished");
    *out = (struct put_result){.etag = u->etag, .modified_ms = u->modified_ms, .size = u->size};
    return 0;
}

/* Checks the client's conditions before the parts become a body. They are checked again when the
 * entry is written. If the entry already has the upload's address, an earlier try has staged it, so
 * the conditions held then. */
static int finish_judge(struct finish *f, struct err *err)
{
    struct condition_state state = {0};
    struct lake_object now;

    if (!conditions_given(&f->o->conditions))
        return 0;
    int code = lake_stat(f->b->lake, f->a, &f->b->repo, f->at.ref, f->at.path, &now, err);
    if (code == 0 && str_eq(now.entry.address, f->record.address))
        return 0;
    if (code == 0)
        state =
            (struct condition_state){true, now.entry.etag, now.entry.modified_ms, now.entry.size};
    if (code == 0 || code == ERR_NOT_FOUND)
        code = conditions_judge_write(&f->o->conditions, &state, err);
    return code;
}

/* --- the upload in the namespace's bucket --- */

/* Adds to the entry the sizes of those listed parts that the client names. Both lists are in the
 * order of part numbers. */
static void finish_take_sizes(struct finish *f, const struct part_list *page)
{
    for (size_t i = 0; i < page->count && f->entry.part_count < f->count; i++)
        if (page->parts[i].number == f->parts[f->entry.part_count].number)
            f->entry.part_sizes[f->entry.part_count++] = page->parts[i].size;
}

/* Reads the sizes of the parts. If an earlier try has joined the parts, their sizes are no longer
 * known (f->is_repeated). */
static int finish_read_sizes(struct finish *f, struct object_place *p,
                             const struct upload_info *data, struct err *err)
{
    struct part_list page = {.more = true};
    uint32_t after = 0;
    int code = 0;

    f->entry.part_sizes = arena_array(f->a, f->count + 1, sizeof(*f->entry.part_sizes));
    if (!f->entry.part_sizes)
        return err_code(err, ERR_NO_MEMORY);
    while (code == 0 && page.more && f->entry.part_count < f->count) {
        code =
            p->bucket->ops->list_parts(p->bucket, f->a, data, after, OBJECT_LIST_MAX, &page, err);
        if (code == 0)
            finish_take_sizes(f, &page);
        if (code == 0 && page.count)
            after = page.parts[page.count - 1].number;
    }
    f->is_repeated = code == ERR_NOT_FOUND;
    return f->is_repeated ? 0 : code;
}

/* Reads size and ETag from the object at the upload's address. ERR_NOT_FOUND: there is no object,
 * so the upload is not finished. */
static int finish_look(struct finish *f, struct object_place *p, struct err *err)
{
    struct get_result head = {0};
    int code = p->bucket->ops->head(p->bucket, f->a, p->key, STR_EMPTY, NULL, &head, err);

    f->entry.size = head.info.size;
    f->entry.etag = head.info.etag;
    return code;
}

/* Finishes the upload in the namespace's bucket. An object at its address can only be that of this
 * upload, finished by an earlier try, because no other request puts an object there. If the storage
 * says that the upload is finished already, it may only remember an old answer. So this function
 * then checks that the object exists. */
static int finish_in_bucket(struct finish *f, struct object_place *p,
                            const struct upload_info *data, struct err *err)
{
    struct put_options own = {.meta.checksum = f->o->meta.checksum};
    struct put_result put = {0};
    int code =
        p->bucket->ops->upload_finish(p->bucket, f->a, data, f->parts, f->count, &own, &put, err);

    if (code == 0 && put.size && put.etag.len && !f->is_repeated) {
        f->entry.size = put.size;
        f->entry.etag = put.etag;
        return 0;
    }
    return code == 0 || code == ERR_NOT_FOUND ? finish_look(f, p, err) : code;
}

static int finish_data(struct finish *f, struct err *err)
{
    struct object_place p;
    int code =
        lake_place_open_below(&p, f->b->lake, f->a, &f->b->repo, f->record.address, PLACE_PUT, err);

    if (code < 0)
        return code;
    struct upload_info data = {.key = p.key, .id = f->record.data_id};
    code = finish_read_sizes(f, &p, &data, err);
    if (code == 0)
        code = object_place_may(&p, err);
    if (code == 0)
        code = finish_in_bucket(f, &p, &data, err);
    return object_place_end(&p, code, err);
}

/* --- the entry --- */

static int finish_make_entry(struct finish *f, struct err *err)
{
    int code = lake_entry_read(&f->entry, f->a, f->record.entry, err);

    if (code < 0)
        return code;
    code = finish_data(f, err);
    f->entry.address = f->record.address;
    f->entry.address_type = LAKE_RELATIVE;
    f->entry.modified_ms = clock_wall_ms();
    f->entry.checksum_type = f->o->meta.checksum.type;
    f->entry.checksum_kind = f->o->meta.checksum.kind;
    f->entry.checksum = f->o->meta.checksum.value;
    return code;
}

/* Stores the answer in the record. If that fails, a client that finishes again makes all steps
 * repeat. */
static void finish_record(struct finish *f, const struct put_result *put)
{
    struct err err = {0};

    f->record.finished_ms = clock_wall_ms();
    f->record.etag = put->etag;
    f->record.size = put->size;
    f->record.modified_ms = put->modified_ms;
    f->record.parts = f->digest;
    f->record.entry = STR_EMPTY;
    int code = lake_upload_write(&f->record, f->b, f->a, false, &err);
    if (code < 0 && code != ERR_PRECONDITION)
        log_warn(f->b->lake->o.log, "lake.upload_not_recorded", log_s("repository", f->b->repo.id),
                 log_z("error", err.text));
}

/* Stages the entry. If the entry is refused, the body stays: another call may have finished the
 * same upload, or the client may finish it again without the condition. The upload's record
 * protects the body from collection. */
static int finish_all(struct finish *f, struct put_result *out, struct err *err)
{
    struct bucket_change c = {.b = f->b,
                              .a = f->a,
                              .at = f->at,
                              .conditions = &f->o->conditions,
                              .own = f->record.address};
    int code = lake_bucket_check_write(f->b, f->a, &f->at, err);

    if (code == 0)
        code = finish_judge(f, err);
    if (code == 0)
        code = finish_make_entry(f, err);
    if (code == 0)
        code = bucket_change_put(&c, &f->entry, out, err);
    if (code == 0)
        finish_record(f, out);
    return code;
}

int lake_upload_finish(struct bucket *bucket, struct arena *a, const struct upload_info *upload,
                       const struct upload_part *parts, size_t count, const struct put_options *o,
                       struct put_result *out, struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);
    struct finish f = {
        .b = b, .a = a, .upload = upload, .o = o, .at = lake_bucket_at(b, upload->key)};
    int code = lake_upload_read(&f.record, b, a, upload, err);

    if (code == 0)
        code = finish_take_parts(&f, parts, count, err);
    if (code < 0)
        return code;
    f.digest = finish_digest(&f);
    return f.record.finished_ms ? finish_answer_again(&f, out, err) : finish_all(&f, out, err);
}
