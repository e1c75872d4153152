/* Opens and closes a database: the version of the format, the families, and the order in which the
 * parts of RocksDB are freed. */
#include "db/db_int.h"

#include "os/file.h"

#include <stdlib.h>

enum { FORMAT_VERSION = 1, FORMAT_MAX_BYTES = 64 };

static const char format_name[] = "FORMAT";
static const uint64_t default_reserve_bytes = 64 * MIB;

static char *path_join(const char *folder, const char *name)
{
    struct buf b = BUF_INIT(0);

    buf_appendf(&b, "%s/%s", folder, name);
    return buf_take(&b);
}

/* Writes the FORMAT file, before RocksDB makes its first file. So a database without a FORMAT file
 * was not made by weir. */
int format_write(const char *folder, struct err *err)
{
    char *path = path_join(folder, format_name);
    struct buf text = BUF_INIT(FORMAT_MAX_BYTES);
    int code;

    buf_appendf(&text, "weir db %d\n", FORMAT_VERSION);
    code = file_write_durable(path, buf_str(&text), 0600, err);
    buf_release(&text);
    free(path);
    return code;
}

static int format_parse(struct str text, uint64_t *version)
{
    struct str prefix = STR("weir db ");

    if (!str_starts(text, prefix) || !str_ends(text, STR("\n")))
        return ERR_PARSE;
    return str_u64(str_head(str_skip(text, prefix.len), text.len - prefix.len - 1), version);
}

static int format_check(const char *folder, struct err *err)
{
    char *path = path_join(folder, format_name);
    char *current = path_join(folder, "CURRENT");
    struct buf text = BUF_INIT(FORMAT_MAX_BYTES);
    uint64_t version = 0;
    int code = file_read(path, &text, err);

    if (code == ERR_NOT_FOUND && file_exists(current))
        code = err_set(err, ERR_CORRUPT, "%s holds a database but no file %s: not written by weir",
                       folder, format_name);
    else if (code == ERR_NOT_FOUND)
        code = format_write(folder, err);
    else if (code == 0 && format_parse(buf_str(&text), &version) != 0)
        code = err_set(err, ERR_CORRUPT, "%s: not a weir format file", path);
    else if (code == 0 && version > FORMAT_VERSION)
        code = err_set(err, ERR_VERSION,
                       "%s was written by a newer weir (format %llu, this one knows up to %d)",
                       folder, (unsigned long long)version, FORMAT_VERSION);
    buf_release(&text);
    free(current);
    free(path);
    return code;
}

static struct db_cf *find_cf(struct db *db, const char *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(db->cfs[i].name, name) == 0)
            return &db->cfs[i];
    return NULL;
}

static void add_cf(struct db *db, const struct db_cf_spec *spec)
{
    if (find_cf(db, spec->name, db->cf_count))
        return;
    db->cfs[db->cf_count++] = (struct db_cf){.name = xstrdup(spec->name),
                                             .expired = spec->expired,
                                             .skips = spec->skips,
                                             .absent = spec->absent};
}

/* Fills db->cfs with the families to open. RocksDB opens a folder only if every family in it is
 * named; the family "default" is always there. */
static void collect_cfs(struct db *db, const struct db_options *o)
{
    char *message = NULL, *current = path_join(db->path, "CURRENT"), **found = NULL;
    size_t found_count = 0;

    if (file_exists(current)) {
        rocksdb_options_t *plain = rocksdb_options_create();
        found = rocksdb_list_column_families(plain, db->path, &found_count, &message);
        rocksdb_options_destroy(plain);
    }
    free(current);
    db->cfs = xcalloc(o->cf_count + found_count + 1, sizeof(*db->cfs));
    for (size_t i = 0; i < o->cf_count; i++)
        add_cf(db, &o->cfs[i]);
    db->cf_asked = db->cf_count;
    add_cf(db, &(struct db_cf_spec){.name = "default"});
    for (size_t i = 0; !message && i < found_count; i++)
        add_cf(db, &(struct db_cf_spec){.name = found[i]});
    if (found)
        rocksdb_list_column_families_destroy(found, found_count);
    rocksdb_free(message); /* if the folder is damaged, opening it will give a better message */
}

static int open_rocks(struct db *db, struct err *err)
{
    size_t n = db->cf_count;
    const char **names = xcalloc(n, sizeof(*names));
    const rocksdb_options_t **options = xcalloc(n, sizeof(*options));
    rocksdb_column_family_handle_t **handles = xcalloc(n, sizeof(*handles));
    char *message = NULL;
    int code = 0;

    for (size_t i = 0; i < n; i++) {
        names[i] = db->cfs[i].name;
        options[i] = db->cfs[i].options;
    }
    db->rocks = rocksdb_open_column_families(db->options, db->path, (int)n, names, options, handles,
                                             &message);
    if (message) {
        db->rocks = NULL;
        code = error_take(err, message, "opening", db->path);
    }
    for (size_t i = 0; i < n && code == 0; i++)
        db->cfs[i].handle = handles[i];
    free(handles);
    free(options);
    free(names);
    return code;
}

int db_open(struct db **out, const struct db_options *o, struct err *err)
{
    struct db *db = xcalloc(1, sizeof(*db));
    int code;

    db->path = xstrdup(o->path);
    db->log = o->log;
    db->on_failure = o->failed;
    db->failure_ctx = o->failed_ctx;
    db->read = rocksdb_readoptions_create();
    db->latest = (struct db_view){.db = db, .read = db->read};
    code = group_init(db, o->reserve_bytes ? o->reserve_bytes : default_reserve_bytes, err);
    if (code == 0)
        code = dir_make(db->path, 0700, err);
    if (code == 0)
        code = space_to_open(db, err);
    if (code == 0)
        code = format_check(db->path, err);
    if (code == 0) {
        collect_cfs(db, o);
        options_build(db, o);
        code = open_rocks(db, err);
    }
    if (code != 0) {
        db_close(db);
        return code;
    }
    *out = db;
    return 0;
}

/* Writes rows that are only in the log to table files. Otherwise the next start, which should be
 * quick, would have to replay the log. A failure loses nothing, because the log still has the rows.
 * This is not called on a full disk, where RocksDB may end the process. */
static void flush_before_close(struct db *db)
{
    rocksdb_flushoptions_t *wait = rocksdb_flushoptions_create();

    for (size_t i = 0; i < db->cf_count; i++) {
        char *message = NULL;
        rocksdb_flush_cf(db->rocks, wait, db->cfs[i].handle, &message);
        if (message)
            log_warn(db->log, "db.flush_failed", log_z("family", db->cfs[i].name),
                     log_z("error", message));
        rocksdb_free(message);
    }
    rocksdb_flushoptions_destroy(wait);
}

/* Frees the families before the database, and the database before its options and cache. RocksDB
 * asserts this order. */
void db_close(struct db *db)
{
    if (!db)
        return;
    group_release(db);
    if (db_failed(db, NULL) < 0) {
        failure_abandon(db);
        return;
    }
    if (db->rocks && space_to_flush(db, keep_unwritten(db)))
        flush_before_close(db);
    for (size_t i = 0; i < db->cf_count; i++)
        if (db->cfs[i].handle)
            rocksdb_column_family_handle_destroy(db->cfs[i].handle);
    if (db->rocks)
        rocksdb_close(db->rocks);
    options_release(db);
    rows_free(db->rows);
    rocksdb_readoptions_destroy(db->read);
    for (size_t i = 0; i < db->cf_count; i++) {
        gaps_free(db->cfs[i].gaps);
        free(db->cfs[i].name);
    }
    free(db->cfs);
    free(db->path);
    free(db);
}

struct db_cf *db_cf(struct db *db, const char *name)
{
    struct db_cf *cf = find_cf(db, name, db->cf_asked);
    BUG_ON(!cf);
    return cf;
}
