/* Uploads of many parts. */
#include "object/remote/remote_int.h"

static void ask_upload(struct ask *q, struct remote_bucket *b, const char *method,
                       const struct upload_info *upload)
{
    ask_init_bucket(q, b, method, upload->key);
    ask_param(q, "uploadId", upload->id);
}

int remote_upload_begin(struct bucket *bucket, struct arena *a, struct str key,
                        const struct object_meta *meta, struct str *id, struct err *err)
{
    struct ask q;
    struct str text;
    int code = remote_key_check(key, err);

    if (code == 0)
        code = remote_meta_check(meta, err);
    if (code < 0)
        return code;
    ask_init_bucket(&q, remote_bucket_of(bucket), "POST", key);
    ask_param(&q, "uploads", STR_EMPTY);
    ask_meta(&q, meta);
    if (meta->checksum.type != CHECKSUM_NONE) {
        ask_header(&q, "x-amz-checksum-algorithm",
                   str_z(checksum_names[meta->checksum.kind].algorithm));
        ask_header(&q, "x-amz-checksum-type",
                   meta->checksum.type == CHECKSUM_FULL_OBJECT ? STR("FULL_OBJECT")
                                                               : STR("COMPOSITE"));
    }
    code = ask_send(&q, err);
    if (code == 0)
        code = ask_text(&q, a, REMOTE_DOCUMENT_MAX, &text, err);
    if (code == 0)
        code = remote_read_upload_id(id, a, text, err);
    ask_release(&q);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int remote_upload_part(struct bucket *bucket, struct arena *a, const struct upload_info *upload,
                       uint32_t number, struct reader *body, uint64_t size,
                       const struct put_options *o, struct upload_part *out, struct err *err)
{
    struct object_meta meta = o->meta;
    struct ask q;

    if (size == UINT64_MAX)
        return err_set(err, ERR_INVALID, "a part for a remote storage must say its size");
    if (upload->id.len == 0)
        return err_code(err, ERR_NOT_FOUND);
    ask_upload(&q, remote_bucket_of(bucket), "PUT", upload);
    ask_param_u64(&q, "partNumber", number);
    q.request.idempotent = true;
    int code = remote_send_body(&q, body, size, o, &meta, err);
    if (code == 0) {
        *out = (struct upload_part){.number = number,
                                    .size = size,
                                    .etag = remote_etag(a, ask_answer(&q, "ETag")),
                                    .checksum = remote_checksum_of(a, q.head)};
        if (out->etag.len == 0)
            code = err_set(err, ERR_PEER, "the storage answers without an ETag");
    }
    ask_release(&q);
    return code;
}

static struct str range_text(struct ask *q, const struct object_info *source,
                             const struct object_range *range, uint64_t *size)
{
    uint64_t first = range->first, last = range->last;

    if (range->kind == RANGE_ALL || source->size == 0) {
        *size = source->size;
        return STR_EMPTY;
    }
    if (range->kind == RANGE_SUFFIX) {
        first = range->first < source->size ? source->size - range->first : 0;
        last = source->size - 1;
    }
    if (last >= source->size)
        last = source->size - 1;
    *size = last + 1 - first;
    return arena_fmt(&q->a, "bytes=%llu-%llu", (unsigned long long)first, (unsigned long long)last);
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int remote_upload_part_copy(struct bucket *bucket, struct arena *a,
                            const struct upload_info *upload, uint32_t number, struct bucket *from,
                            const struct object_info *source, const struct object_range *range,
                            struct upload_part *out, struct err *err)
{
    struct remote_bucket *b = remote_bucket_of(bucket);
    struct put_result made = {0};
    uint64_t size = 0;
    struct ask q;
    struct str text;

    if (!remote_is_bucket_of(from, b->remote) || range->kind == RANGE_PART ||
        source->meta.encryption.len)
        return err_code(err, ERR_UNSUPPORTED);
    if (range->kind == RANGE_FROM_TO && range->first >= source->size)
        return err_code(err, ERR_RANGE);
    ask_upload(&q, b, "PUT", upload);
    ask_param_u64(&q, "partNumber", number);
    ask_copy_source(&q, from, source);
    ask_header(&q, "x-amz-copy-source-range", range_text(&q, source, range, &size));
    q.request.idempotent = true;
    int code = ask_send(&q, err);
    if (code == 0)
        code = ask_text(&q, a, REMOTE_DOCUMENT_MAX, &text, err);
    if (code == 0)
        code = remote_read_result(&made, a, text, "CopyPartResult", err);
    if (code == 0 && made.etag.len == 0)
        code = err_set(err, ERR_PEER, "the storage answers without an ETag");
    if (code == 0)
        *out = (struct upload_part){
            .number = number, .size = size, .modified_ms = made.modified_ms, .etag = made.etag};
    ask_release(&q);
    return code;
}

static void write_parts(struct buf *xml, const struct upload_part *parts, size_t count)
{
    xml_prolog(xml);
    xml_open(xml, "CompleteMultipartUpload");
    for (size_t i = 0; i < count; i++) {
        const struct object_checksum *sum = &parts[i].checksum;
        const char *name = checksum_names[sum->kind].element;
        xml_open(xml, "Part");
        xml_element_u64(xml, "PartNumber", parts[i].number);
        xml_open(xml, "ETag");
        xml_text(xml, STR("\""));
        xml_text(xml, parts[i].etag);
        xml_text(xml, STR("\""));
        xml_close(xml, "ETag");
        if (sum->type != CHECKSUM_NONE && name && sum->value.len)
            xml_element(xml, name, sum->value);
        xml_close(xml, "Part");
    }
    xml_close(xml, "CompleteMultipartUpload");
}

static void ask_finish(struct ask *q, struct remote_bucket *b, const struct upload_info *upload,
                       struct str xml, const struct put_options *o)
{
    ask_upload(q, b, "POST", upload);
    ask_document(q, xml);
    ask_conditions(q, &o->conditions);
    ask_checksum(q, &o->meta.checksum);
    if (o->meta.checksum.type != CHECKSUM_NONE)
        ask_header(q, "x-amz-checksum-type",
                   o->meta.checksum.type == CHECKSUM_FULL_OBJECT ? STR("FULL_OBJECT")
                                                                 : STR("COMPOSITE"));
}

/* Asks the peer for the ETag of the finished object. Some peers (Ceph RGW 16) leave it out of the
 * answer that finishes the upload. */
static int fill_etag(struct bucket *bucket, struct arena *a, struct str key, struct put_result *out,
                     struct err *err)
{
    struct get_result got = {0};
    int code = remote_head(bucket, a, key, out->version, NULL, &got, err);

    if (code == 0)
        out->etag = got.info.etag;
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int remote_upload_finish(struct bucket *bucket, struct arena *a, const struct upload_info *upload,
                         const struct upload_part *parts, size_t count, const struct put_options *o,
                         struct put_result *out, struct err *err)
{
    struct buf xml = BUF_INIT(4 * MIB);
    struct ask q;
    struct str text;

    if (count == 0)
        return err_set(err, ERR_INVALID, "InvalidPart");
    write_parts(&xml, parts, count);
    ask_finish(&q, remote_bucket_of(bucket), upload, buf_str(&xml), o);
    int code = buf_error(&xml);
    if (code == 0)
        code = ask_send(&q, err);
    if (code == 0) /* an answer of 200 may have an error in its body (docs/remote-storage.md, M3) */
        code = ask_text(&q, a, REMOTE_DOCUMENT_MAX, &text, err);
    if (code == 0)
        code = remote_read_result(out, a, text, "CompleteMultipartUploadResult", err);
    if (code == 0) {
        out->version = arena_str(a, ask_answer(&q, "x-amz-version-id"));
        for (size_t i = 0; i < count; i++)
            out->size += parts[i].size;
    }
    ask_release(&q);
    buf_release(&xml);
    return code == 0 && out->etag.len == 0 ? fill_etag(bucket, a, upload->key, out, err) : code;
}

int remote_upload_abort(struct bucket *bucket, const struct upload_info *upload, struct err *err)
{
    struct ask q;

    ask_upload(&q, remote_bucket_of(bucket), "DELETE", upload);
    return ask_done(&q, err);
}

int remote_list_parts(struct bucket *bucket, struct arena *a, const struct upload_info *upload,
                      uint32_t after, size_t limit, struct part_list *out, struct err *err)
{
    struct ask q;
    struct str text;

    ask_upload(&q, remote_bucket_of(bucket), "GET", upload);
    ask_param_u64(&q, "max-parts", limit);
    if (after)
        ask_param_u64(&q, "part-number-marker", after);
    int code = ask_send(&q, err);
    if (code == 0)
        code = ask_text(&q, a, XML_MAX_BYTES, &text, err);
    if (code == 0)
        code = remote_read_parts(out, a, text, after, limit, err);
    if (code == 0) {
        out->upload.key = arena_str(a, upload->key);
        out->upload.id = arena_str(a, upload->id);
    }
    ask_release(&q);
    return code;
}
