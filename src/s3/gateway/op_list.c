/* Lists objects (by both versions of the call), versions, uploads and parts. */
#include "s3/gateway/gateway_int.h"

#include "sign/base64.h"

struct listing {
    struct list_options o;
    uint64_t max; /* limit on the entries, as the request gives it */
    bool encode;  /* the request has encoding-type=url */
    struct str delimiter, prefix;
};

static void put_name(struct buf *out, const char *name, struct str text, bool encode)
{
    if (!encode) {
        xml_element(out, name, text);
        return;
    }
    xml_open(out, name);
    url_encode(out, text, true);
    xml_close(out, name);
}

/* Writes the prefix for the first version of ListObjects: as it was sent, even when names are
 * encoded, because botocore does not decode it there. A prefix that XML cannot hold is encoded all
 * the same. */
static void put_first_prefix(struct buf *out, struct str prefix, bool encode)
{
    bool plain = true;

    for (size_t i = 0; i < prefix.len; i++)
        plain &= (unsigned char)prefix.p[i] >= 0x20 || prefix.p[i] == '\t' || prefix.p[i] == '\n' ||
                 prefix.p[i] == '\r';
    put_name(out, "Prefix", prefix, encode && !plain);
}

static void put_given(struct buf *out, const char *name, struct str text, bool encode)
{
    if (text.len)
        put_name(out, name, text, encode);
}

static int read_listing(struct call *c, const char *max_name, struct listing *out, struct err *err)
{
    struct str encoding = call_param(c, "encoding-type");
    int code = call_number(c, max_name, OBJECT_LIST_MAX, OBJECT_LIST_MAX, &out->max, err);

    if (code == 0 && encoding.len && !str_eq(encoding, STR("url")))
        code = err_set(err, S3_INVALID_ARGUMENT, "Invalid Encoding Method specified in Request");
    /* allow-unordered is an extension of Ceph that allows keys in any order, so weir's order is
     * fine. It cannot be used with a delimiter. */
    if (code == 0 && str_ieq(call_param(c, "allow-unordered"), STR("true")) &&
        call_param(c, "delimiter").len)
        code = err_set(err, S3_INVALID_ARGUMENT, "allow-unordered cannot be used with a delimiter");
    out->encode = encoding.len > 0;
    out->prefix = call_param(c, "prefix");
    out->delimiter = call_param(c, "delimiter");
    out->o = (struct list_options){
        .prefix = out->prefix, .delimiter = out->delimiter, .limit = (size_t)out->max};
    return code;
}

static int list_run(struct call *c, const struct listing *l, bool versions, struct list_result *out,
                    struct err *err)
{
    return l->max == 0 ? 0 : call_list(c, &l->o, versions, out, err);
}

static void put_common(struct buf *xml, const struct listing *l, bool more)
{
    xml_element_u64(xml, "MaxKeys", l->max);
    put_given(xml, "Delimiter", l->delimiter, l->encode);
    if (l->encode)
        xml_element(xml, "EncodingType", STR("url"));
    xml_bool(xml, "IsTruncated", more);
}

static void put_storage_class(struct buf *xml, const struct object_meta *meta)
{
    xml_element(xml, "StorageClass",
                meta->storage_class.len ? meta->storage_class : STR("STANDARD"));
}

static void put_object(struct call *c, struct buf *xml, const struct object_info *o, bool encode,
                       bool owner)
{
    xml_open(xml, "Contents");
    put_name(xml, "Key", o->key, encode);
    xml_time(xml, "LastModified", o->modified_ms);
    xml_etag(xml, o->etag);
    if (o->meta.checksum.type != CHECKSUM_NONE)
        xml_element(xml, "ChecksumAlgorithm",
                    str_z(checksum_names[o->meta.checksum.kind].algorithm));
    xml_element_u64(xml, "Size", o->size);
    if (owner)
        xml_owner(xml, c, "Owner", o->meta.owner);
    put_storage_class(xml, &o->meta);
    xml_close(xml, "Contents");
}

static void put_prefix(struct buf *xml, struct str prefix, bool encode)
{
    xml_open(xml, "CommonPrefixes");
    put_name(xml, "Prefix", prefix, encode);
    xml_close(xml, "CommonPrefixes");
}

static void put_prefixes(struct buf *xml, const struct list_result *r, bool encode)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->entries[i].is_prefix)
            put_prefix(xml, r->entries[i].info.key, encode);
}

static void put_entries(struct call *c, struct buf *xml, const struct list_result *r, bool encode,
                        bool owner)
{
    for (size_t i = 0; i < r->count; i++)
        if (!r->entries[i].is_prefix)
            put_object(c, xml, &r->entries[i].info, encode, owner);
    put_prefixes(xml, r, encode);
    xml_close(xml, "ListBucketResult");
}

int op_list_v1(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct list_result r = {0};
    struct listing l;
    int code = read_listing(c, "max-keys", &l, err);

    l.o.after = call_param(c, "marker");
    if (code == 0)
        code = list_run(c, &l, false, &r, err);
    if (code < 0)
        return code;
    document_open(&xml, "ListBucketResult");
    xml_element(&xml, "Name", c->target.info.name);
    put_first_prefix(&xml, l.prefix, l.encode);
    put_name(&xml, "Marker", l.o.after, l.encode);
    if (r.more && l.delimiter.len)
        put_name(&xml, "NextMarker", r.next, l.encode);
    put_common(&xml, &l, r.more);
    put_entries(c, &xml, &r, l.encode, true);
    return respond_xml(c, 200, &xml);
}

static int read_token(struct call *c, struct str token, struct str *out, struct err *err)
{
    struct buf b = BUF_INIT(2 * OBJECT_KEY_MAX);
    int code = base64_decode(&b, token);

    *out = arena_str(c->a, buf_str(&b));
    buf_release(&b);
    return code < 0
               ? err_set(err, S3_INVALID_ARGUMENT, "The continuation token provided is incorrect")
               : 0;
}

static void put_v2(struct call *c, struct buf *xml, const struct listing *l,
                   const struct list_result *r)
{
    struct str token = call_param(c, "continuation-token"), start = call_param(c, "start-after");

    document_open(xml, "ListBucketResult");
    xml_element(xml, "Name", c->target.info.name);
    put_name(xml, "Prefix", l->prefix, l->encode);
    if (token.p)
        xml_element(xml, "ContinuationToken", token);
    if (r->more) {
        xml_open(xml, "NextContinuationToken");
        base64_encode(xml, r->next);
        xml_close(xml, "NextContinuationToken");
    }
    put_given(xml, "StartAfter", start, l->encode);
    xml_element_u64(xml, "KeyCount", r->count);
    put_common(xml, l, r->more);
    put_entries(c, xml, r, l->encode, str_ieq(call_param(c, "fetch-owner"), STR("true")));
}

int op_list_v2(struct call *c, struct err *err)
{
    struct str token = call_param(c, "continuation-token");
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct list_result r = {0};
    struct listing l;
    int code = read_listing(c, "max-keys", &l, err);

    if (code == 0 && !str_eq(call_param(c, "list-type"), STR("2")))
        code = err_set(err, S3_INVALID_ARGUMENT, "Invalid List Type specified in Request");
    l.o.after = call_param(c, "start-after");
    if (code == 0 && token.len)
        code = read_token(c, token, &l.o.after, err);
    if (code == 0)
        code = list_run(c, &l, false, &r, err);
    if (code < 0)
        return code;
    put_v2(c, &xml, &l, &r);
    return respond_xml(c, 200, &xml);
}

/* --- versions --- */

static void list_put_version(struct call *c, struct buf *xml, const struct object_info *o,
                             bool encode)
{
    const char *name = o->is_marker ? "DeleteMarker" : "Version";

    xml_open(xml, name);
    put_name(xml, "Key", o->key, encode);
    xml_element(xml, "VersionId", o->version.len ? o->version : STR("null"));
    xml_bool(xml, "IsLatest", o->is_latest);
    xml_time(xml, "LastModified", o->modified_ms);
    if (!o->is_marker) {
        xml_etag(xml, o->etag);
        xml_element_u64(xml, "Size", o->size);
    }
    xml_owner(xml, c, "Owner", o->meta.owner);
    if (!o->is_marker)
        put_storage_class(xml, &o->meta);
    xml_close(xml, name);
}

int op_list_versions(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct list_result r = {0};
    struct listing l;
    int code = read_listing(c, "max-keys", &l, err);

    l.o.after = call_param(c, "key-marker");
    l.o.after_version = call_param(c, "version-id-marker");
    if (code == 0 && l.o.after_version.len && !l.o.after.len)
        code = err_set(err, S3_INVALID_ARGUMENT,
                       "A version-id marker cannot be specified without a key marker.");
    if (code == 0)
        code = list_run(c, &l, true, &r, err);
    if (code < 0)
        return code;
    document_open(&xml, "ListVersionsResult");
    xml_element(&xml, "Name", c->target.info.name);
    put_name(&xml, "Prefix", l.prefix, l.encode);
    put_name(&xml, "KeyMarker", l.o.after, l.encode);
    xml_element(&xml, "VersionIdMarker", l.o.after_version);
    if (r.more) {
        put_name(&xml, "NextKeyMarker", r.next, l.encode);
        put_given(&xml, "NextVersionIdMarker", r.next_version, false);
    }
    put_common(&xml, &l, r.more);
    for (size_t i = 0; i < r.count; i++)
        if (!r.entries[i].is_prefix)
            list_put_version(c, &xml, &r.entries[i].info, l.encode);
    put_prefixes(&xml, &r, l.encode);
    xml_close(&xml, "ListVersionsResult");
    return respond_xml(c, 200, &xml);
}

/* --- uploads and parts --- */

static void put_upload(struct call *c, struct buf *xml, const struct upload_info *u, bool encode)
{
    xml_open(xml, "Upload");
    put_name(xml, "Key", u->key, encode);
    xml_element(xml, "UploadId", u->id);
    xml_owner(xml, c, "Initiator", u->meta.owner);
    xml_owner(xml, c, "Owner", u->meta.owner);
    put_storage_class(xml, &u->meta);
    xml_time(xml, "Initiated", u->started_ms);
    xml_close(xml, "Upload");
}

static void put_uploads(struct call *c, struct buf *xml, const struct listing *l,
                        const struct upload_list *r)
{
    document_open(xml, "ListMultipartUploadsResult");
    xml_element(xml, "Bucket", c->target.info.name);
    put_name(xml, "KeyMarker", l->o.after, l->encode);
    xml_element(xml, "UploadIdMarker", l->o.after_version);
    if (r->more) {
        put_name(xml, "NextKeyMarker", r->next_key, l->encode);
        xml_element(xml, "NextUploadIdMarker", r->next_id);
    }
    put_given(xml, "Delimiter", l->delimiter, l->encode);
    put_name(xml, "Prefix", l->prefix, l->encode);
    if (l->encode)
        xml_element(xml, "EncodingType", STR("url"));
    xml_element_u64(xml, "MaxUploads", l->max);
    xml_bool(xml, "IsTruncated", r->more);
    for (size_t i = 0; i < r->count; i++)
        put_upload(c, xml, &r->uploads[i], l->encode);
    for (size_t i = 0; i < r->prefix_count; i++)
        put_prefix(xml, r->prefixes[i], l->encode);
    xml_close(xml, "ListMultipartUploadsResult");
}

int op_list_uploads(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct upload_list r = {0};
    struct listing l;
    int code = read_listing(c, "max-uploads", &l, err);

    l.o.after = call_param(c, "key-marker");
    l.o.after_version = l.o.after.len ? call_param(c, "upload-id-marker") : STR_EMPTY;
    if (code == 0 && l.max > 0)
        code = call_list_uploads(c, &l.o, &r, err);
    if (code < 0)
        return code;
    put_uploads(c, &xml, &l, &r);
    return respond_xml(c, 200, &xml);
}

static void put_part(struct buf *xml, const struct upload_part *p)
{
    xml_open(xml, "Part");
    xml_element_u64(xml, "PartNumber", p->number);
    xml_time(xml, "LastModified", p->modified_ms);
    xml_etag(xml, p->etag);
    xml_element_u64(xml, "Size", p->size);
    xml_checksum(xml, &p->checksum);
    xml_close(xml, "Part");
}

static void list_put_parts(struct call *c, struct buf *xml, const struct part_list *r,
                           uint64_t after, uint64_t max)
{
    document_open(xml, "ListPartsResult");
    xml_element(xml, "Bucket", c->target.info.name);
    xml_element(xml, "Key", c->key);
    xml_element(xml, "UploadId", call_param(c, "uploadId"));
    xml_owner(xml, c, "Initiator", r->upload.meta.owner);
    xml_owner(xml, c, "Owner", r->upload.meta.owner);
    put_storage_class(xml, &r->upload.meta);
    xml_element_u64(xml, "PartNumberMarker", after);
    if (r->count)
        xml_element_u64(xml, "NextPartNumberMarker", r->parts[r->count - 1].number);
    xml_element_u64(xml, "MaxParts", max);
    xml_bool(xml, "IsTruncated", r->more);
    for (size_t i = 0; i < r->count; i++)
        put_part(xml, &r->parts[i]);
    xml_close(xml, "ListPartsResult");
}

int op_list_parts(struct call *c, struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct upload_info upload = {.key = c->key, .id = call_param(c, "uploadId")};
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct part_list r = {0};
    uint64_t max = 0, after = 0;
    int code = call_number(c, "max-parts", OBJECT_LIST_MAX, OBJECT_LIST_MAX, &max, err);

    if (code == 0)
        code = call_number(c, "part-number-marker", 0, OBJECT_MAX_PARTS, &after, err);
    if (code == 0)
        code = b->ops->list_parts(b, c->a, &upload, (uint32_t)after, (size_t)max, &r, err);
    if (code == ERR_NOT_FOUND)
        return s3_fail(err, S3_NO_SUCH_UPLOAD);
    if (code < 0)
        return code;
    list_put_parts(c, &xml, &r, after, max);
    return respond_xml(c, 200, &xml);
}
