/* Opening and closing a local storage, and its tables of operations. */
#include "object/local/local.h"
#include "object/local/local_int.h"
#include "os/file.h"

#include <stdlib.h>
#include <unistd.h>

static const uint64_t DEFAULT_RESERVE = 256 * MIB, DEFAULT_PART_MIN = 5 * MIB;
static const size_t DEFAULT_INLINE_MAX = 16 * KIB, INLINE_MAX = 128 * KIB;

static int local_check(struct storage *s, struct err *err);
static void local_close(struct storage *s);

const struct bucket_ops local_bucket_ops = {
    .info = local_bucket_info,
    .usage = local_usage,
    .head = local_head,
    .get = local_get,
    .put = local_put,
    .put_all = local_put_all,
    .copy = local_copy,
    .remove = local_remove,
    .list = local_list,
    .list_versions = local_list_versions,
    .set_meta = local_set_meta,
    .upload_begin = local_upload_begin,
    .upload_part = local_upload_part,
    .upload_part_copy = local_upload_part_copy,
    .upload_finish = local_upload_finish,
    .upload_abort = local_upload_abort,
    .list_parts = local_list_parts,
    .object_parts = local_object_parts,
    .list_uploads = local_list_uploads,
    .get_document = local_get_document,
    .set_document = local_set_document,
    .set_versions = local_set_versions,
    .set_object_lock = local_set_object_lock,
    .untap = local_bucket_untap,
    .ref = local_bucket_ref,
    .unref = local_bucket_unref,
};

const struct storage_ops local_storage_ops = {
    .kind = "local",
    .can = STORAGE_AT_HAND | STORAGE_TELLS_CHANGES | STORAGE_KEEPS_META | STORAGE_FOLDER |
           STORAGE_NULL_VERSION | STORAGE_ANY_LENGTH,
    .create_bucket = local_create_bucket,
    .remove_bucket = local_remove_bucket,
    .open_bucket = local_open_bucket,
    .list_buckets = local_list_buckets,
    .check = local_check,
    .close = local_close,
};

const struct db_cf_spec *local_cf_specs(void)
{
    static const struct db_cf_spec specs[LOCAL_FAMILIES] = {
        {.name = "local", .expired = local_row_expired, .skips = true},
        {.name = "bytes"},
        {.name = LOCAL_OUTBOX},
        {.name = LOCAL_ACCESS_LOG},
        {.name = LOCAL_CHANGES},
    };
    return specs;
}

void local_identity(struct storage *s, struct buf *out)
{
    buf_append_hex(out, local_of(s)->identity, IDENTITY_LEN);
}

const char *local_folder(struct storage *s)
{
    return local_of(s)->folder;
}

/* --- opening and closing --- */

static void local_free(struct local *l)
{
    hasher_stop(l->hasher);
    fences_release(&l->fences);
    mutex_release(&l->trouble.lock);
    fd_close(&l->lock_fd);
    free(l->name);
    free(l->folder);
    free(l);
}

int local_open(struct storage **out, const struct local_options *o, struct err *err)
{
    struct local *l = xcalloc(1, sizeof(*l));
    bool missing = false;
    struct row row;

    *l = (struct local){
        .db = o->db,
        .rows = db_cf(o->db, local_cf_specs()[0].name),
        .bytes = db_cf(o->db, local_cf_specs()[1].name),
        .outbox = db_cf(o->db, LOCAL_OUTBOX),
        .changes = db_cf(o->db, LOCAL_CHANGES),
        .name = xstrdup(o->name),
        .folder = xstrdup(o->folder),
        .lock_fd = -1,
        .log = o->log,
        .id = o->id,
        .inline_max = size_min(o->inline_max ? o->inline_max : DEFAULT_INLINE_MAX, INLINE_MAX),
        .reserve_bytes = o->reserve_bytes ? o->reserve_bytes : DEFAULT_RESERVE,
        .part_min = o->part_min ? o->part_min : DEFAULT_PART_MIN,
    };
    l->storage = (struct storage){
        .ops = &local_storage_ops, .name = str_z(l->name), .generations = &l->generations};
    memcpy(l->sequence_row, row_tag(&row, l, TAG_SEQUENCE).p, sizeof(l->sequence_row));
    generations_init(&l->generations);
    fences_init(&l->fences);
    mutex_init(&l->trouble.lock, "local.trouble");
    int code = hasher_start(&l->hasher, err);
    if (code == 0)
        code = folder_enter(l, &missing, err);
    if (code < 0 && missing && o->may_be_missing) {
        log_error(l->log, "local.missing", log_z("storage", l->name),
                  log_z("error", err ? err->text : ""));
        code = 0;
    }
    if (code == 0)
        code = collector_start(l, err);
    if (code < 0) {
        local_free(l);
        return err_wrap(err, code, "storage %s", o->name);
    }
    *out = &l->storage;
    return 0;
}

static void local_close(struct storage *s)
{
    struct local *l = local_of(s);
    struct err err = {0};
    struct row row;

    collector_stop(l);
    BUG_ON(!list_empty(&l->pins.readers));
    if (atomic_load(&l->present) && !atomic_load(&l->leaked) &&
        db_delete(l->db, l->rows, row_id(&row, l, TAG_OPEN_EPOCH, l->epoch), DB_URGENT, &err) < 0)
        log_warn(l->log, "local.close_failed", log_z("storage", l->name), log_z("error", err.text));
    local_free(l);
}

bool local_is_missing(const struct storage *s)
{
    return s->ops == &local_storage_ops &&
           !atomic_load(&container_of(s, const struct local, storage)->present);
}

int local_present(const struct local *l, struct err *err)
{
    if (atomic_load_explicit(&l->present, memory_order_acquire))
        return 0;
    return err_set(err, ERR_OFFLINE, "the disk of the storage %s is not there", l->name);
}

static int local_check(struct storage *s, struct err *err)
{
    struct local *l = local_of(s);
    int code = folder_check(l, err);

    if (code == 0)
        code = local_present(l, err); /* a missing folder may have been found just now */
    if (code == 0 && access(l->folder, W_OK) < 0)
        code = err_set(err, ERR_IO, "%s cannot be written", l->folder);
    if (code == 0)
        code = trouble_try(l, err);
    return code < 0 ? code : blob_space(l, 0, err);
}

void local_stats(struct storage *s, struct local_stats *out)
{
    struct local *l = local_of(s);

    *out = (struct local_stats){
        .list_steps = atomic_load(&l->list_steps),
        .collected = atomic_load(&l->collected),
        .swept = atomic_load(&l->swept),
    };
}
