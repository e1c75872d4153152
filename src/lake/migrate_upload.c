/* Uploads in parts that were under way in the source. The source does not record the repository
 * and the branch of an upload, so the upload cannot be continued. Its row is stored in the same
 * form as in lakeFS's own key-value store: in partition `multiparts`, with the id of the upload
 * as its key. */
#include "lake/migrate_upload.h"

struct migrate_upload {
    struct str id, path, address, content_type;
    int64_t created_ms;
    struct str_pairs metadata;
};

static const struct proto_field migrate_upload_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct migrate_upload, id),
    PROTO_FIELD(2, PROTO_STR, struct migrate_upload, path),
    PROTO_FIELD(3, PROTO_TIME, struct migrate_upload, created_ms),
    PROTO_FIELD(4, PROTO_STR, struct migrate_upload, address),
    PROTO_FIELD(5, PROTO_PAIRS, struct migrate_upload, metadata),
    PROTO_FIELD(6, PROTO_STR, struct migrate_upload, content_type),
    {0},
};

static const char upload_select[] =
    "SELECT upload_id, path, floor(extract(epoch FROM creation_date) * 1000)::bigint::text, "
    "physical_address, metadata::text, content_type FROM gateway_multiparts ORDER BY upload_id";

/* Makes the row; the value is in the arena. */
static int upload_row(struct arena *a, const struct source_row *from, struct kv_name *name,
                      struct str *value, struct err *err)
{
    const struct str *v = from->values;
    struct migrate_upload u = {.id = v[0],
                               .path = v[1],
                               .created_ms = source_integer(from, 2),
                               .address = v[3],
                               .content_type = v[5]};
    struct buf record = {0};
    int code = migrate_read_pairs(a, v[4], &u.metadata, err);

    proto_write(&record, migrate_upload_fields, &u);
    *name = (struct kv_name){STR("multiparts"), u.id};
    *value = arena_str(a, buf_str(&record));
    if (code == 0)
        code = buf_error(&record);
    buf_release(&record);
    return code;
}

/* Puts the row. It is no error if an earlier run has put the same row. */
static int upload_put(struct lake *l, struct arena *a, struct kv_name name, struct str value,
                      struct err *err)
{
    lake_step_begin("lake.migrate_row");
    int code = kv_set(l->kv, name, value, err);
    lake_step_end("lake.migrate_row");
    return code;
}

static int upload_compare(struct lake *l, struct arena *a, struct kv_name name, struct str value,
                          struct err *err)
{
    struct kv_value row = {0};
    int code = kv_get_many(l->kv, NULL, a, &name, 1, &row, err);

    return code == 0 && !str_eq(row.bytes, value)
               ? err_set(err, ERR_CONFLICT, "the upload " STR_FMT " differs from the source",
                         STR_ARG(name.key))
               : code;
}

static int migrate_uploads_each(struct lake *l, struct source *s,
                                int (*fn)(struct lake *l, struct arena *a, struct kv_name name,
                                          struct str value, struct err *err),
                                uint64_t *count, struct err *err)
{
    struct source_rows *rows = NULL;
    struct source_row row;
    struct arena a = {0};
    int code = source_rows_open(&rows, s, upload_select, NULL, 0, err);

    *count = 0;
    while (code == 0 && (code = source_rows_next(rows, &row, err)) == 0) {
        struct kv_name name;
        struct str value;
        arena_reset(&a);
        code = upload_row(&a, &row, &name, &value, err);
        if (code == 0)
            code = fn(l, &a, name, value, err);
        ++*count;
    }
    source_rows_close(rows);
    arena_release(&a);
    return code == ERR_END ? 0 : code;
}

int migrate_uploads(struct lake *l, struct source *s, uint64_t *count, struct err *err)
{
    bool has = false;
    int code = source_has_table(s, "gateway_multiparts", &has, err);

    *count = 0;
    if (code < 0 || !has)
        return code;
    code = migrate_uploads_each(l, s, upload_put, count, err);
    return code < 0 ? code : migrate_uploads_each(l, s, upload_compare, count, err);
}
