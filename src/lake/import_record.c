/* Reads and writes records of imports. */
#include "lake/import_int.h"

#include "base/clock.h"

static const struct proto_field import_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct import_record, status.id),
    PROTO_FIELD(2, PROTO_BOOL, struct import_record, status.completed),
    PROTO_FIELD(3, PROTO_TIME, struct import_record, status.updated_ms),
    PROTO_FIELD(4, PROTO_U64, struct import_record, status.ingested),
    PROTO_FIELD(5, PROTO_STR, struct import_record, status.tree),
    PROTO_FIELD(7, PROTO_STR, struct import_record, status.error),
    PROTO_FIELD(100, PROTO_STR, struct import_record, branch),
    PROTO_FIELD(102, PROTO_STR, struct import_record, message),
    PROTO_FIELD(103, PROTO_STR, struct import_record, committer),
    PROTO_FIELD(104, PROTO_PAIRS, struct import_record, metadata),
    PROTO_FIELD(105, PROTO_STR, struct import_record, user),
    PROTO_FIELD(106, PROTO_BOOL, struct import_record, force),
    PROTO_FIELD(107, PROTO_BOOL, struct import_record, status.canceled),
    PROTO_FIELD(108, PROTO_STR, struct import_record, status.commit_id),
    PROTO_FIELD(109, PROTO_BOOL, struct import_record, needs_objects),
    {0},
};
enum { IMPORT_PATH = 101 }; /* field number of the paths; each is a message of its own */

static const struct proto_field path_fields[] = {
    PROTO_FIELD(1, PROTO_BOOL, struct lake_import_path, is_object),
    PROTO_FIELD(2, PROTO_STR, struct lake_import_path, source),
    PROTO_FIELD(3, PROTO_STR, struct lake_import_path, destination),
    {0},
};

struct kv_name import_key(struct arena *a, const struct lake_repo *r, struct str id)
{
    return lake_key_in(a, r->partition, "imports", id);
}

void import_record_write(struct buf *out, const struct import_record *rec)
{
    struct buf path = {0};

    proto_write(out, import_fields, rec);
    for (size_t i = 0; i < rec->path_count; i++) {
        buf_reset(&path);
        proto_write(&path, path_fields, &rec->paths[i]);
        proto_put_bytes(out, IMPORT_PATH, buf_str(&path));
    }
    buf_release(&path);
}

struct str import_record_encode(struct arena *a, struct import_record *rec)
{
    struct buf record = BUF_INIT(KV_VALUE_MAX);

    rec->status.updated_ms = clock_wall_ms();
    import_record_write(&record, rec);
    struct str value = buf_error(&record) < 0 ? STR_EMPTY : arena_str(a, buf_str(&record));
    buf_release(&record);
    return value;
}

int import_record_read(struct import_record *out, struct arena *a, struct str in, struct err *err)
{
    struct proto_value v;
    bool good = proto_read(out, import_fields, a, in, NULL) == 0;

    while (good && in.len) {
        good = proto_take(&in, &v);
        if (!good || v.number != IMPORT_PATH)
            continue;
        good = v.wire == WIRE_BYTES && out->path_count < LAKE_IMPORT_PATHS_MAX &&
               proto_read(&out->paths[out->path_count++], path_fields, NULL, v.bytes, NULL) == 0;
    }
    return good ? 0 : err_set(err, ERR_CORRUPT, "the record of an import is damaged");
}

int import_record_load(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                       struct import_record **out, struct err *err)
{
    struct import_record *rec = arena_new(a, struct import_record);
    struct kv_value row;
    int code = rec ? 0 : err_code(err, ERR_NO_MEMORY);

    if (code == 0)
        code = lake_row_get(l, a, r, import_key(a, r, id), "import not found", &row, err);
    if (code == 0)
        code = import_record_read(rec, a, row.bytes, err);
    if (code == 0)
        rec->stamp = row.stamp;
    *out = rec;
    return code;
}

int import_record_save(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct import_record *rec, struct err *err)
{
    struct str value = import_record_encode(a, rec);

    if (!value.p)
        return err_code(err, ERR_NO_MEMORY);
    int code = lake_put_same(l, a, r, import_key(a, r, rec->status.id), value, rec->stamp, err);
    if (code == ERR_PRECONDITION)
        return err_set(err, ERR_CONFLICT, "the import was changed meanwhile");
    rec->stamp = value;
    return code;
}
