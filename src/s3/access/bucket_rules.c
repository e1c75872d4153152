/* Reads the rules that decide about access to a bucket, and decides by them. */
#include "s3/access/bucket_rules.h"

/* Reads a document. If the bucket does not have the document, the text is empty. */
static int rules_document(struct bucket *b, struct arena *a, const char *name, struct str *out,
                          struct err *err)
{
    int code = b->ops->get_document(b, a, name, out, err);

    if (code == ERR_NOT_FOUND)
        *out = STR_EMPTY;
    return code == ERR_NOT_FOUND ? 0 : code;
}

static int rules_read_policy(struct bucket_rules *r, struct arena *a, struct bucket *b,
                             struct err *err)
{
    struct str policy, binds = STR_EMPTY;
    int code = rules_document(b, a, "policy", &policy, err);

    if (code == 0 && policy.len)
        code = policy_compile(&r->policy, a, policy, r->info.name, err);
    if (code == 0 && policy.len)
        code = rules_document(b, a, "policyBindsOwner", &binds, err);
    r->policy_binds_owner = binds.len > 0;
    return code;
}

static int rules_read_acl(struct bucket_rules *r, struct arena *a, struct bucket *b,
                          struct err *err)
{
    struct str text;
    int code = rules_document(b, a, "acl", &text, err);

    if (code < 0 || !text.len)
        return code;
    r->acl = arena_new(a, struct acl);
    return r->acl ? acl_decode(r->acl, a, text, err) : err_code(err, ERR_NO_MEMORY);
}

static int rules_read_modes(struct bucket_rules *r, struct arena *a, struct bucket *b,
                            struct err *err)
{
    struct str block, ownership = STR_EMPTY;
    int code = rules_document(b, a, "publicAccessBlock", &block, err);

    if (code == 0 && block.len)
        code = public_block_read(&r->block, a, block, err);
    if (code == 0)
        code = rules_document(b, a, "ownershipControls", &ownership, err);
    if (code == 0 && ownership.len)
        code = ownership_read(&r->ownership, a, ownership, err);
    return code;
}

int bucket_rules_read(struct bucket_rules *out, struct arena *a, struct bucket *b, struct err *err)
{
    struct bucket_rules r = {0};
    int code = b->ops->info(b, a, &r.info, err);

    if (code == 0 && !bucket_can(b, STORAGE_CREDENTIALS)) {
        code = rules_read_policy(&r, a, b, err);
        if (code == 0)
            code = rules_read_acl(&r, a, b, err);
        if (code == 0)
            code = rules_read_modes(&r, a, b, err);
    }
    *out = r;
    return code;
}

struct access_request bucket_rules_ask(const struct bucket_rules *rules,
                                       const struct policy_request *ask)
{
    return (struct access_request){
        .ask = *ask,
        .bucket_owner = rules->info.owner,
        .policy = rules->policy,
        .policy_binds_owner = rules->policy_binds_owner,
        .bucket_acl = rules->acl,
        .block = rules->block,
        .ownership = rules->ownership,
    };
}

bool bucket_rules_allow(const struct bucket_rules *rules, const struct policy_request *ask,
                        const struct object_info *object)
{
    struct access_request r = bucket_rules_ask(rules, ask);
    struct acl acl = {0};

    if (object && object->meta.owner.len) {
        struct acl_subject subject = {object->meta.owner, rules->info.owner};
        int code = object->meta.acl.len
                       ? acl_decode(&acl, ask->arena, object->meta.acl, NULL)
                       : acl_canned(&acl, ask->arena, STR("private"), &subject, NULL);
        r.object_owner = object->meta.owner;
        r.object_acl = code == 0 ? &acl : NULL;
    }
    return access_allowed(&r);
}
