/* Multipart uploads: begins them, puts or copies parts, completes and aborts them. */
#include "s3/gateway/gateway_int.h"

#include "sign/base64.h"

static int no_upload(int code, struct err *err)
{
    return code == ERR_NOT_FOUND ? s3_fail(err, S3_NO_SUCH_UPLOAD) : code;
}

int upload_meta(struct call *c, const struct upload_info *upload, struct object_meta *out,
                struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct part_list list = {0};
    int code = b->ops->list_parts(b, c->a, upload, 0, 1, &list, err);

    *out = list.upload.meta;
    return no_upload(code, err);
}

/* Reads x-amz-checksum-algorithm and -type. Completing the upload needs the kind of the parts'
 * checksums, so it is kept in the upload's metadata, as a checksum with an empty value. */
static int read_algorithm(struct call *c, struct object_meta *meta, struct err *err)
{
    struct str type = http_header(c->head, "x-amz-checksum-type");
    enum digest_kind kind;
    int code = checksum_asked(c, &kind, err);

    if (code < 0 || kind == DIGEST_MD5)
        return code;
    bool full = type.len ? str_eq(type, STR("FULL_OBJECT")) : kind == DIGEST_CRC64NVME;
    if (full && (kind == DIGEST_SHA1 || kind == DIGEST_SHA256))
        return err_set(err, S3_INVALID_REQUEST,
                       "The FULL_OBJECT checksum type cannot be used with the %s checksum "
                       "algorithm.",
                       checksum_names[kind].algorithm);
    meta->checksum = (struct object_checksum){
        .type = full ? CHECKSUM_FULL_OBJECT : CHECKSUM_COMPOSITE, .kind = kind};
    return 0;
}

int op_create_upload(struct call *c, struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct put_options o = {0};
    struct str id = STR_EMPTY;
    int code = meta_from_request(c, &o.meta, err);

    if (code == 0)
        code = meta_common(c, &o.meta, err);
    if (code == 0)
        code = read_algorithm(c, &o.meta, err);
    if (code == 0)
        code = encrypt_new(c, NULL, &o, err);
    if (code == 0)
        code = b->ops->upload_begin(b, c->a, c->key, &o.meta, &id, err);
    if (code == 0) {
        code = call_upload_begun(c, id, err);
        if (code < 0) /* the client does not get the id, so nobody could use the upload */
            (void)!b->ops->upload_abort(b, &(struct upload_info){.key = c->key, .id = id}, NULL);
    }
    if (code < 0)
        return code;
    document_open(&xml, "InitiateMultipartUploadResult");
    xml_element(&xml, "Bucket", c->target.info.name);
    xml_element(&xml, "Key", c->key);
    xml_element(&xml, "UploadId", id);
    xml_close(&xml, "InitiateMultipartUploadResult");
    respond_begin(c, 200);
    if (o.meta.checksum.type != CHECKSUM_NONE) {
        respond_header(c, "x-amz-checksum-algorithm",
                       str_z(checksum_names[o.meta.checksum.kind].algorithm));
        respond_header(c, "x-amz-checksum-type", checksum_type_name(o.meta.checksum.type));
    }
    respond_encryption(c);
    respond_header(c, "Content-Type", STR("application/xml"));
    c->begun = true;
    code = http_send(c->http, buf_str(&xml));
    buf_release(&xml);
    return code;
}

static int part_number(struct call *c, uint32_t *out, struct err *err)
{
    uint64_t number = 0;

    if (str_u64(call_param(c, "partNumber"), &number) < 0 || number < 1 ||
        number > OBJECT_MAX_PARTS)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "Part number must be an integer between 1 and 10000, inclusive");
    *out = (uint32_t)number;
    return 0;
}

int op_upload_part(struct call *c, struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct upload_info upload = {.key = c->key, .id = call_param(c, "uploadId")};
    struct put_body *body = arena_new(c->a, struct put_body);
    struct put_options o = {.verify = put_body_verify, .ctx = body};
    struct object_meta meta;
    struct upload_part part = {0};
    uint32_t number;
    int code = body ? part_number(c, &number, err) : err_code(err, ERR_NO_MEMORY);

    if (code == 0)
        code = upload_meta(c, &upload, &meta, err);
    if (code == 0)
        code = encrypt_part(c, &meta, &o, err);
    if (code < 0)
        return code;
    code = put_body_open(body, c, checksum_of_part(&meta), &o, err);
    if (code == 0)
        code = b->ops->upload_part(b, c->a, &upload, number, &body->payload.reader,
                                   body->payload.length, &o, &part, err);
    put_body_close(body);
    if (code < 0)
        return no_upload(code, err);
    respond_begin(c, 200);
    respond_etag(c, part.etag);
    respond_encryption(c);
    if (part.checksum.type != CHECKSUM_NONE)
        respond_header(c, checksum_names[part.checksum.kind].header.p, part.checksum.value);
    c->begun = true;
    return http_send(c->http, STR_EMPTY);
}

/* --- UploadPartCopy --- */

static int copy_range(struct call *c, const struct copy_source *s, struct object_range *out,
                      struct err *err)
{
    struct str text = http_header(c->head, "x-amz-copy-source-range");
    uint64_t size = s->head.info.size;

    *out = (struct object_range){.kind = RANGE_ALL};
    if (text.p &&
        (!object_range_parse(text, out) || out->kind != RANGE_FROM_TO || out->last == UINT64_MAX))
        return err_set(err, S3_INVALID_ARGUMENT,
                       "The x-amz-copy-source-range value must be of the form bytes=first-last "
                       "where first and last are the zero-based offsets of the first and last "
                       "bytes to copy");
    if (text.p && out->last >= size)
        return err_set(err, S3_INVALID_RANGE,
                       "Range specified is not valid for source object of size: %llu",
                       (unsigned long long)size);
    if ((text.p ? out->last - out->first + 1 : size) > CALL_PUT_MAX)
        return err_set(err, S3_INVALID_REQUEST,
                       "The specified copy source is larger than the maximum allowable size for "
                       "a copy source: 5368709120");
    return 0;
}

/* A part that is copied, and its upload. */
struct part_copy {
    struct copy_source *s;
    struct object_range range;
    struct upload_info upload; /* with its meta, unless the bucket is foreign */
    struct upload_part part;
};

static bool part_copy_is_whole(const struct part_copy *p)
{
    return p->range.kind == RANGE_ALL ||
           (p->range.first == 0 && p->range.last + 1 == p->s->head.info.size);
}

/* Chooses the part's checksum. A part that is the whole source can have the source's checksum of
 * all its bytes. If nobody asked for a checksum, and the storage can copy without reading the
 * bytes, the bytes are not read just to compute a checksum. */
static void ask_part_checksum(struct part_copy *p)
{
    const struct object_info *from = &p->s->head.info;
    enum digest_kind kind = checksum_of_part(&p->upload.meta);
    bool known = part_copy_is_whole(p) && checksum_is_whole(&from->meta.checksum, kind);
    bool unread = part_copy_is_whole(p) && !from->part_count;

    if (kind == DIGEST_MD5 || (!known && unread && p->upload.meta.checksum.type == CHECKSUM_NONE))
        return;
    p->part.checksum = (struct object_checksum){CHECKSUM_FULL_OBJECT, kind,
                                                known ? from->meta.checksum.value : STR_EMPTY};
}

/* Makes the part by reading the source and uploading its bytes. This is for copies between
 * storages, and where bytes must be encrypted or decrypted. */
static int read_and_upload(struct call *c, struct part_copy *p, struct err *err)
{
    struct bucket *to = c->target.bucket;
    struct put_options o = {.meta.checksum = p->part.checksum};
    bool known = p->part.checksum.value.len > 0 || target_is_foreign(&c->target.at);
    struct get_result got = {0};
    struct summed sum = {0};
    int code = copy_source_get(c, p->s, &p->range, &got, err);

    if (code == 0)
        code = encrypt_source_unlock(c, p->s, &got, err);
    if (code == 0)
        code = encrypt_part(c, &p->upload.meta, &o, err);
    if (code == 0) {
        struct reader *body = summed_open(
            &sum, c->a, got.body, known ? DIGEST_MD5 : checksum_of_part(&p->upload.meta), &o);
        code = to->ops->upload_part(to, c->a, &p->upload, p->part.number, body, got.len, &o,
                                    &p->part, err);
    }
    summed_close(&sum);
    reader_close(got.body);
    return code;
}

static int open_part_copy(struct call *c, struct part_copy *p, struct err *err)
{
    struct put_options ignored = {0};
    struct sealed_key data = {0};
    int code = copy_source_open(c, &p->s, err);

    if (code == 0)
        code = copy_range(c, p->s, &p->range, err);
    if (code == 0)
        code = encrypt_source(c, p->s, &data, err);
    secure_zero(&data, sizeof(data));
    p->upload = (struct upload_info){.key = c->key, .id = call_param(c, "uploadId")};
    if (code == 0 && !target_is_foreign(&c->target.at))
        code = upload_meta(c, &p->upload, &p->upload.meta, err);
    if (code == 0)
        code = encrypt_part(c, &p->upload.meta, &ignored, err);
    if (code == 0 && !target_is_foreign(&c->target.at))
        ask_part_checksum(p);
    return code;
}

static int part_copy_make(struct call *c, struct part_copy *p, struct err *err)
{
    struct bucket *b = c->target.bucket;
    int code = open_part_copy(c, p, err);

    if (code < 0)
        return code;
    code = ERR_UNSUPPORTED;
    if (copy_shares(c, p->s))
        code = b->ops->upload_part_copy(b, c->a, &p->upload, p->part.number, p->s->target.bucket,
                                        &p->s->head.info, &p->range, &p->part, err);
    if (code == ERR_UNSUPPORTED)
        code = read_and_upload(c, p, err);
    return no_upload(code, err);
}

int op_upload_part_copy(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct part_copy p = {0};
    int code = part_number(c, &p.part.number, err);

    if (code == 0)
        code = part_copy_make(c, &p, err);
    if (code == 0) {
        document_open(&xml, "CopyPartResult");
        xml_time(&xml, "LastModified", p.part.modified_ms);
        xml_etag(&xml, p.part.etag);
        xml_checksum(&xml, &p.part.checksum);
        xml_close(&xml, "CopyPartResult");
        respond_begin(c, 200);
        if (copy_source_is_versioned(p.s))
            respond_header(c, "x-amz-copy-source-version-id", p.s->head.info.version);
        respond_encryption(c);
        respond_header(c, "Content-Type", STR("application/xml"));
        c->begun = true;
        code = http_send(c->http, buf_str(&xml));
    }
    buf_release(&xml);
    call_log_copied(c, code);
    return code;
}

/* --- completing --- */

enum {
    COMPLETION_ARENA_MAX = 48 * 1024 * 1024 /* bytes for two lists of 10,000 parts */
};

struct completion {
    struct arena a; /* memory for everything that grows with the number of parts */
    struct upload_info upload;
    struct upload_part *parts;
    size_t count;
    struct object_meta meta; /* meta of the upload, or of the object that was made of it */
    struct object_checksum checksum;
};

static void part_checksum(const struct xml_node *node, struct object_checksum *out)
{
    for (int k = 0; k < DIGEST_KINDS; k++) {
        const char *name = checksum_names[k].element;
        struct str value = name ? xml_child_text(node, name, STR_EMPTY) : STR_EMPTY;
        if (value.len)
            *out = (struct object_checksum){CHECKSUM_FULL_OBJECT, (enum digest_kind)k, value};
    }
}

static int completion_read_part(const struct xml_node *node, struct upload_part *out,
                                struct err *err)
{
    uint64_t number = 0;

    if (str_u64(str_trim(xml_child_text(node, "PartNumber", STR_EMPTY)), &number) < 0 ||
        number < 1 || number > OBJECT_MAX_PARTS)
        return s3_fail(err, S3_MALFORMED_XML);
    out->number = (uint32_t)number;
    out->etag = str_trim(xml_child_text(node, "ETag", STR_EMPTY));
    part_checksum(node, &out->checksum);
    return out->etag.len ? 0 : s3_fail(err, S3_MALFORMED_XML);
}

/* Reads the list of parts. If a part is named twice in a row, the second entry is used, as on Ceph,
 * because that part was sent again. */
static int read_parts(struct call *c, struct completion *done, struct err *err)
{
    struct xml_node *root = NULL;
    int code = document_read(&root, &done->a, c->body, "CompleteMultipartUpload", err);

    if (code == 0)
        code = document_shape(root, "Part+", err);
    if (code < 0)
        return code;
    done->count = document_count(root, "Part");
    if (done->count > OBJECT_MAX_PARTS)
        return s3_fail(err, S3_MALFORMED_XML);
    done->parts = arena_array(&done->a, done->count, sizeof(*done->parts));
    if (!done->parts)
        return err_code(err, ERR_NO_MEMORY);
    size_t i = 0;
    for (struct xml_node *p = xml_child(root, "Part"); p && code == 0; p = xml_next(p, "Part")) {
        struct upload_part part = {0};
        code = completion_read_part(p, &part, err);
        if (i == 0 || done->parts[i - 1].number != part.number)
            i++;
        done->parts[i - 1] = part;
    }
    done->count = i;
    return code;
}

/* The state of computing an object's checksum from those of its parts, in the order of their
 * numbers. */
struct sum {
    struct object_checksum want; /* the type and kind to make */
    /* The upload asked for the checksum. False: the checksum is made only if all parts have a
     * checksum. */
    bool asked;
    struct digest_value total;
    struct buf joined; /* the values of the parts' checksums, joined */
    size_t parts;
    size_t found; /* number of parts that were found, with a checksum or without */
    uint64_t bytes;
};

static int add_sum(struct sum *s, const struct upload_part *part, struct err *err)
{
    struct digest_value one = {.len = digest_size(s->want.kind)};

    if (part->checksum.type == CHECKSUM_NONE || part->checksum.kind != s->want.kind ||
        base64_decode_exact(one.bytes, one.len, part->checksum.value) < 0)
        return !s->asked ? 0
                         : err_set(err, S3_INVALID_REQUEST,
                                   "The upload was created using a %s checksum. The complete "
                                   "request must include the checksum for each part.",
                                   checksum_names[s->want.kind].algorithm);
    if (s->want.type == CHECKSUM_COMPOSITE)
        buf_append(&s->joined, one.bytes, one.len);
    else if (s->parts == 0)
        s->total = one;
    else
        digest_combine(s->want.kind, &s->total, &one, part->size);
    s->parts++;
    return 0;
}

/* Adds up the checksums of the parts. The storage lists its parts by number. The request's list
 * must have the same order; if it does not, the storage refuses it later. The checksums that are
 * used here are put into done->parts, so that the storage also refuses the list if a part has been
 * replaced meanwhile. */
static int sum_parts(struct call *c, struct completion *done, struct sum *s, struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct part_list page = {0};
    uint32_t after = 0;
    size_t i = 0;
    int code;

    do {
        code = b->ops->list_parts(b, &done->a, &done->upload, after, OBJECT_LIST_MAX, &page, err);
        for (size_t k = 0; code == 0 && k < page.count && i < done->count; k++) {
            after = page.parts[k].number;
            if (after == done->parts[i].number) {
                code = add_sum(s, &page.parts[k], err);
                if (done->parts[i].checksum.type == CHECKSUM_NONE)
                    done->parts[i].checksum = page.parts[k].checksum;
                s->bytes += page.parts[k].size;
                i++;
            }
        }
    } while (code == 0 && page.more && page.count && i < done->count);
    s->found = i;
    return code;
}

/* Checks the object's length against the client's claim, if there is one and all parts are
 * there. */
static int check_size(struct call *c, const struct completion *done, const struct sum *s,
                      struct err *err)
{
    struct str said = http_header(c->head, "x-amz-mp-object-size");
    uint64_t size;

    if (!said.len)
        return 0;
    if (str_u64(said, &size) < 0)
        return err_set(err, S3_INVALID_ARGUMENT, "x-amz-mp-object-size must be a number of bytes");
    if (s->found == done->count && size != s->bytes)
        return err_set(err, S3_INVALID_REQUEST,
                       "The provided 'x-amz-mp-object-size' header value %llu does not match what "
                       "was computed: %llu",
                       (unsigned long long)size, (unsigned long long)s->bytes);
    return 0;
}

static struct str sum_text(struct call *c, struct sum *s)
{
    struct str text;

    if (s->want.type == CHECKSUM_COMPOSITE)
        digest_of(s->want.kind, buf_str(&s->joined), &s->total);
    text = digest_text(c->a, &s->total);
    return s->want.type == CHECKSUM_COMPOSITE
               ? arena_fmt(c->a, STR_FMT "-%zu", STR_ARG(text), s->parts)
               : text;
}

/* Makes the checksum of the object from those of its parts, and compares it with the client's
 * claim. */
static int whole_checksum(struct call *c, struct completion *done, struct err *err)
{
    struct object_checksum *out = &done->checksum;
    struct sum s = {.want = done->meta.checksum,
                    .asked = done->meta.checksum.type != CHECKSUM_NONE,
                    .joined = BUF_INIT(CALL_XML_MAX)};

    if (!s.asked)
        s.want = (struct object_checksum){.type = CHECKSUM_FULL_OBJECT, .kind = DIGEST_CRC64NVME};
    int code = sum_parts(c, done, &s, err);
    if (code == 0)
        code = check_size(c, done, &s, err);
    if (code == 0 && s.parts == done->count)
        *out = (struct object_checksum){s.want.type, s.want.kind, sum_text(c, &s)};
    buf_release(&s.joined);
    if (code < 0 || out->type == CHECKSUM_NONE)
        return code;
    struct str said = http_header(c->head, checksum_names[out->kind].header.p);
    if (said.len && !str_eq(said, out->value))
        return s3_fail(err, S3_BAD_DIGEST);
    return 0;
}

static int read_completion(struct call *c, struct completion *done, struct err *err)
{
    int code = read_parts(c, done, err);

    done->upload = (struct upload_info){.key = c->key, .id = call_param(c, "uploadId")};
    if (code == 0)
        code = upload_meta(c, &done->upload, &done->meta, err);
    /* There is no such upload. Perhaps the same request has completed it before. So the request
     * goes on: completing an upload again either gives the same answer or fails with NoSuchUpload.
     */
    if (code == S3_NO_SUCH_UPLOAD)
        return 0;
    if (code == 0)
        code = encrypt_finish(c, &done->meta, err);
    return code < 0 ? code : whole_checksum(c, done, err);
}

/* Called when the same request has completed the upload before. The parts no longer exist, so the
 * checksum is read from the object. */
static void completed_before(struct call *c, const struct put_result *out, struct completion *done)
{
    static const struct object_conditions none;
    struct bucket *b = c->target.bucket;
    struct get_result head = {0};
    struct err ignored = {0};

    if (b->ops->head(b, c->a, c->key, out->version, &none, &head, &ignored) < 0 ||
        !str_eq(head.info.etag, out->etag))
        return;
    done->meta = head.info.meta;
    done->checksum = head.info.meta.checksum;
}

static int upload_complete(struct call *c, struct completion *done, struct put_result *out,
                           struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct put_options o = {0};
    int code = conditions_read(c, "", &o.conditions, err);

    if (code == 0)
        code = read_completion(c, done, err);
    if (code < 0)
        return code;
    o.meta.checksum = done->checksum;
    code = call_note(c, S3_EVENT_CREATED_COMPLETE, c->key, &o.note, err);
    if (code == 0)
        code = b->ops->upload_finish(b, &done->a, &done->upload, done->parts, done->count, &o, out,
                                     err);
    if (code == 0)
        call_told(c);
    if (code == 0 && done->checksum.type == CHECKSUM_NONE)
        completed_before(c, out, done);
    if (code == ERR_NOT_FOUND && o.conditions.if_match.len)
        return s3_fail(err, S3_NO_SUCH_KEY);
    return no_upload(code, err);
}

static struct str upload_location(struct call *c)
{
    struct buf text = BUF_INIT(HTTP_MAX_HEAD);

    buf_append_z(&text, http_request_is_tls(c->http) ? "https://" : "http://");
    buf_append_str(&text, http_header(c->head, "host"));
    buf_append_str(&text, c->head->path);
    struct str kept = arena_str(c->a, buf_str(&text));
    buf_release(&text);
    return kept;
}

int op_complete_upload(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct completion done = {.a = ARENA_INIT(COMPLETION_ARENA_MAX)};
    struct put_result out = {0};
    int code = upload_complete(c, &done, &out, err);

    if (code < 0) {
        arena_release(&done.a);
        return code;
    }
    document_open(&xml, "CompleteMultipartUploadResult");
    xml_element(&xml, "Location", upload_location(c));
    xml_element(&xml, "Bucket", c->target.info.name);
    xml_element(&xml, "Key", c->key);
    xml_etag(&xml, out.etag);
    xml_checksum(&xml, &done.checksum);
    xml_checksum_type(&xml, &done.checksum);
    xml_close(&xml, "CompleteMultipartUploadResult");
    respond_begin(c, 200);
    respond_new_version(c, out.version);
    respond_encryption(c);
    respond_put_expiration(c, &out, &done.meta);
    respond_header(c, "Content-Type", STR("application/xml"));
    c->begun = true;
    code = http_send(c->http, buf_str(&xml));
    buf_release(&xml);
    arena_release(&done.a);
    return code;
}

int op_abort_upload(struct call *c, struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct upload_info upload = {.key = c->key, .id = call_param(c, "uploadId")};
    int code = b->ops->upload_abort(b, &upload, err);

    return code < 0 ? no_upload(code, err) : respond_empty(c, 204);
}
