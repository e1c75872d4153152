/* Operations on data beside an object's bytes: tags, access list, retention and legal hold. Also
 * GetObjectAttributes. */
#include "s3/gateway/gateway_int.h"

#include "s3/documents/lock.h"
#include "meta/tagging.h"

static void respond_version(struct call *c, const struct get_result *got)
{
    if (c->target.info.versions != VERSIONS_NEVER)
        respond_header(c, "x-amz-version-id", got->info.version);
}

static int respond_document(struct call *c, const struct get_result *got, struct buf *xml)
{
    int code = buf_error(xml);

    if (code == 0) {
        respond_begin(c, 200);
        respond_version(c, got);
        respond_header(c, "Content-Type", STR("application/xml"));
        c->begun = true;
        code = http_send(c->http, buf_str(xml));
    }
    buf_release(xml);
    return code;
}

/* Makes the note (struct change_note) for the change's event. There are no events for retention and
 * legal hold. */
static int meta_note(struct call *c, const struct change_note **out, struct err *err)
{
    static const struct {
        enum s3_operation operation;
        enum s3_event event;
    } events[] = {
        {S3_OP_PutObjectTagging, S3_EVENT_TAGGING_PUT},
        {S3_OP_DeleteObjectTagging, S3_EVENT_TAGGING_DELETE},
        {S3_OP_PutObjectAcl, S3_EVENT_ACL_PUT},
    };

    for (size_t i = 0; i < ARRAY_SIZE(events); i++)
        if (events[i].operation == c->op->id)
            return call_note(c, events[i].event, c->key, out, err);
    return 0;
}

/* Changes the members that `set` names, on the version that access was decided on. */
static int set_and_answer(struct call *c, const struct get_result *got, enum meta_set set,
                          const struct object_meta *meta, struct err *err)
{
    struct bucket *b = c->target.bucket;
    bool bypass =
        str_ieq(http_header(c->head, "x-amz-bypass-governance-retention"), STR("true")) &&
        call_may(c, &c->target, S3_ACTION_BYPASS_GOVERNANCE_RETENTION, c->key, &got->info);
    struct meta_options o = {.bypass_governance = bypass};
    int code = meta_note(c, &o.note, err);

    if (code == 0)
        code = b->ops->set_meta(b, c->a, c->key, got->info.version, set, meta, &o, err);
    if (code < 0)
        return code;
    call_told(c);
    respond_begin(c, c->head->method == HTTP_DELETE ? 204 : 200);
    respond_version(c, got);
    c->begun = true;
    return http_send(c->http, STR_EMPTY);
}

/* --- tags --- */

int op_get_tagging(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct tag_set set = {0};
    struct get_result got;
    int code = call_object(c, &got, err);

    if (code == 0 && got.info.meta.tags.len)
        code = tagging_parse(&set, c->a, got.info.meta.tags, TAGS_OF_OBJECT, err);
    if (code < 0)
        return code;
    tagging_write(&xml, &set);
    return respond_document(c, &got, &xml);
}

int op_put_tagging(struct call *c, struct err *err)
{
    struct object_meta meta = {0};
    struct get_result got;
    struct tag_set set;
    int code = call_object(c, &got, err);

    if (code == 0)
        code = tagging_read(&set, c->a, c->body, TAGS_OF_OBJECT, err);
    if (code < 0)
        return code;
    meta.tags = tagging_text(c->a, &set);
    return set_and_answer(c, &got, META_TAGS, &meta, err);
}

int op_delete_tagging(struct call *c, struct err *err)
{
    struct object_meta none = {0};
    struct get_result got;
    int code = call_object(c, &got, err);

    return code < 0 ? code : set_and_answer(c, &got, META_TAGS, &none, err);
}

/* --- access list --- */

int op_get_acl(struct call *c, struct err *err)
{
    struct acl_users users = call_acl_users(c);
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct get_result got;
    struct acl acl;
    int code = call_object(c, &got, err);

    if (code < 0)
        return code;
    struct acl_subject subject = {got.info.meta.owner, c->target.info.owner};
    if (got.info.meta.acl.len && c->target.ownership != OWNERSHIP_BUCKET_OWNER_ENFORCED)
        code = acl_decode(&acl, c->a, got.info.meta.acl, err);
    else
        code = acl_canned(&acl, c->a, STR("private"), &subject, err);
    if (code < 0)
        return code;
    acl_write(&xml, &acl, &users);
    return respond_document(c, &got, &xml);
}

/* Whether the list asks only for a private object in a bucket of a space (route/space.h), where
 * every object is private anyway. s3cmd asks for this, because it sets the list of a copy's source
 * on the copy. */
static bool stays_private(const struct call *c, const struct acl *acl)
{
    return c->target.at.kind == TARGET_SPACE && acl_is_owners_only(acl);
}

static int read_new_acl(struct call *c, struct str owner, struct acl *out, struct err *err)
{
    struct acl_users users = call_acl_users(c);
    struct acl_subject subject = {owner, c->target.info.owner};
    int code;

    if (acl_headers_given(c->head) && c->body.len)
        return s3_fail(err, S3_UNEXPECTED_CONTENT);
    if (acl_headers_given(c->head))
        code = acl_from_headers(out, c->a, c->head, &subject, &users, err);
    else if (c->body.len)
        code = acl_read(out, c->a, c->body, owner, &users, err);
    else
        code = s3_fail(err, S3_MISSING_SECURITY_HEADER);
    if (code == 0 && c->target.ownership == OWNERSHIP_BUCKET_OWNER_ENFORCED &&
        !stays_private(c, out))
        code = s3_fail(err, S3_ACCESS_CONTROL_LIST_NOT_SUPPORTED);
    if (code == 0 && c->target.block.block_acls && acl_is_public(out))
        code = s3_fail(err, S3_ACCESS_DENIED);
    return code;
}

int op_put_acl(struct call *c, struct err *err)
{
    struct buf text = BUF_INIT(CALL_XML_MAX);
    struct object_meta meta = {0};
    struct get_result got;
    struct acl acl;
    int code = call_object(c, &got, err);

    if (code == 0)
        code = read_new_acl(c, got.info.meta.owner, &acl, err);
    if (code < 0)
        return code;
    if (stays_private(c, &acl))
        return respond_empty(c, 200);
    acl_encode(&text, &acl);
    meta.acl = arena_str(c->a, buf_str(&text));
    buf_release(&text);
    return set_and_answer(c, &got, META_ACL, &meta, err);
}

/* --- locks --- */

static int locked_object(struct call *c, struct get_result *got, struct err *err)
{
    int code = call_object(c, got, err);

    if (code == 0 && !c->target.info.object_lock)
        code = err_set(err, S3_INVALID_REQUEST, "Bucket is missing Object Lock Configuration");
    return code;
}

int op_get_retention(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct get_result got;
    int code = locked_object(c, &got, err);

    if (code == 0 && !got.info.meta.retain_until_ms)
        code = s3_fail(err, S3_NO_SUCH_OBJECT_LOCK_CONFIGURATION);
    if (code < 0)
        return code;
    lock_retention_write(&xml, &(struct lock_retention){got.info.meta.retain_compliance,
                                                        got.info.meta.retain_until_ms});
    return respond_document(c, &got, &xml);
}

int op_put_retention(struct call *c, struct err *err)
{
    struct lock_retention retention = {0};
    struct get_result got;
    int code = locked_object(c, &got, err);

    if (code == 0)
        code = lock_retention_read(&retention, c->a, c->body, c->now_ms, err);
    struct object_meta meta = {.retain_until_ms = retention.until_ms,
                               .retain_compliance = retention.compliance};
    return code < 0 ? code : set_and_answer(c, &got, META_RETENTION, &meta, err);
}

int op_get_hold(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct get_result got;
    int code = locked_object(c, &got, err);

    if (code < 0)
        return code;
    lock_hold_write(&xml, got.info.meta.legal_hold);
    return respond_document(c, &got, &xml);
}

int op_put_hold(struct call *c, struct err *err)
{
    struct object_meta meta = {0};
    struct get_result got;
    int code = locked_object(c, &got, err);

    if (code == 0)
        code = lock_hold_read(&meta.legal_hold, c->a, c->body, err);
    return code < 0 ? code : set_and_answer(c, &got, META_LEGAL_HOLD, &meta, err);
}

/* --- GetObjectAttributes --- */

enum attribute { ATTR_ETAG = 1, ATTR_CHECKSUM = 2, ATTR_PARTS = 4, ATTR_CLASS = 8, ATTR_SIZE = 16 };

static int read_attributes(struct call *c, unsigned *out, struct err *err)
{
    static const char *const names[] = {"ETag", "Checksum", "ObjectParts", "StorageClass",
                                        "ObjectSize"};
    struct str list = http_header(c->head, "x-amz-object-attributes"), one;

    *out = 0;
    while (str_token(&list, ",", &one)) {
        int which = document_choice(str_trim(one), names, ARRAY_SIZE(names));
        if (which < 0)
            return err_set(err, S3_INVALID_ARGUMENT, "Invalid attribute name specified.");
        *out |= 1U << which;
    }
    return *out ? 0
                : err_set(err, S3_INVALID_ARGUMENT,
                          "The x-amz-object-attributes header specifying the attributes to be "
                          "retrieved is either missing or empty");
}

static int put_attributes(struct call *c, struct buf *xml, const struct object_info *info,
                          unsigned wanted, struct err *err)
{
    int code = 0;

    document_open(xml, "GetObjectAttributesResponse");
    if (wanted & ATTR_ETAG)
        xml_element(xml, "ETag", info->etag);
    if (wanted & ATTR_CHECKSUM && info->meta.checksum.type != CHECKSUM_NONE) {
        xml_open(xml, "Checksum");
        xml_checksum(xml, &info->meta.checksum);
        xml_checksum_type(xml, &info->meta.checksum);
        xml_close(xml, "Checksum");
    }
    if (wanted & ATTR_PARTS && info->part_count)
        code = xml_object_parts(c, xml, info, err);
    if (wanted & ATTR_CLASS)
        xml_element(xml, "StorageClass",
                    info->meta.storage_class.len ? info->meta.storage_class : STR("STANDARD"));
    if (wanted & ATTR_SIZE)
        xml_element_u64(xml, "ObjectSize", info->size);
    xml_close(xml, "GetObjectAttributesResponse");
    return code;
}

int op_attributes(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct get_result got;
    unsigned wanted = 0;
    int code = call_object(c, &got, err);

    if (code == 0)
        code = read_attributes(c, &wanted, err);
    if (code == 0)
        code = encrypt_check(c, &got.info, err);
    if (code == 0)
        code = put_attributes(c, &xml, &got.info, wanted, err);
    if (code < 0) {
        buf_release(&xml);
        return code;
    }
    respond_begin(c, 200);
    respond_version(c, &got);
    respond_time(c, "Last-Modified", got.info.modified_ms);
    respond_header(c, "Content-Type", STR("application/xml"));
    c->begun = true;
    code = http_send(c->http, buf_str(&xml));
    buf_release(&xml);
    return code;
}
