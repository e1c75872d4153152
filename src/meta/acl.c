/* Access control lists: tables of permissions, groups and canned lists, and the check of what a
 * list allows. */
#include "meta/acl.h"

#include "meta/acl_int.h"

const struct acl_permission_row acl_permissions[ACL_PERMISSIONS] = {
    {"READ", "x-amz-grant-read", 'R', ACL_READ},
    {"WRITE", "x-amz-grant-write", 'W', ACL_WRITE},
    {"READ_ACP", "x-amz-grant-read-acp", 'r', ACL_READ_ACP},
    {"WRITE_ACP", "x-amz-grant-write-acp", 'w', ACL_WRITE_ACP},
    {"FULL_CONTROL", "x-amz-grant-full-control", 'F', ACL_FULL_CONTROL},
};

const struct acl_group_row acl_groups[ACL_GROUPS] = {
    {"http://acs.amazonaws.com/groups/global/AllUsers", '*', ACL_ALL_USERS},
    {"http://acs.amazonaws.com/groups/global/AuthenticatedUsers", '+', ACL_AUTHENTICATED_USERS},
    {"http://acs.amazonaws.com/groups/s3/LogDelivery", 'l', ACL_LOG_DELIVERY},
};

/* A canned list gives its owner full control. The members describe what else it grants:
 * `permissions` to a group or, if `to_bucket_owner`, to the owner of the bucket. aws-exec-read
 * grants nothing else, because weir does not have the service that the list is for. */
struct canned {
    const char *name;
    enum acl_grantee grantee;
    unsigned permissions;
    bool to_bucket_owner;
};

static const struct canned canned_lists[] = {
    {"private", ACL_USER, 0, false},
    {"public-read", ACL_ALL_USERS, ACL_READ, false},
    {"public-read-write", ACL_ALL_USERS, ACL_READ | ACL_WRITE, false},
    {"authenticated-read", ACL_AUTHENTICATED_USERS, ACL_READ, false},
    {"bucket-owner-read", ACL_USER, ACL_READ, true},
    {"bucket-owner-full-control", ACL_USER, ACL_FULL_CONTROL, true},
    {"aws-exec-read", ACL_USER, 0, false},
    {"log-delivery-write", ACL_LOG_DELIVERY, ACL_WRITE | ACL_READ_ACP, false},
};

int acl_add(struct acl *acl, enum acl_grantee grantee, struct str id,
            enum acl_permission permission)
{
    if (acl->count == ACL_MAX_GRANTS)
        return ERR_TOO_LARGE;
    acl->grants[acl->count++] = (struct acl_grant){grantee, id, permission};
    return 0;
}

int acl_begin(struct acl *acl, struct arena *a, struct str owner, struct err *err)
{
    *acl = (struct acl){.owner = arena_str(a, owner),
                        .grants = arena_array(a, ACL_MAX_GRANTS, sizeof(struct acl_grant))};
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

static void add_canned(struct acl *acl, struct arena *a, const struct canned *canned,
                       const struct acl_subject *subject)
{
    struct str id = STR_EMPTY;

    if (canned->to_bucket_owner) {
        if (subject->bucket_owner.len == 0 || str_eq(subject->bucket_owner, subject->owner))
            return;
        id = arena_str(a, subject->bucket_owner);
    }
    if (canned->permissions == ACL_FULL_CONTROL) {
        (void)acl_add(acl, canned->grantee, id, ACL_FULL_CONTROL);
        return;
    }
    for (size_t i = 0; i < ACL_PERMISSIONS; i++)
        if (acl_permissions[i].permission != ACL_FULL_CONTROL &&
            (canned->permissions & acl_permissions[i].permission))
            (void)acl_add(acl, canned->grantee, id, acl_permissions[i].permission);
}

int acl_canned(struct acl *out, struct arena *a, struct str name, const struct acl_subject *subject,
               struct err *err)
{
    struct acl acl;
    int code;

    for (size_t i = 0; i < ARRAY_SIZE(canned_lists); i++) {
        if (!str_eq(name, str_z(canned_lists[i].name)))
            continue;
        code = acl_begin(&acl, a, subject->owner, err);
        if (code < 0)
            return code;
        (void)acl_add(&acl, ACL_USER, acl.owner, ACL_FULL_CONTROL);
        add_canned(&acl, a, &canned_lists[i], subject);
        if (arena_error(a) < 0)
            return err_code(err, ERR_NO_MEMORY);
        *out = acl;
        return 0;
    }
    return err_set(err, S3_INVALID_ARGUMENT, "x-amz-acl: there is no canned ACL of this name");
}

static bool grant_is_for(const struct acl_grant *grant, struct str user, bool ignore_public)
{
    switch (grant->grantee) {
    case ACL_USER:
        return user.len > 0 && str_eq(grant->id, user);
    case ACL_ALL_USERS:
        return !ignore_public;
    case ACL_AUTHENTICATED_USERS:
        return !ignore_public && user.len > 0;
    default:
        return false;
    }
}

bool acl_allows(const struct acl *acl, struct str user, enum acl_permission permission,
                bool ignore_public)
{
    unsigned have = user.len && str_eq(user, acl->owner) ? ACL_READ_ACP | ACL_WRITE_ACP : 0;

    for (size_t i = 0; i < acl->count; i++)
        if (grant_is_for(&acl->grants[i], user, ignore_public))
            have |= acl->grants[i].permission;
    return ((unsigned)permission & ~have) == 0;
}

bool acl_allows_log_delivery(const struct acl *acl, enum acl_permission permission)
{
    unsigned have = 0;

    for (size_t i = 0; i < acl->count; i++)
        if (acl->grants[i].grantee == ACL_LOG_DELIVERY)
            have |= acl->grants[i].permission;
    return ((unsigned)permission & ~have) == 0;
}

bool acl_is_public(const struct acl *acl)
{
    for (size_t i = 0; i < acl->count; i++)
        if (acl->grants[i].grantee == ACL_ALL_USERS ||
            acl->grants[i].grantee == ACL_AUTHENTICATED_USERS)
            return true;
    return false;
}

bool acl_is_between(const struct acl *acl, struct str other)
{
    for (size_t i = 0; i < acl->count; i++) {
        const struct acl_grant *g = &acl->grants[i];
        if (g->grantee != ACL_USER || (!str_eq(g->id, acl->owner) && !str_eq(g->id, other)))
            return false;
    }
    return true;
}

bool acl_is_owners_only(const struct acl *acl)
{
    return acl_is_between(acl, acl->owner);
}
