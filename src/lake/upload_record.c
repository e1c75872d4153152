/* Reads and writes records of uploads in parts. */
#include "lake/upload.h"

static const struct proto_field upload_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct lake_upload, address),
    PROTO_FIELD(2, PROTO_STR, struct lake_upload, data_id),
    PROTO_FIELD(3, PROTO_STR, struct lake_upload, entry),
    PROTO_FIELD(4, PROTO_STR, struct lake_upload, initiator),
    PROTO_FIELD(5, PROTO_TIME, struct lake_upload, started_ms),
    PROTO_FIELD(6, PROTO_TIME, struct lake_upload, finished_ms),
    PROTO_FIELD(7, PROTO_STR, struct lake_upload, etag),
    PROTO_FIELD(8, PROTO_STR, struct lake_upload, parts),
    PROTO_FIELD(9, PROTO_U64, struct lake_upload, size),
    PROTO_FIELD(10, PROTO_TIME, struct lake_upload, modified_ms),
    {0},
};

struct kv_name lake_upload_name(struct lake_bucket *b, struct arena *a, struct str key,
                                struct str id)
{
    struct lake_at at = lake_bucket_at(b, key);
    struct buf name = {0};

    buf_append_str(&name, at.ref);
    buf_append_char(&name, '/');
    buf_append_str(&name, at.path);
    buf_append_char(&name, '\0');
    buf_append_str(&name, id);
    struct kv_name out = lake_key_in(a, b->repo.partition, "uploads", buf_str(&name));
    buf_release(&name);
    return out;
}

bool lake_upload_split(struct str name, struct str *key, struct str *id)
{
    size_t at = name.len;

    while (at > 0 && name.p[at - 1] != '\0')
        at--;
    *key = str_head(name, at ? at - 1 : 0);
    *id = str_skip(name, at);
    return at > 0;
}

void lake_upload_encode(struct buf *out, const struct lake_upload *u)
{
    proto_write(out, upload_fields, u);
}

int lake_upload_decode(struct lake_upload *out, struct str in, struct err *err)
{
    *out = (struct lake_upload){0};
    return proto_read(out, upload_fields, NULL, in, err) < 0
               ? err_set(err, ERR_CORRUPT, "the record of an upload is damaged")
               : 0;
}

int lake_upload_read(struct lake_upload *out, struct lake_bucket *b, struct arena *a,
                     const struct upload_info *upload, struct err *err)
{
    struct kv_name name = lake_upload_name(b, a, upload->key, upload->id);
    struct kv_value value;
    int code = lake_row_get(b->lake, a, &b->repo, name, "there is no such upload", &value, err);

    if (code == 0)
        code = lake_upload_decode(out, value.bytes, err);
    if (code == 0) {
        out->name = name;
        out->stamp = value.stamp;
    }
    return code;
}

int lake_upload_write(struct lake_upload *u, struct lake_bucket *b, struct arena *a, bool is_new,
                      struct err *err)
{
    struct buf record = {0};

    lake_upload_encode(&record, u);
    struct str value = arena_str(a, buf_str(&record));
    int code = buf_error(&record);
    buf_release(&record);
    if (code < 0 || !value.p)
        return err_code(err, ERR_NO_MEMORY);
    if (is_new)
        return lake_put_new(b->lake, a, &b->repo, u->name, value, err);
    return lake_put_same(b->lake, a, &b->repo, u->name, value, u->stamp, err);
}

int lake_upload_info(const struct lake_upload *u, struct arena *a, struct str key, struct str id,
                     struct upload_info *out, struct err *err)
{
    struct lake_entry entry;
    struct object_info info = {0};
    int code = lake_entry_read(&entry, a, arena_str(a, u->entry), err);

    if (code == 0)
        code = lake_entry_info(&entry, a, key, false, &info, err);
    if (code < 0)
        return code;
    /* The record has only the type and the kind of the checksum that the object will get. Its value
     * is known when the upload is finished. */
    if (entry.checksum_type <= CHECKSUM_COMPOSITE && entry.checksum_kind < DIGEST_KINDS)
        info.meta.checksum =
            (struct object_checksum){.type = (enum checksum_type)entry.checksum_type,
                                     .kind = (enum digest_kind)entry.checksum_kind};
    *out = (struct upload_info){.key = arena_str(a, key),
                                .id = arena_str(a, id),
                                .initiator = arena_str(a, u->initiator),
                                .started_ms = u->started_ms,
                                .meta = info.meta};
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}
