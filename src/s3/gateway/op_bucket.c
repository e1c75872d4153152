/* Operations on buckets: makes, removes and looks at them, and sets their versioning. */
#include "s3/gateway/bucket_name.h"
#include "object/overlay.h"
#include "route/space.h"
#include "s3/gateway/gateway_int.h"

static int bucket_check_location(struct call *c, struct err *err)
{
    struct xml_node *root;
    struct str wanted;
    int code;

    if (c->body.len == 0)
        return 0;
    code = document_read(&root, c->a, c->body, "CreateBucketConfiguration", err);
    if (code < 0)
        return code;
    wanted = xml_child_text(root, "LocationConstraint", STR_EMPTY);
    if (wanted.len && !str_eq(wanted, c->g->region))
        return s3_fail(err, S3_INVALID_LOCATION_CONSTRAINT);
    return 0;
}

/* Reads x-amz-acl and x-amz-object-ownership, which are stored once the bucket is made. */
static int bucket_read_documents(struct call *c, struct buf *acl_text, struct buf *ownership_text,
                                 struct err *err)
{
    struct acl_users users = call_acl_users(c);
    struct str mode = http_header(c->head, "x-amz-object-ownership");
    enum ownership ownership = OWNERSHIP_OBJECT_WRITER;
    struct acl acl;
    int code = 0;

    if (mode.p)
        code = ownership_parse(&ownership, mode, err);
    if (code == 0 && mode.p)
        ownership_write(ownership_text, ownership);
    if (code < 0 || !acl_headers_given(c->head))
        return code;
    code = acl_from_headers(&acl, c->a, c->head, &(struct acl_subject){.owner = c->user->id},
                            &users, err);
    if (code == 0 && ownership == OWNERSHIP_BUCKET_OWNER_ENFORCED && !acl_is_owners_only(&acl))
        code = s3_fail(err, S3_INVALID_BUCKET_ACL_WITH_OBJECT_OWNERSHIP);
    if (code == 0)
        acl_encode(acl_text, &acl);
    return code;
}

static int keep_documents(struct call *c, struct storage *s, struct str acl, struct str ownership,
                          struct err *err)
{
    struct bucket *b = NULL;
    int code = 0;

    if (acl.len || ownership.len)
        code = storage_open_bucket(&b, s, c->user->id, c->bucket_name, err);
    if (code == 0 && ownership.len)
        code = b->ops->set_document(b, "ownershipControls", ownership, err);
    if (code == 0 && acl.len)
        code = b->ops->set_document(b, "acl", acl, err);
    if (b)
        b->ops->unref(b);
    return code;
}

/* Appends the stored form of an access list: `list`, or the private list if `list` is empty. A
 * bucket without an access list is private. */
static int list_or_private(struct call *c, struct str list, struct buf *out, struct err *err)
{
    struct acl acl;
    int code = list.len ? 0
                        : acl_canned(&acl, c->a, STR("private"),
                                     &(struct acl_subject){.owner = c->user->id}, err);

    if (list.len)
        buf_append_str(out, list);
    else if (code == 0)
        acl_encode(out, &acl);
    return code;
}

static int same_list(struct call *c, struct bucket *there, struct str wanted, struct err *err)
{
    struct buf a = BUF_INIT(CALL_XML_MAX), b = BUF_INIT(CALL_XML_MAX);
    struct str kept = STR_EMPTY;
    int code = call_document(c, there, "acl", &kept, err);

    if (code == 0)
        code = list_or_private(c, wanted, &a, err);
    if (code == 0)
        code = list_or_private(c, kept, &b, err);
    if (code == 0 && !str_eq(buf_str(&a), buf_str(&b)))
        code = err_set(err, S3_BUCKET_ALREADY_EXISTS,
                       "You already own this bucket, with another access control list.");
    buf_release(&a);
    buf_release(&b);
    return code;
}

/* Answers a request to make a bucket that exists. In us-east-1 S3 answers its owner with 200,
 * elsewhere with an error. An access list that differs from the bucket's list is refused, as on
 * Ceph, and does not replace that list. */
static int bucket_exists(struct call *c, struct bucket *there, struct str acl, struct err *err)
{
    struct bucket_info info;
    int code = there->ops->info(there, c->a, &info, err);

    if (code < 0)
        return code;
    if (!str_eq(info.owner, c->user->id))
        return s3_fail(err, S3_BUCKET_ALREADY_EXISTS);
    if (!str_eq(c->g->region, STR("us-east-1")))
        return s3_fail(err, S3_BUCKET_ALREADY_OWNED_BY_YOU);
    return same_list(c, there, acl, err);
}

int call_yield_bucket(struct call *c, struct storage *s, struct err *err)
{
    struct err late = {0};
    bool taken = false;
    int code = routes_space_has(c->g->o.routes, c->bucket_name, &taken, err);

    if (code == 0 && !taken)
        return 0;
    if (storage_remove_bucket(s, c->user_id, c->bucket_name, &late) < 0)
        log_warn(http_request_log(c->http), "bucket.left", log_s("bucket", c->bucket_name),
                 log_z("error", late.text));
    return taken ? s3_fail(err, S3_BUCKET_ALREADY_EXISTS) : code;
}

/* Checks that no space (route/space.h) has the name of this bucket, which exists already. If a
 * space has the name, another request has just made the bucket and is about to remove it again
 * (call_yield_bucket()). */
static int bucket_stays(struct call *c, struct err *err)
{
    bool taken = false;
    int code = routes_space_has(c->g->o.routes, c->bucket_name, &taken, err);

    return code == 0 && taken ? s3_fail(err, S3_BUCKET_ALREADY_EXISTS) : code;
}

static int create_bucket_named(struct call *c, struct str acl, struct str ownership,
                               struct err *err)
{
    bool lock = str_ieq(http_header(c->head, "x-amz-bucket-object-lock-enabled"), STR("true"));
    struct bucket_info info = {.name = c->bucket_name,
                               .owner = c->user->id,
                               .versions = lock ? VERSIONS_ON : VERSIONS_NEVER,
                               .object_lock = lock};
    struct target *at = &c->target.at;
    int code = 0;

    if (at->kind == TARGET_TAKEN || target_is_foreign(at))
        return s3_fail(err, S3_BUCKET_ALREADY_EXISTS);
    if (at->kind == TARGET_NONE) {
        code = usage_check_new_bucket(c, err);
        if (code == 0)
            code = storage_create_bucket(at->storage, &info, err);
        if (code == 0)
            code = call_yield_bucket(c, at->storage, err);
        if (code != ERR_EXISTS)
            return code < 0 ? code : keep_documents(c, at->storage, acl, ownership, err);
        code = storage_open_bucket(&at->bucket, at->storage, c->user->id, c->bucket_name, err);
    }
    /* The existing bucket may be on another storage than a new one would be. */
    if (code == 0)
        code = bucket_exists(c, at->bucket, acl, err);
    return code < 0 ? code : bucket_stays(c, err);
}

int op_create_bucket(struct call *c, struct err *err)
{
    struct buf acl = BUF_INIT(CALL_XML_MAX), ownership = BUF_INIT(CALL_XML_MAX);
    int code = c->user ? bucket_name_check(c->bucket_name, err) : s3_fail(err, S3_ACCESS_DENIED);

    if (code == 0)
        code = call_read_body(c, err);
    if (code == 0)
        code = bucket_check_location(c, err);
    if (code == 0)
        code = bucket_read_documents(c, &acl, &ownership, err);
    if (code == 0)
        code = create_bucket_named(c, buf_str(&acl), buf_str(&ownership), err);
    buf_release(&acl);
    buf_release(&ownership);
    if (code < 0)
        return code;
    respond_begin(c, 200);
    respond_header(c, "Location", arena_fmt(c->a, "/" STR_FMT, STR_ARG(c->bucket_name)));
    c->begun = true;
    return http_send(c->http, STR_EMPTY);
}

/* Aborts all unfinished uploads, because in S3 they do not keep a bucket from being removed.
 * ERR_CONFLICT: the bucket has objects or versions. */
static int bucket_abort_uploads(struct call *c, struct err *err)
{
    struct bucket *b = c->target.bucket;
    struct list_options o = {.limit = 1};
    struct list_result kept = {0};
    struct upload_list page = {0};
    int code = b->ops->list_versions(b, c->a, &o, &kept, err);

    if (code == 0 && kept.count)
        return err_code(err, ERR_CONFLICT);
    o.limit = OBJECT_LIST_MAX;
    do {
        if (code == 0)
            code = b->ops->list_uploads(b, c->a, &o, &page, err);
        for (size_t i = 0; code == 0 && i < page.count; i++) {
            code = b->ops->upload_abort(b, &page.uploads[i], err);
            code = code == ERR_NOT_FOUND ? 0 : code; /* the upload was just finished or aborted */
        }
        o.after = page.next_key;
        o.after_version = page.next_id;
    } while (code == 0 && page.more);
    return code;
}

int op_delete_bucket(struct call *c, struct err *err)
{
    struct storage *s = c->target.at.storage;
    int code = storage_remove_bucket(s, c->target.info.owner, c->bucket_name, err);

    if (code == ERR_CONFLICT) {
        code = bucket_abort_uploads(c, err);
        if (code == 0)
            code = storage_remove_bucket(s, c->target.info.owner, c->bucket_name, err);
    }
    if (code == ERR_CONFLICT)
        return s3_fail(err, S3_BUCKET_NOT_EMPTY);
    return code < 0 ? code : respond_empty(c, 204);
}

int op_head_bucket(struct call *c, struct err *err)
{
    bool stats = c->target.bucket->ops->usage &&
                 str_ieq(call_param(c, "read-stats"), STR("true")); /* an extension of Ceph */
    struct bucket_usage usage = {0};
    int code = stats ? c->target.bucket->ops->usage(c->target.bucket, &usage, err) : 0;

    if (code < 0)
        return code;
    respond_begin(c, 200);
    respond_header(c, "x-amz-bucket-region", c->g->region);
    if (stats)
        respond_usage(c, &usage);
    c->begun = true;
    return http_send(c->http, STR_EMPTY);
}

int op_bucket_location(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    bool first =
        str_eq(c->g->region, STR("us-east-1")); /* S3 leaves the name of this region empty */

    (void)err;
    document_open(&xml, "LocationConstraint");
    xml_text(&xml, first ? STR_EMPTY : c->g->region);
    xml_close(&xml, "LocationConstraint");
    return respond_xml(c, 200, &xml);
}

int op_get_versioning(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    int state = c->target.info.versions;

    (void)err;
    document_open(&xml, "VersioningConfiguration");
    if (state != VERSIONS_NEVER)
        xml_element(&xml, "Status", state == VERSIONS_ON ? STR("Enabled") : STR("Suspended"));
    xml_close(&xml, "VersioningConfiguration");
    return respond_xml(c, 200, &xml);
}

int op_put_versioning(struct call *c, struct err *err)
{
    static const char *const states[] = {"Suspended", "Enabled"};
    struct bucket *b = c->target.bucket;
    struct xml_node *root;
    int state, code = document_read(&root, c->a, c->body, "VersioningConfiguration", err);

    if (code < 0)
        return code;
    state = document_choice(xml_child_text(root, "Status", STR_EMPTY), states, ARRAY_SIZE(states));
    if (state < 0)
        return s3_fail(err, S3_ILLEGAL_VERSIONING_CONFIGURATION_EXCEPTION);
    if (str_eq(xml_child_text(root, "MfaDelete", STR_EMPTY), STR("Enabled")))
        return err_set(err, S3_NOT_IMPLEMENTED, "MFA Delete is not implemented");
    if (state == 0 && c->target.info.object_lock)
        return err_set(err, S3_INVALID_BUCKET_STATE,
                       "An Object Lock configuration is present on this bucket, so the "
                       "versioning state cannot be changed.");
    code = b->ops->set_versions(b, state == 1, err);
    return code < 0 ? code : respond_empty(c, 200);
}
