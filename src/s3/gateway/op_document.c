/* Reads and sets documents of a bucket. They are checked when they are set, and kept in the form
 * that weir writes. */
#include "s3/gateway/gateway_int.h"

#include "s3/documents/cors.h"
#include "meta/encryption.h"
#include "s3/lifecycle/lifecycle.h"
#include "s3/documents/lock.h"
#include "s3/documents/storage_class.h"
#include "meta/tagging.h"
#include "s3/documents/website.h"

typedef int check_fn(struct call *c, struct buf *kept, struct err *err);

static int find_principal(void *ctx, struct str account, struct str name, bool by_name,
                          struct err *err)
{
    struct call *c = ctx;
    struct user user;
    int code = users_by_id(c->g->o.users, c->a, name, &user, err);

    if (code == ERR_NOT_FOUND && by_name)
        code = users_by_name(c->g->o.users, c->a, name, &user, err);
    return code == 0 && account.len && !str_eq(account, user.id) ? ERR_NOT_FOUND : code;
}

static int check_policy(struct call *c, struct buf *kept, struct err *err)
{
    struct policy *policy;
    int code = policy_compile(&policy, c->a, c->body, c->target.info.name, err);

    if (code == 0)
        code = policy_check_principals(policy, find_principal, c, err);
    if (code == 0)
        code = policy_check_keys(policy, err);
    if (code == 0 && c->target.block.block_policy && policy_is_public(policy))
        code = s3_fail(err, S3_ACCESS_DENIED);
    buf_append_str(kept, c->body);
    return code;
}

static int check_cors(struct call *c, struct buf *kept, struct err *err)
{
    struct cors cors;
    int code = cors_read(&cors, c->a, c->body, err);

    if (code == 0)
        cors_write(kept, &cors);
    return code;
}

static int check_tagging(struct call *c, struct buf *kept, struct err *err)
{
    struct tag_set set;
    int code = tagging_read(&set, c->a, c->body, TAGS_OF_BUCKET, err);

    if (code == 0)
        tagging_write(kept, &set);
    return code;
}

static int check_block(struct call *c, struct buf *kept, struct err *err)
{
    struct public_block block;
    int code = public_block_read(&block, c->a, c->body, err);

    if (code == 0)
        public_block_write(kept, &block);
    return code;
}

static int check_ownership(struct call *c, struct buf *kept, struct err *err)
{
    enum ownership ownership;
    int code = ownership_read(&ownership, c->a, c->body, err);

    if (code == 0 && ownership == OWNERSHIP_BUCKET_OWNER_ENFORCED && c->target.acl &&
        !acl_is_owners_only(c->target.acl))
        code = s3_fail(err, S3_INVALID_BUCKET_ACL_WITH_OBJECT_OWNERSHIP);
    if (code == 0)
        ownership_write(kept, ownership);
    return code;
}

/* Turns object lock on for the bucket, with its first lock configuration. It cannot be turned off
 * again. The bucket must keep versions. */
static int enable_lock(struct call *c, struct err *err)
{
    struct bucket *b = c->target.bucket;
    int code = b->ops->set_object_lock ? b->ops->set_object_lock(b, err) : ERR_CONFLICT;

    return code == ERR_CONFLICT
               ? err_set(err, S3_INVALID_BUCKET_STATE,
                         "Versioning must be 'Enabled' on the bucket to apply a Object Lock "
                         "configuration")
               : code;
}

static int document_check_lock(struct call *c, struct buf *kept, struct err *err)
{
    struct lock_config config;
    int code = lock_config_read(&config, c->a, c->body, err);

    if (code == 0 && !c->target.info.object_lock)
        code = enable_lock(c, err);
    if (code == 0)
        lock_config_write(kept, &config);
    return code;
}

/* Refuses unknown storage classes as malformed, because S3's schema has no other classes. */
static int known_classes(struct call *c, const struct lifecycle *config, struct err *err)
{
    struct str list = c->g->o.storage_classes;

    for (size_t i = 0; i < config->count; i++) {
        const struct lifecycle_rule *r = &config->rules[i];
        bool known = true;
        for (size_t k = 0; k < r->transition_count; k++)
            known &= storage_class_known(list, r->transitions[k].storage_class);
        for (size_t k = 0; k < r->noncurrent_transition_count; k++)
            known &= storage_class_known(list, r->noncurrent_transitions[k].storage_class);
        if (!known)
            return s3_fail(err, S3_MALFORMED_XML);
    }
    return 0;
}

static int check_lifecycle(struct call *c, struct buf *kept, struct err *err)
{
    struct lifecycle config;
    int code = lifecycle_read(&config, c->a, c->body, err);

    if (code == 0)
        code = known_classes(c, &config, err);
    if (code == 0)
        lifecycle_write(kept, &config);
    return code;
}

static int check_website(struct call *c, struct buf *kept, struct err *err)
{
    struct website site;
    int code = website_read(&site, c->a, c->body, err);

    if (code == 0)
        website_write(kept, &site);
    return code;
}

static int check_encryption(struct call *c, struct buf *kept, struct err *err)
{
    struct sse_asked rule;
    int code = sse_default_read(&rule, c->a, c->body, err);

    if (code == 0)
        sse_default_write(kept, &rule);
    return code;
}

static int check_notification(struct call *c, struct buf *kept, struct err *err)
{
    return notification_take(c, kept, err);
}

static const struct document {
    const char *name;
    check_fn *check;
    enum s3_code absent;
    int put_status;
} documents[] = {
    {"policy", check_policy, S3_NO_SUCH_BUCKET_POLICY, 204},
    {"cors", check_cors, S3_NO_SUCH_CORS_CONFIGURATION, 200},
    {"tagging", check_tagging, S3_NO_SUCH_TAG_SET, 204},
    {"publicAccessBlock", check_block, S3_NO_SUCH_PUBLIC_ACCESS_BLOCK_CONFIGURATION, 200},
    {"ownershipControls", check_ownership, S3_OWNERSHIP_CONTROLS_NOT_FOUND_ERROR, 200},
    {"encryption", check_encryption, S3_SERVER_SIDE_ENCRYPTION_CONFIGURATION_NOT_FOUND_ERROR, 200},
    {"lifecycle", check_lifecycle, S3_NO_SUCH_LIFECYCLE_CONFIGURATION, 200},
    {"notification", check_notification, S3_OK,
     200}, /* a bucket always has a configuration, which may be empty */
    {"website", check_website, S3_NO_SUCH_WEBSITE_CONFIGURATION, 200},
    {"object-lock", document_check_lock, S3_OBJECT_LOCK_CONFIGURATION_NOT_FOUND_ERROR, 200},
};

static const struct document *document_of(const struct call *c)
{
    for (size_t i = 0; i < ARRAY_SIZE(documents); i++)
        if (str_eq(str_z(documents[i].name), str_z(c->op->query)))
            return &documents[i];
    BUG_ON(true);
    return NULL;
}

/* Writes the document that a bucket has although none was set. A bucket with object lock has a lock
 * configuration without a default retention, and every bucket has an empty notification
 * configuration. */
static void implied(struct call *c, const struct document *d, struct buf *out)
{
    if (d->check == document_check_lock && c->target.info.object_lock)
        lock_config_write(out, &(struct lock_config){0});
    if (d->check == check_notification)
        notification_write(out, &(struct notification){0});
}

int op_get_document(struct call *c, struct err *err)
{
    const struct document *d = document_of(c);
    struct buf out = BUF_INIT(CALL_OUT_MAX);
    struct str text;
    int code = call_document(c, c->target.bucket, d->name, &text, err);

    if (code < 0)
        return code;
    if (text.len)
        buf_append_str(&out, text);
    else
        implied(c, d, &out);
    if (out.len == 0)
        return s3_fail(err, d->absent);
    if (d->check != check_policy)
        return respond_xml(c, 200, &out);
    respond_begin(c, 200);
    respond_header(c, "Content-Type", STR("application/json"));
    c->begun = true;
    code = http_send(c->http, buf_str(&out));
    buf_release(&out);
    return code;
}

/* Stores the mark which says that the policy binds the bucket's owner too. The mark is a document
 * of its own, which is stored after the policy. After a crash in between, the owner still has
 * access, or there is a mark without a policy, which means nothing. */
static int set_policy_mark(struct call *c, const struct document *d, struct str mark,
                           struct err *err)
{
    struct bucket *b = c->target.bucket;

    return d->check == check_policy ? b->ops->set_document(b, "policyBindsOwner", mark, err) : 0;
}

int op_put_document(struct call *c, struct err *err)
{
    const struct document *d = document_of(c);
    struct bucket *b = c->target.bucket;
    struct buf kept = BUF_INIT(CALL_XML_MAX);
    bool binds =
        str_ieq(http_header(c->head, "x-amz-confirm-remove-self-bucket-access"), STR("true"));
    int code = c->body.len ? d->check(c, &kept, err) : s3_fail(err, S3_MISSING_REQUEST_BODY_ERROR);

    if (code == 0)
        code = buf_error(&kept);
    if (code == 0)
        code = b->ops->set_document(b, d->name, buf_str(&kept), err);
    if (code == 0)
        code = set_policy_mark(c, d, binds ? STR("1") : STR_EMPTY, err);
    buf_release(&kept);
    return code < 0 ? code : respond_empty(c, d->put_status);
}

int op_delete_document(struct call *c, struct err *err)
{
    const struct document *d = document_of(c);
    struct bucket *b = c->target.bucket;
    int code = b->ops->set_document(b, d->name, STR_EMPTY, err);

    if (code == 0)
        code = set_policy_mark(c, d, STR_EMPTY, err);
    return code < 0 ? code : respond_empty(c, 204);
}

/* Answers whether the bucket is public, by its policy or its access list. As on Ceph, a bucket
 * without a policy has a status too. */
int op_policy_status(struct call *c, struct err *err)
{
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct call_target *t = &c->target;
    bool is_public =
        (t->policy && policy_is_public(t->policy)) || (t->acl && acl_is_public(t->acl));

    (void)err;
    document_open(&xml, "PolicyStatus");
    xml_bool(&xml, "IsPublic", is_public);
    xml_close(&xml, "PolicyStatus");
    return respond_xml(c, 200, &xml);
}

/* --- the bucket's access list --- */

int op_get_bucket_acl(struct call *c, struct err *err)
{
    struct acl_users users = call_acl_users(c);
    struct acl_subject subject = {.owner = c->target.info.owner};
    struct buf xml = BUF_INIT(CALL_OUT_MAX);
    struct acl acl;
    int code = 0;

    if (c->target.acl)
        acl = *c->target.acl;
    else
        code = acl_canned(&acl, c->a, STR("private"), &subject, err);
    if (code < 0)
        return code;
    acl_write(&xml, &acl, &users);
    return respond_xml(c, 200, &xml);
}

int op_put_bucket_acl(struct call *c, struct err *err)
{
    struct call_target *t = &c->target;
    struct acl_users users = call_acl_users(c);
    struct acl_subject subject = {.owner = t->info.owner};
    struct buf text = BUF_INIT(CALL_XML_MAX);
    struct acl acl;
    int code;

    if (acl_headers_given(c->head) && c->body.len)
        return s3_fail(err, S3_UNEXPECTED_CONTENT);
    if (acl_headers_given(c->head))
        code = acl_from_headers(&acl, c->a, c->head, &subject, &users, err);
    else if (c->body.len)
        code = acl_read(&acl, c->a, c->body, subject.owner, &users, err);
    else
        code = s3_fail(err, S3_MISSING_SECURITY_HEADER);
    if (code == 0 && t->ownership == OWNERSHIP_BUCKET_OWNER_ENFORCED)
        code = s3_fail(err, S3_ACCESS_CONTROL_LIST_NOT_SUPPORTED);
    if (code == 0 && t->block.block_acls && acl_is_public(&acl))
        code = s3_fail(err, S3_ACCESS_DENIED);
    if (code < 0)
        return code;
    acl_encode(&text, &acl);
    code = t->bucket->ops->set_document(t->bucket, "acl", buf_str(&text), err);
    buf_release(&text);
    return code < 0 ? code : respond_empty(c, 200);
}
