/* Opening and closing a local storage, and its tables of operations. */
#include "object/local.h"
#include "base/ids.h"
#include "object/local_int.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Of the file FORMAT, and of the rows: 2 has counts of what buckets hold (L11), 3 also what each
 * owner has (L13). */
enum { FORMAT = 1, ROWS_FORMAT = 3, ROWS_FIRST = 1 };

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
    .ref = local_bucket_ref,
    .unref = local_bucket_unref,
};

static const struct storage_ops storage_ops = {
    .kind = "local",
    .create_bucket = local_create_bucket,
    .remove_bucket = local_remove_bucket,
    .open_bucket = local_open_bucket,
    .list_buckets = local_list_buckets,
    .check = local_check,
    .generation = local_generation,
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

struct local *local_of(struct storage *s)
{
    BUG_ON(s->ops != &storage_ops);
    return container_of(s, struct local, storage);
}

void local_identity(struct storage *s, struct buf *out)
{
    buf_append_hex(out, local_of(s)->identity, IDENTITY_LEN);
}

const char *local_folder(struct storage *s)
{
    return local_of(s)->folder;
}

/* --- the folder and its rows --- */

static void format_text(struct buf *out, const struct local *l)
{
    buf_appendf(out, "weir local %d ", FORMAT);
    buf_append_hex(out, l->identity, sizeof(l->identity));
    buf_append_char(out, '\n');
}

/* Two processes on one folder, each with a database of its own, would take the other's blobs for
 * leftovers of a crash. */
static int folder_lock(struct local *l, struct err *err)
{
    struct buf path = BUF_INIT(0);

    buf_appendf(&path, "%s/lock", l->folder);
    int code = file_lock(&l->lock_fd, path.p, err);
    if (code == ERR_IN_USE)
        code = err_wrap(err, code, "the folder %s is in use", l->folder);
    buf_release(&path);
    return code;
}

/* The folder must be the one that the rows are about: a disk that is not mounted looks empty. */
static int folder_check(struct local *l, const char *format_path, struct err *err)
{
    struct buf want = BUF_INIT(0), have = BUF_INIT(256);
    int code = file_read(format_path, &have, err);

    format_text(&want, l);
    if (code == ERR_NOT_FOUND)
        code = err_set(err, ERR_CORRUPT, "%s is missing: is the disk mounted?", format_path);
    else if (code == 0 && !str_eq(buf_str(&want), buf_str(&have)))
        code = err_set(err, ERR_CORRUPT, "%s is of another storage", format_path);
    buf_release(&want);
    buf_release(&have);
    return code;
}

static int put_storage_row(struct local *l, struct err *err)
{
    struct buf value = BUF_INIT(0);
    struct row row;

    buf_append_char(&value, ROWS_FORMAT);
    buf_append(&value, l->identity, sizeof(l->identity));
    buf_append_be64(&value, l->version_key.k0);
    buf_append_be64(&value, l->version_key.k1);
    int code =
        db_put(l->db, l->rows, row_tag(&row, l, TAG_STORAGE), buf_str(&value), DB_DURABLE, err);
    buf_release(&value);
    return code;
}

/* A folder whose making was cut short has no blobs yet, and is made anew. */
static int folder_make(struct local *l, const char *format_path, struct err *err)
{
    struct buf text = BUF_INIT(0), blobs = BUF_INIT(0);

    buf_appendf(&blobs, "%s/blobs", l->folder);
    int code = dir_make(l->folder, 0700, err);
    if (code == 0)
        code = folder_lock(l, err);
    if (code == 0 && file_exists(blobs.p))
        code = err_set(err, ERR_CORRUPT, "%s holds blobs of a storage that the database lacks",
                       l->folder);
    random_bytes(l->identity, sizeof(l->identity));
    hash_key_random(&l->version_key);
    format_text(&text, l);
    if (code == 0)
        code = file_write_durable(format_path, buf_str(&text), 0600, err);
    if (code == 0)
        code = put_storage_row(l, err);
    buf_release(&text);
    buf_release(&blobs);
    return code;
}

/* *format 0: there is none. */
static int storage_row(struct local *l, int *format, struct err *err)
{
    struct buf value = BUF_INIT(0);
    struct row row;
    int code = db_get(db_latest(l->db), l->rows, row_tag(&row, l, TAG_STORAGE), &value, err);

    *format = code == 0 && value.len > 0 ? value.p[0] : 0;
    if (code == ERR_NOT_FOUND)
        code = 0;
    else if (code == 0 && *format > ROWS_FORMAT)
        code = err_set(err, ERR_VERSION, "the storage %s was written by a newer weir", l->name);
    else if (code == 0 && (value.len != 1 + IDENTITY_LEN + 16 || *format < ROWS_FIRST))
        code = err_set(err, ERR_CORRUPT, "the row of the storage %s cannot be read", l->name);
    if (code == 0 && *format) {
        struct str rest = str_skip(buf_str(&value), 1);
        memcpy(l->identity, rest.p, IDENTITY_LEN);
        l->version_key.k0 = row_u64(str_skip(rest, IDENTITY_LEN));
        l->version_key.k1 = row_u64(str_skip(rest, IDENTITY_LEN + 8));
    }
    buf_release(&value);
    return code;
}

/* A weir that does not count must not write behind this: the row's format keeps it out. Cut short,
 * it is done anew. */
static int count_first(struct local *l, struct err *err)
{
    log_info(l->log, "local.counting", log_z("storage", l->name));
    int code = usage_build(l, err);
    return code < 0 ? code : put_storage_row(l, err);
}

static int prepare_folder(struct local *l, struct err *err)
{
    struct buf path = BUF_INIT(0);
    int format, code = storage_row(l, &format, err);

    buf_appendf(&path, "%s/FORMAT", l->folder);
    if (code == 0)
        code = format ? folder_check(l, path.p, err) : folder_make(l, path.p, err);
    if (code == 0 && format) /* not in a folder that may be another's */
        code = folder_lock(l, err);
    if (code == 0 && format && format < ROWS_FORMAT)
        code = count_first(l, err);
    buf_reset(&path);
    buf_appendf(&path, "%s/blobs", l->folder);
    if (code == 0)
        code = dir_make(path.p, 0700, err);
    if (code == 0)
        code = dir_sync(l->folder, err);
    buf_release(&path);
    return code;
}

static int number_row(struct db_view *view, struct local *l, enum tag tag, uint64_t *out,
                      struct err *err)
{
    struct buf value = BUF_INIT(0);
    struct row row;
    int code = db_get(view, l->rows, row_tag(&row, l, tag), &value, err);

    *out = 0;
    if (code == 0 && value.len == 8)
        *out = row_u64(buf_str(&value));
    else if (code == 0)
        code = err_set(err, ERR_CORRUPT, "a row of the storage %s cannot be read", l->name);
    buf_release(&value);
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* The last epoch that has a folder: later than the rows say when the database is an older copy that
 * was put back. Its names must not be used again. */
static int highest_epoch(struct local *l, uint32_t *out, struct err *err)
{
    struct buf path = BUF_INIT(0);
    struct dirent *entry;
    unsigned char bytes[3];
    int code = 0;

    *out = 0;
    buf_appendf(&path, "%s/blobs", l->folder);
    DIR *dir = opendir(path.p);
    if (!dir)
        code = err_errno(err, errno, "opening the folder %s", path.p);
    while (dir && (entry = readdir(dir))) {
        if (!hex_parse(str_z(entry->d_name), bytes, sizeof(bytes)))
            continue;
        uint32_t epoch = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
        if (epoch > *out)
            *out = epoch;
    }
    if (dir)
        closedir(dir);
    buf_release(&path);
    return code;
}

/* An epoch of our own, open until the storage is closed (L8). */
static int epoch_run(struct db_tx *tx, void *ctx, struct err *err)
{
    struct local *l = ctx;
    struct buf value = BUF_INIT(0);
    struct row row;
    uint64_t last;
    int code = number_row(db_tx_view(tx), l, TAG_EPOCH, &last, err);

    if (code == 0)
        code = number_row(db_tx_view(tx), l, TAG_SEQUENCE, &l->sequence, err);
    if (last < l->epoch)
        last = l->epoch;
    if (code == 0 && last + 1 >= (uint64_t)1 << EPOCH_BITS)
        code = err_set(err, ERR_TOO_LARGE, "the storage %s was started too often", l->name);
    if (code < 0)
        return code;
    l->epoch = (uint32_t)last + 1;
    buf_append_be64(&value, l->epoch);
    db_tx_put(tx, l->rows, row_tag(&row, l, TAG_EPOCH), buf_str(&value));
    db_tx_put(tx, l->rows, row_id(&row, l, TAG_OPEN_EPOCH, l->epoch), STR_EMPTY);
    buf_release(&value);
    return 0;
}

/* --- open and close --- */

static void local_free(struct local *l)
{
    hasher_stop(l->hasher);
    fd_close(&l->lock_fd);
    free(l->name);
    free(l->folder);
    free(l);
}

int local_open(struct storage **out, const struct local_options *o, struct err *err)
{
    struct local *l = xcalloc(1, sizeof(*l));

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
    l->storage = (struct storage){&storage_ops, str_z(l->name)};
    generations_init(l);
    int code = prepare_folder(l, err);
    if (code == 0)
        code = highest_epoch(l, &l->epoch, err);
    if (code == 0)
        code = db_apply(l->db, DB_DURABLE, epoch_run, l, err);
    if (code == 0)
        code = hasher_start(&l->hasher, err);
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
    if (!atomic_load(&l->leaked) &&
        db_delete(l->db, l->rows, row_id(&row, l, TAG_OPEN_EPOCH, l->epoch), DB_DURABLE, &err) < 0)
        log_warn(l->log, "local.close_failed", log_z("storage", l->name), log_z("error", err.text));
    local_free(l);
}

static int local_check(struct storage *s, struct err *err)
{
    struct local *l = local_of(s);
    struct buf path = BUF_INIT(0);

    buf_appendf(&path, "%s/FORMAT", l->folder);
    int code = folder_check(l, path.p, err);
    buf_release(&path);
    if (code == 0 && access(l->folder, W_OK) < 0)
        code = err_set(err, ERR_IO, "%s cannot be written", l->folder);
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
