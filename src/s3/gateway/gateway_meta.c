/* Reads from a request the headers that are kept with an object, and puts them into answers. */
#include "s3/gateway/gateway_int.h"

#include "base/clock.h"
#include "s3/lifecycle/lifecycle.h"
#include "s3/documents/lock.h"
#include "s3/documents/storage_class.h"
#include "meta/tagging.h"

/* Parameters that set a header of the answer. Only signed requests may have them. */
static const struct {
    const char *parameter, *header;
} overrides[] = {
    {"response-content-type", "content-type"},
    {"response-cache-control", "cache-control"},
    {"response-content-disposition", "content-disposition"},
    {"response-content-encoding", "content-encoding"},
    {"response-content-language", "content-language"},
    {"response-expires", "expires"},
};

/* --- from a request --- */

/* Removes "aws-chunked" from a Content-Encoding, because it describes the request and is not
 * kept. */
static struct str without_aws_chunked(struct arena *a, struct str value)
{
    struct buf out = BUF_INIT(HTTP_MAX_HEAD);
    struct str token;

    while (str_token(&value, ",", &token)) {
        token = str_trim(token);
        if (token.len == 0 || str_ieq(token, STR("aws-chunked")))
            continue;
        if (out.len)
            buf_append_z(&out, ", ");
        buf_append_str(&out, token);
    }
    struct str left = arena_str(a, buf_str(&out));
    buf_release(&out);
    return left;
}

static int meta_add_header(struct call *c, struct object_meta *out, const struct http_header *h,
                           size_t *user_bytes, struct err *err)
{
    struct str name = arena_lower(c->a, h->name), value = h->value;

    if (str_eq(name, STR("content-encoding")))
        value = without_aws_chunked(c->a, value);
    if (header_is_user_meta(name))
        *user_bytes += name.len - 11 + value.len;
    if (*user_bytes > CALL_USER_META_MAX)
        return s3_fail(err, S3_METADATA_TOO_LARGE);
    for (size_t i = 0; i < out->header_count;
         i++) /* a repeated header is kept as one, joined with commas */
        if (str_eq(out->headers[i].name, name)) {
            out->headers[i].value = arena_fmt(c->a, STR_FMT "," STR_FMT,
                                              STR_ARG(out->headers[i].value), STR_ARG(value));
            return 0;
        }
    if (value.len || header_is_user_meta(name))
        out->headers[out->header_count++] = (struct http_header){name, arena_str(c->a, value)};
    return 0;
}

static int read_storage_class(struct call *c, struct object_meta *out, struct err *err)
{
    struct str name = http_header(c->head, "x-amz-storage-class");

    if (!name.p)
        return 0;
    if (!storage_class_known(c->g->o.storage_classes, name))
        return s3_fail(err, S3_INVALID_STORAGE_CLASS);
    out->storage_class = arena_str(c->a, storage_class_kept(name));
    return 0;
}

int meta_from_request(struct call *c, struct object_meta *out, struct err *err)
{
    size_t user_bytes = 0;
    int code = 0;

    out->headers = arena_array(c->a, c->head->header_count + 1, sizeof(*out->headers));
    if (!out->headers)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < c->head->header_count && code == 0; i++)
        if (header_is_kept(c->head->headers[i].name))
            code = meta_add_header(c, out, &c->head->headers[i], &user_bytes, err);
    return code < 0 ? code : read_storage_class(c, out, err);
}

static int meta_read_tags(struct call *c, struct object_meta *out, struct err *err)
{
    struct str header = http_header(c->head, "x-amz-tagging");
    struct tag_set set;
    int code;

    if (header.len == 0)
        return 0;
    code = call_need_tagging(c, err);
    if (code == 0)
        code = tagging_parse(&set, c->a, header, TAGS_OF_OBJECT, err);
    if (code == 0)
        out->tags = tagging_text(c->a, &set);
    return code;
}

static int read_acl(struct call *c, struct object_meta *out, struct err *err)
{
    struct call_target *t = &c->target;
    struct acl_users users;
    struct acl_subject subject;
    struct buf text = BUF_INIT(CALL_XML_MAX);
    struct str canned = http_header(c->head, "x-amz-acl");
    struct acl acl;

    if (target_is_foreign(&t->at))
        return acl_headers_given(c->head)
                   ? err_set(err, S3_NOT_IMPLEMENTED,
                             "Grants in a copy to another storage are not implemented")
                   : 0;
    out->owner = ownership_of_new(t->ownership, c->user_id, t->info.owner, canned);
    if (!acl_headers_given(c->head))
        return 0;
    subject = (struct acl_subject){out->owner, t->info.owner};
    /* Objects in a bucket of a space (route/space.h) are private anyway, so a client may ask for
     * that, as s3cmd does. */
    bool as_it_is = str_eq(canned, STR("bucket-owner-full-control")) ||
                    (t->at.kind == TARGET_SPACE && str_eq(canned, STR("private")));
    if (t->ownership == OWNERSHIP_BUCKET_OWNER_ENFORCED && !as_it_is)
        return s3_fail(err, S3_ACCESS_CONTROL_LIST_NOT_SUPPORTED);
    users = call_acl_users(c);
    int code = acl_from_headers(&acl, c->a, c->head, &subject, &users, err);
    if (code == 0)
        code = call_need_acl(c, &acl, err);
    if (t->ownership == OWNERSHIP_BUCKET_OWNER_ENFORCED)
        return code;
    if (code == 0 && t->block.block_acls && acl_is_public(&acl))
        code = s3_fail(err, S3_ACCESS_DENIED);
    if (code < 0)
        return code;
    acl_encode(&text, &acl);
    out->acl = arena_str(c->a, buf_str(&text));
    buf_release(&text);
    return 0;
}

static int default_lock(struct call *c, struct object_meta *out, struct err *err)
{
    struct lock_config config = {0};
    struct str text;
    int code = call_document(c, c->target.bucket, "object-lock", &text, err);

    if (code == 0 && text.len)
        code = lock_config_read(&config, c->a, text, err);
    struct lock_retention r = lock_default(&config, c->now_ms);
    if (code == 0 && r.until_ms) {
        out->retain_until_ms = r.until_ms;
        out->retain_compliance = r.compliance;
    }
    return code;
}

static int meta_lock_from_request(struct call *c, struct object_meta *out, struct err *err)
{
    struct lock_headers h = {0};
    int code = lock_headers_read(&h, c->head, c->now_ms, err);

    if (code < 0)
        return code;
    bool asked = h.has_retention || h.has_hold;
    if (asked && c->target.at.kind == TARGET_SPACE)
        return err_set(err, S3_NOT_IMPLEMENTED, "Object lock is not available here");
    if (!c->target.info.object_lock)
        return asked
                   ? err_set(err, S3_INVALID_REQUEST, "Bucket is missing Object Lock Configuration")
                   : 0;
    if (h.has_retention) {
        code = call_need(c, &c->target, S3_ACTION_PUT_OBJECT_RETENTION, c->key, NULL, err);
        out->retain_until_ms = h.retention.until_ms;
        out->retain_compliance = h.retention.compliance;
    } else {
        code = default_lock(c, out, err);
    }
    if (code == 0 && h.has_hold)
        code = call_need(c, &c->target, S3_ACTION_PUT_OBJECT_LEGAL_HOLD, c->key, NULL, err);
    out->legal_hold = h.hold;
    return code;
}

int meta_common(struct call *c, struct object_meta *out, struct err *err)
{
    int code = meta_read_tags(c, out, err);

    if (code == 0)
        code = read_acl(c, out, err);
    return code < 0 ? code : meta_lock_from_request(c, out, err);
}

static int condition_read_date(struct call *c, const char *prefix, const char *name, int64_t *out)
{
    char full[64];
    struct str text;

    memset(full, 0, sizeof(full));
    size_t at = strlen(prefix);
    BUG_ON(at + strlen(name) >= sizeof(full));
    memcpy(full, prefix, at);
    memcpy(full + at, name, strlen(name));
    text = http_header(c->head, full);
    /* RFC 9110: a date that cannot be read is ignored. */
    return text.len && clock_parse_http(text, out) < 0 ? (*out = 0, 0) : 0;
}

int conditions_read(struct call *c, const char *prefix, struct object_conditions *out,
                    struct err *err)
{
    bool copy = prefix[0] != '\0';

    (void)err;
    *out = (struct object_conditions){
        .if_match = http_header(c->head, copy ? "x-amz-copy-source-if-match" : "if-match"),
        .if_none_match =
            http_header(c->head, copy ? "x-amz-copy-source-if-none-match" : "if-none-match"),
    };
    condition_read_date(c, prefix, "if-modified-since", &out->if_modified_since_ms);
    condition_read_date(c, prefix, "if-unmodified-since", &out->if_unmodified_since_ms);
    return 0;
}

bool call_is_conditional(const struct call *c)
{
    for (size_t i = 0; i < c->head->header_count; i++) {
        struct str name = c->head->headers[i].name;
        if (str_ieq(name, STR("if-match")) || str_ieq(name, STR("if-none-match")) ||
            str_ieq(str_head(name, 15), STR("x-amz-if-match-")))
            return true;
    }
    return false;
}

int removal_conditions_read(struct str time, struct str size, struct object_conditions *out,
                            struct err *err)
{
    if (time.len && clock_parse_http(time, &out->if_modified_at_ms) < 0 &&
        clock_parse_iso(time, &out->if_modified_at_ms) < 0)
        return err_set(err, S3_INVALID_ARGUMENT, "The time in the condition cannot be read");
    if (size.len && str_u64(size, &out->if_size) < 0)
        return err_set(err, S3_INVALID_ARGUMENT, "The size in the condition is not a number");
    out->has_if_size = size.len > 0;
    return 0;
}

int range_read(struct call *c, struct object_range *out, struct err *err)
{
    struct str part = call_param(c, "partNumber"), range = http_header(c->head, "range");
    uint64_t number = 0;

    *out = (struct object_range){.kind = RANGE_ALL};
    if (part.p) {
        if (range.len)
            return err_set(err, S3_INVALID_REQUEST,
                           "Cannot specify both Range header and partNumber query parameter");
        if (str_u64(part, &number) < 0 || number < 1 || number > OBJECT_MAX_PARTS)
            return err_set(err, S3_INVALID_ARGUMENT,
                           "Part number must be an integer between 1 and 10000, inclusive");
        *out = (struct object_range){.kind = RANGE_PART, .first = number};
    } else if (range.len && !object_range_parse(range, out)) {
        *out = (struct object_range){.kind = RANGE_ALL};
    }
    return 0;
}

/* --- into an answer --- */

static struct str override_of(struct call *c, struct str header)
{
    for (size_t i = 0; i < ARRAY_SIZE(overrides); i++)
        if (str_eq(header, str_z(overrides[i].header)))
            return call_param(c, overrides[i].parameter);
    return STR_EMPTY;
}

static void respond_kept(struct call *c, const struct object_meta *meta)
{
    bool typed = call_param(c, "response-content-type").len > 0;

    for (size_t i = 0; i < meta->header_count; i++) {
        const struct http_header *h = &meta->headers[i];
        if (override_of(c, h->name).len)
            continue;
        typed |= str_ieq(h->name, STR("content-type"));
        if (h->value.len || header_is_user_meta(h->name))
            respond_kept_header(c, h);
    }
    for (size_t i = 0; i < ARRAY_SIZE(overrides); i++)
        respond_header(c, overrides[i].header, call_param(c, overrides[i].parameter));
    if (!typed)
        respond_header(c, "Content-Type", STR("binary/octet-stream"));
}

static void respond_lock(struct call *c, const struct object_meta *meta)
{
    char text[CLOCK_ISO_LEN + 1];

    if (meta->retain_until_ms) {
        clock_iso(meta->retain_until_ms, text);
        respond_header(c, "x-amz-object-lock-mode", str_z(lock_mode_name(meta->retain_compliance)));
        respond_header(c, "x-amz-object-lock-retain-until-date", str_z(text));
    }
    if (meta->legal_hold)
        respond_header(c, "x-amz-object-lock-legal-hold", STR("ON"));
}

static uint64_t meta_count_tags(struct str tags)
{
    uint64_t count = tags.len > 0;

    for (size_t i = 0; i < tags.len; i++)
        count += tags.p[i] == '&';
    return count;
}

/* Adds no header if the rules cannot be read, because the header is only a convenience. */
void respond_expiration(struct call *c, const struct object_info *info)
{
    struct lifecycle config;
    struct tag_set tags = {0};
    struct lifecycle_facts facts = {.key = info->key,
                                    .size = info->size,
                                    .tags = &tags,
                                    .modified_ms = info->modified_ms,
                                    .is_latest = true,
                                    .storage_class = info->meta.storage_class};
    struct buf value = BUF_INIT(4 * KIB);
    struct err ignored = {0};
    struct str text;

    /* lifecycle_write() wrote the document, so a document without the text <Expiration> need not be
     * parsed. */
    if (!info->is_latest || !c->target.may_expire || !c->target.bucket ||
        call_document(c, c->target.bucket, "lifecycle", &text, &ignored) < 0 ||
        str_find(text, STR("<Expiration>")) < 0 ||
        lifecycle_read(&config, c->a, text, &ignored) < 0 ||
        (info->meta.tags.len &&
         tagging_parse(&tags, c->a, info->meta.tags, TAGS_OF_OBJECT, &ignored) < 0))
        return;
    /* With 0 as the present time, no transition is due, so lifecycle_due() returns a removal or
     * nothing. */
    struct lifecycle_due due = lifecycle_due(&config, &facts, 0, MS_PER_DAY);
    if (due.action == LIFECYCLE_EXPIRE) {
        lifecycle_expiration_header(&value, &due);
        respond_header(c, "x-amz-expiration", buf_str(&value));
    }
    buf_release(&value);
}

void respond_put_expiration(struct call *c, const struct put_result *put,
                            const struct object_meta *meta)
{
    struct object_info info = {.key = c->key,
                               .size = put->size,
                               .modified_ms = put->modified_ms,
                               .is_latest = true,
                               .meta = *meta};

    respond_expiration(c, &info);
}

/* Adds a header which says that the object has no access list, so that another weir that copies the
 * object need not ask for it (docs/replication.md, "Work"). Only the owner gets the header, and
 * only on request. */
static void respond_private(struct call *c, const struct object_meta *meta)
{
    struct str owner = meta->owner.len ? meta->owner : c->target.info.owner;

    if (meta->acl.len == 0 && str_eq(http_header(c->head, "x-weir-tell"), STR("acl")) && c->user &&
        str_eq(c->user_id, owner))
        respond_header(c, "x-weir-acl", STR("private"));
}

void respond_object(struct call *c, const struct object_info *info)
{
    const struct object_meta *meta = &info->meta;

    c->has_size = true;
    c->size = info->size;
    respond_time(c, "Last-Modified", info->modified_ms);
    respond_etag(c, info->etag);
    respond_header(c, "Accept-Ranges", STR("bytes"));
    if (c->target.info.versions != VERSIONS_NEVER)
        respond_header(c, "x-amz-version-id", info->version);
    respond_header(c, "x-amz-storage-class", meta->storage_class);
    respond_encryption(c);
    if (meta->tags.len)
        http_respond_header_u64(c->http, STR("x-amz-tagging-count"), meta_count_tags(meta->tags));
    respond_lock(c, meta);
    respond_private(c, meta);
    respond_expiration(c, info);
    if (str_ieq(http_header(c->head, "x-amz-checksum-mode"), STR("ENABLED")) &&
        !http_header(c->head, "range").len)
        respond_checksum(c, &meta->checksum);
    respond_kept(c, meta);
}
