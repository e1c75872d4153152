/* The folder of a local storage: its identity, its lock, and the epoch that begins when the storage
 * starts to use it. */
#include "base/ids.h"
#include "base/bytes.h"
#include "object/local/local_int.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>

/* Format numbers of the file FORMAT and of the rows. Rows of format 2 have the usage of buckets
 * (docs/local-storage.md, L11), rows of format 3 also have a row for each bucket of each owner
 * (L13). Rows of format 4 are the same, but some buckets are or were shards (L14). */
enum { FORMAT = 1, ROWS_FORMAT = 3, ROWS_SHARDED = 4, ROWS_FIRST = 1 };

static void format_text(struct buf *out, const struct local *l)
{
    buf_appendf(out, "weir local %d ", FORMAT);
    buf_append_hex(out, l->identity, sizeof(l->identity));
    buf_append_char(out, '\n');
}

/* Locks the folder. Two processes on one folder, each with its own database, would take each
 * other's blobs for leftovers of a crash. */
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

int folder_check(const struct local *l, struct err *err)
{
    struct buf want = BUF_INIT(0), have = BUF_INIT(256), path = BUF_INIT(0);

    buf_appendf(&path, "%s/FORMAT", l->folder);
    int code = file_read(path.p, &have, err);
    format_text(&want, l);
    if (code == ERR_NOT_FOUND)
        code = err_set(err, ERR_CORRUPT, "%s is missing: is the disk mounted?", path.p);
    else if (code == 0 && !str_eq(buf_str(&want), buf_str(&have)))
        code = err_set(err, ERR_CORRUPT, "%s is of another storage", path.p);
    buf_release(&want);
    buf_release(&have);
    buf_release(&path);
    return code;
}

static void storage_row_value(struct buf *out, const struct local *l, char format)
{
    buf_append_char(out, format);
    buf_append(out, l->identity, sizeof(l->identity));
    buf_append_be64(out, l->version_key.k0);
    buf_append_be64(out, l->version_key.k1);
}

void folder_note_shards(struct local *l, struct db_tx *tx)
{
    struct buf value = BUF_INIT(0);
    struct row row;

    storage_row_value(&value, l, ROWS_SHARDED);
    db_tx_put(tx, l->rows, row_tag(&row, l, TAG_STORAGE), buf_str(&value));
    buf_release(&value);
}

static int put_storage_row(struct local *l, struct err *err)
{
    struct buf value = BUF_INIT(0);
    struct row row;

    storage_row_value(&value, l, ROWS_FORMAT);
    int code =
        db_put(l->db, l->rows, row_tag(&row, l, TAG_STORAGE), buf_str(&value), DB_DURABLE, err);
    buf_release(&value);
    return code;
}

/* Makes the folder and its FORMAT file. If an earlier call was interrupted, the folder has no blobs
 * yet, and is made again. */
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

/* Reads the storage's row. *format 0: there is no such row. */
static int storage_row(struct local *l, int *format, struct err *err)
{
    struct buf value = BUF_INIT(0);
    struct row row;
    int code = db_get(db_latest(l->db), l->rows, row_tag(&row, l, TAG_STORAGE), &value, err);

    *format = code == 0 && value.len > 0 ? value.p[0] : 0;
    if (code == ERR_NOT_FOUND)
        code = 0;
    else if (code == 0 && *format > ROWS_SHARDED)
        code = err_set(err, ERR_VERSION, "the storage %s was written by a newer weir", l->name);
    else if (code == 0 && (value.len != 1 + IDENTITY_LEN + 16 || *format < ROWS_FIRST))
        code = err_set(err, ERR_CORRUPT, "the row of the storage %s cannot be read", l->name);
    /* This runs again while a missing folder is looked for. Other threads may then read identity
     * and version_key, so these are set only once. */
    if (code == 0 && *format && !l->identified) {
        struct str rest = str_skip(buf_str(&value), 1);
        memcpy(l->identity, rest.p, IDENTITY_LEN);
        l->version_key.k0 = row_u64(str_skip(rest, IDENTITY_LEN));
        l->version_key.k1 = row_u64(str_skip(rest, IDENTITY_LEN + 8));
        l->identified = true;
    }
    buf_release(&value);
    return code;
}

/* Counts the usage of all buckets, then writes the new format to the storage's row. The new format
 * keeps out an older weir, which would write without counting. If the counting is cut short, the
 * next start counts again. */
static int count_first(struct local *l, struct err *err)
{
    log_info(l->log, "local.counting", log_z("storage", l->name));
    int code = usage_build(l, err);
    return code < 0 ? code : put_storage_row(l, err);
}

static int make_blobs(struct local *l, struct err *err)
{
    struct buf path = BUF_INIT(0);

    buf_appendf(&path, "%s/blobs", l->folder);
    int code = dir_make(path.p, 0700, err);
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

/* Finds the last epoch that has a folder. If an older copy of the database was restored, that epoch
 * is later than the rows say, and the names of its files must not be used again. */
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
        uint32_t epoch = (uint32_t)be_read(bytes, sizeof(bytes));
        if (epoch > *out)
            *out = epoch;
    }
    if (dir)
        closedir(dir);
    buf_release(&path);
    return code;
}

/* Begins a new epoch, which stays open until the storage is closed (docs/local-storage.md, L8). */
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

/* Checks and locks the folder, and prepares its files. The database is not touched. */
static int take_folder(struct local *l, bool is_new, struct err *err)
{
    int code = is_new ? 0 : folder_check(l, err);

    if (code == 0 && !is_new) /* folder_make() has locked a new folder */
        code = folder_lock(l, err);
    if (code == 0)
        code = make_blobs(l, err);
    if (code == 0)
        code = highest_epoch(l, &l->epoch, err);
    return code;
}

int folder_enter(struct local *l, bool *missing, struct err *err)
{
    struct buf path = BUF_INIT(0);
    int format, code = storage_row(l, &format, err);

    *missing = false;
    buf_appendf(&path, "%s/FORMAT", l->folder);
    if (code == 0 && !format)
        code = folder_make(l, path.p, err);
    if (code == 0) {
        code = take_folder(l, !format, err);
        *missing = code < 0 && format && code != ERR_IN_USE;
    }
    if (code == 0 && format && format < ROWS_FORMAT)
        code = count_first(l, err);
    if (code == 0)
        code = db_apply(l->db, DB_URGENT, epoch_run, l, err);
    if (code == 0)
        atomic_store_explicit(&l->present, true, memory_order_release);
    else
        fd_close(&l->lock_fd);
    buf_release(&path);
    return code;
}
