/* Decides whether a user may perform an action. Also reads and writes the documents
 * PublicAccessBlock and OwnershipControls. */
#include "s3/access/access.h"

#include "meta/document.h"

const struct s3_operation_row s3_operations[S3_OPERATIONS] = {
#define X(name, action, version_action) {#name, S3_ACTION_##action, S3_ACTION_##version_action},
    S3_OPERATION_TABLE(X)
#undef X
};

/* The ACL permission that grants each action, besides the policy. Source: S3's user guide, "Mapping
 * of ACL permissions and access policy permissions". */
static const struct access_by_acl by_acl[S3_ACTIONS] = {
    [S3_ACTION_LIST_BUCKET] = {ACL_READ, S3_ON_BUCKET},
    [S3_ACTION_LIST_BUCKET_VERSIONS] = {ACL_READ, S3_ON_BUCKET},
    [S3_ACTION_LIST_BUCKET_MULTIPART_UPLOADS] = {ACL_READ, S3_ON_BUCKET},
    [S3_ACTION_PUT_OBJECT] = {ACL_WRITE, S3_ON_BUCKET},
    [S3_ACTION_DELETE_OBJECT] = {ACL_WRITE, S3_ON_BUCKET},
    [S3_ACTION_ABORT_MULTIPART_UPLOAD] = {ACL_WRITE, S3_ON_BUCKET},
    [S3_ACTION_LIST_MULTIPART_UPLOAD_PARTS] = {ACL_WRITE, S3_ON_BUCKET},
    [S3_ACTION_GET_BUCKET_ACL] = {ACL_READ_ACP, S3_ON_BUCKET},
    [S3_ACTION_PUT_BUCKET_ACL] = {ACL_WRITE_ACP, S3_ON_BUCKET},
    [S3_ACTION_GET_OBJECT] = {ACL_READ, S3_ON_OBJECT},
    [S3_ACTION_GET_OBJECT_VERSION] = {ACL_READ, S3_ON_OBJECT},
    [S3_ACTION_GET_OBJECT_ATTRIBUTES] = {ACL_READ, S3_ON_OBJECT},
    [S3_ACTION_GET_OBJECT_VERSION_ATTRIBUTES] = {ACL_READ, S3_ON_OBJECT},
    [S3_ACTION_GET_OBJECT_TORRENT] = {ACL_READ, S3_ON_OBJECT},
    [S3_ACTION_GET_OBJECT_VERSION_TORRENT] = {ACL_READ, S3_ON_OBJECT},
    [S3_ACTION_GET_OBJECT_ACL] = {ACL_READ_ACP, S3_ON_OBJECT},
    [S3_ACTION_GET_OBJECT_VERSION_ACL] = {ACL_READ_ACP, S3_ON_OBJECT},
    [S3_ACTION_PUT_OBJECT_ACL] = {ACL_WRITE_ACP, S3_ON_OBJECT},
    [S3_ACTION_PUT_OBJECT_VERSION_ACL] = {ACL_WRITE_ACP, S3_ON_OBJECT},
};

static const char *const ownership_names[] = {
    [OWNERSHIP_OBJECT_WRITER] = "ObjectWriter",
    [OWNERSHIP_BUCKET_OWNER_PREFERRED] = "BucketOwnerPreferred",
    [OWNERSHIP_BUCKET_OWNER_ENFORCED] = "BucketOwnerEnforced",
};

int public_block_read(struct public_block *out, struct arena *a, struct str xml, struct err *err)
{
    struct public_block block = {0};
    struct xml_node *root;
    int code = document_read(&root, a, xml, "PublicAccessBlockConfiguration", err);

    if (code == 0)
        code = document_shape(root,
                              "BlockPublicAcls? IgnorePublicAcls? BlockPublicPolicy? "
                              "RestrictPublicBuckets?",
                              err);
    if (code == 0)
        code = document_bool(root, "BlockPublicAcls", false, &block.block_acls, err);
    if (code == 0)
        code = document_bool(root, "IgnorePublicAcls", false, &block.ignore_acls, err);
    if (code == 0)
        code = document_bool(root, "BlockPublicPolicy", false, &block.block_policy, err);
    if (code == 0)
        code = document_bool(root, "RestrictPublicBuckets", false, &block.restrict_buckets, err);
    if (code == 0)
        *out = block;
    return code;
}

static struct str truth(bool value)
{
    return value ? STR("true") : STR("false");
}

void public_block_write(struct buf *out, const struct public_block *block)
{
    document_open(out, "PublicAccessBlockConfiguration");
    xml_element(out, "BlockPublicAcls", truth(block->block_acls));
    xml_element(out, "IgnorePublicAcls", truth(block->ignore_acls));
    xml_element(out, "BlockPublicPolicy", truth(block->block_policy));
    xml_element(out, "RestrictPublicBuckets", truth(block->restrict_buckets));
    xml_close(out, "PublicAccessBlockConfiguration");
}

int ownership_read(enum ownership *out, struct arena *a, struct str xml, struct err *err)
{
    struct xml_node *root, *rule;
    int choice, code = document_read(&root, a, xml, "OwnershipControls", err);

    if (code == 0)
        code = document_shape(root, "Rule!", err);
    if (code < 0)
        return code;
    rule = xml_child(root, "Rule");
    code = document_shape(rule, "ObjectOwnership!", err);
    if (code < 0)
        return code;
    choice = document_choice(xml_child(rule, "ObjectOwnership")->text, ownership_names,
                             ARRAY_SIZE(ownership_names));
    if (choice < 0)
        return err_set(err, S3_MALFORMED_XML, "ObjectOwnership has no such mode");
    *out = (enum ownership)choice;
    return 0;
}

const char *ownership_name(enum ownership ownership)
{
    return ownership_names[ownership];
}

void ownership_write(struct buf *out, enum ownership ownership)
{
    document_open(out, "OwnershipControls");
    xml_open(out, "Rule");
    xml_element(out, "ObjectOwnership", str_z(ownership_names[ownership]));
    xml_close(out, "Rule");
    xml_close(out, "OwnershipControls");
}

int ownership_parse(enum ownership *out, struct str name, struct err *err)
{
    int choice = document_choice(name, ownership_names, ARRAY_SIZE(ownership_names));

    if (choice < 0)
        return err_set(err, S3_INVALID_ARGUMENT, "Invalid x-amz-object-ownership header");
    *out = (enum ownership)choice;
    return 0;
}

struct str ownership_of_new(enum ownership ownership, struct str writer, struct str bucket_owner,
                            struct str canned_acl)
{
    bool handed_over = ownership == OWNERSHIP_BUCKET_OWNER_PREFERRED &&
                       str_eq(canned_acl, STR("bucket-owner-full-control"));

    return ownership == OWNERSHIP_BUCKET_OWNER_ENFORCED || handed_over ? bucket_owner : writer;
}

struct access_by_acl access_by_acl(enum s3_action action)
{
    return by_acl[action];
}

static bool is_bucket_owner(const struct access_request *r)
{
    return r->ask.who.id.len && str_eq(r->ask.who.id, r->bucket_owner);
}

static bool is_about_the_policy(enum s3_action action)
{
    return action == S3_ACTION_GET_BUCKET_POLICY || action == S3_ACTION_PUT_BUCKET_POLICY ||
           action == S3_ACTION_DELETE_BUCKET_POLICY;
}

/* Whether the bucket's owner needs a grant for the action, as other users do. That is so when the
 * object belongs to another user, ACLs count, and the action is one that an object's ACL can grant.
 */
static bool needs_object_list(const struct access_request *r)
{
    return r->ownership != OWNERSHIP_BUCKET_OWNER_ENFORCED && r->object_owner.len &&
           !str_eq(r->object_owner, r->bucket_owner) && by_acl[r->ask.action].permission &&
           by_acl[r->ask.action].list == S3_ON_OBJECT;
}

static bool list_allows(const struct access_request *r)
{
    const struct access_by_acl *row = &by_acl[r->ask.action];
    const struct acl *acl = row->list == S3_ON_OBJECT ? r->object_acl : r->bucket_acl;

    return r->ownership != OWNERSHIP_BUCKET_OWNER_ENFORCED && row->permission && acl &&
           acl_allows(acl, r->ask.who.id, row->permission, r->block.ignore_acls);
}

static bool keeps_the_policy(const struct access_request *r)
{
    return is_bucket_owner(r) && is_about_the_policy(r->ask.action) && !r->policy_binds_owner;
}

/* Whether the policy's permissions count for this user. When RestrictPublicBuckets is set and the
 * policy is public, they count only for the bucket's owner and for services of weir. */
static bool may_trust_policy(const struct access_request *r)
{
    return is_bucket_owner(r) || r->ask.who.service.len || !r->block.restrict_buckets ||
           !policy_is_public(r->policy);
}

bool access_possible(const struct access_request *r)
{
    const struct access_by_acl *row = &by_acl[r->ask.action];
    /* True if the ACL of some object could grant the action. */
    bool by_object = row->permission && row->list == S3_ON_OBJECT;

    if (is_bucket_owner(r))
        return true;
    if (r->policy && policy_may_allow(r->policy, &r->ask.who, r->ask.action) && may_trust_policy(r))
        return true;
    return list_allows(r) || (by_object && r->ownership != OWNERSHIP_BUCKET_OWNER_ENFORCED);
}

bool access_denied(const struct access_request *r)
{
    return r->policy && policy_evaluate(r->policy, &r->ask) == POLICY_DENY && !keeps_the_policy(r);
}

bool access_denied_beyond(const struct access_request *r, struct str from, struct str to)
{
    return r->policy && policy_denies_beyond(r->policy, &r->ask, from, to) && !keeps_the_policy(r);
}

bool access_granted_below(const struct access_request *r, struct str begin)
{
    bool by_bucket = by_acl[r->ask.action].list == S3_ON_BUCKET && list_allows(r);

    if (is_bucket_owner(r) || by_bucket)
        return true;
    return r->policy && policy_allows_below(r->policy, &r->ask, begin) && may_trust_policy(r);
}

bool access_reveals(const struct access_request *r, struct str from, struct str to)
{
    static const enum s3_action reads[] = {S3_ACTION_GET_OBJECT, S3_ACTION_GET_OBJECT_VERSION,
                                           S3_ACTION_GET_OBJECT_TORRENT,
                                           S3_ACTION_GET_OBJECT_VERSION_TORRENT},
                                tags[] = {S3_ACTION_PUT_OBJECT_TAGGING,
                                          S3_ACTION_PUT_OBJECT_VERSION_TAGGING,
                                          S3_ACTION_DELETE_OBJECT_TAGGING,
                                          S3_ACTION_DELETE_OBJECT_VERSION_TAGGING};
    struct policy_request ask = r->ask;
    bool by_tags = false, reveals = false;

    for (size_t i = 0; r->policy && i < ARRAY_SIZE(reads); i++) {
        ask.action = reads[i];
        reveals |= policy_gives_beyond(r->policy, &ask, from, to);
        by_tags |= policy_asks_tags(r->policy, ask.action);
    }
    for (size_t i = 0; by_tags && i < ARRAY_SIZE(tags); i++) {
        ask.action = tags[i];
        reveals |= policy_gives_beyond(r->policy, &ask, from, to);
    }
    return reveals;
}

bool access_allowed(const struct access_request *r)
{
    bool owner = is_bucket_owner(r);
    enum policy_effect effect = r->policy ? policy_evaluate(r->policy, &r->ask) : POLICY_NONE;

    if (keeps_the_policy(r))
        return true;
    if (effect == POLICY_DENY)
        return false;
    if (owner && !needs_object_list(r))
        return true;
    return (effect == POLICY_ALLOW && may_trust_policy(r)) || list_allows(r);
}
