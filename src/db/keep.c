/* Deletes ranges, makes checkpoints, and counts. */
#include "db/db_int.h"

#include "os/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int partition_delete_rows(struct db *db, struct db_cf *cf, struct str from, struct str to,
                                 struct err *err)
{
    char *message = NULL;
    int code = db_failed(db, err);

    if (code < 0)
        return code;
    rows_range_begin(db->rows, cf, from, to);
    if (cf->gaps)
        gaps_range_begin(cf->gaps);
    rocksdb_delete_range_cf(db->rocks, db->group.durable, cf->handle, from.p, from.len, to.p,
                            to.len, &message);
    if (cf->gaps)
        gaps_range_end(cf->gaps);
    rows_range_end(db->rows);
    return message ? failure_take(db, err, message, "deleting from") : 0;
}

/* Deletes all rows from `from` on. RocksDB's range delete needs an end, so the function uses the
 * smallest key after the last row. */
static int delete_to_end(struct db *db, struct db_cf *cf, struct str from, struct err *err)
{
    struct db_range all = {.from = from, .reverse = true};
    struct db_iter *it = NULL;
    struct buf end = BUF_INIT(0);
    struct str key, value;
    int code = db_iter_open(&it, db_latest(db), cf, &all, err);

    if (code == 0)
        code = db_iter_next(it, &key, &value, err);
    if (code == 0) {
        buf_append_str(&end, key);
        buf_append_char(&end, '\0');
    }
    db_iter_close(it);
    if (code == 0)
        code = partition_delete_rows(db, cf, from, buf_str(&end), err);
    buf_release(&end);
    return code == ERR_END ? 0 : code;
}

int db_delete_range(struct db *db, struct db_cf *cf, struct str from, struct str to,
                    struct err *err)
{
    if (to.len == 0)
        return delete_to_end(db, cf, from, err);
    return str_cmp(from, to) < 0 ? partition_delete_rows(db, cf, from, to, err) : 0;
}

static int copy_into(struct db *db, const char *folder, struct err *err)
{
    char *message = NULL;
    rocksdb_checkpoint_t *checkpoint = rocksdb_checkpoint_object_create(db->rocks, &message);

    if (!message) {
        rocksdb_checkpoint_create(checkpoint, folder, 0, &message);
        rocksdb_checkpoint_object_destroy(checkpoint);
    }
    if (message)
        return error_take(err, message, "copying to", folder);
    if (chmod(folder, 0700) != 0)
        return err_errno(err, errno, "%s", folder);
    return format_write(folder, err);
}

static int put_in_place(const char *from, const char *to, struct err *err)
{
    struct buf parent = BUF_INIT(0);
    const char *slash = strrchr(to, '/');
    int code;

    if (rename(from, to) != 0)
        return err_errno(err, errno, "%s", to);
    buf_append_str(&parent, slash ? str_n(to, (size_t)(slash - to)) : STR("."));
    if (parent.len == 0)
        buf_append_char(&parent, '/');
    code = dir_sync(parent.p, err);
    buf_release(&parent);
    return code;
}

/* Makes the copy under another name, in a folder that only weir's user can enter, adds the FORMAT
 * file, and then renames the copy. So under `path` there is a complete copy or nothing. */
int db_checkpoint(struct db *db, const char *path, struct err *err)
{
    struct buf staging = BUF_INIT(0), copy = BUF_INIT(0);
    int code;

    if (file_exists(path))
        return err_set(err, ERR_EXISTS, "%s exists already", path);
    buf_appendf(&staging, "%s.weir-partial", path);
    buf_appendf(&copy, "%s/copy", staging.p);
    code = dir_remove_tree(staging.p, err);
    if (code == 0)
        code = dir_make(staging.p, 0700, err);
    if (code == 0)
        code = copy_into(db, copy.p, err);
    if (code == 0)
        code = put_in_place(copy.p, path, err);
    int cleaned = dir_remove_tree(staging.p, code == 0 ? err : NULL);
    buf_release(&copy);
    buf_release(&staging);
    return code != 0 ? code : cleaned;
}

static uint64_t sum_property(struct db *db, const char *property)
{
    uint64_t sum = 0, value;

    for (size_t i = 0; i < db->cf_count; i++)
        if (rocksdb_property_int_cf(db->rocks, db->cfs[i].handle, property, &value) == 0)
            sum += value;
    return sum;
}

uint64_t keep_unwritten(struct db *db)
{
    return sum_property(db, "rocksdb.cur-size-all-mem-tables");
}

static uint64_t sum_gaps(struct db *db)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < db->cf_asked; i++)
        sum += db->cfs[i].gaps ? gaps_bytes(db->cfs[i].gaps) : 0;
    return sum;
}

void db_stats(struct db *db, struct db_stats *out)
{
    struct group *g = &db->group;

    *out = (struct db_stats){
        .changes = atomic_load_explicit(&g->changes, memory_order_relaxed),
        .groups = atomic_load_explicit(&g->groups, memory_order_relaxed),
        .syncs = atomic_load_explicit(&g->syncs, memory_order_relaxed),
        .failed = atomic_load_explicit(&g->failed, memory_order_relaxed),
        .memory_bytes = rocksdb_cache_get_usage(db->cache) + rows_bytes(db->rows) + sum_gaps(db) +
                        sum_property(db, "rocksdb.cur-size-all-mem-tables") +
                        sum_property(db, "rocksdb.estimate-table-readers-mem"),
        .disk_bytes = sum_property(db, "rocksdb.total-sst-files-size"),
    };
}
