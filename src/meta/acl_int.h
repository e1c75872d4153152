/* Between the files of acl: its tables, and lists under construction. */
#ifndef META_ACL_INT_H
#define META_ACL_INT_H

#include "meta/acl.h"

enum { ACL_PERMISSIONS = 5, ACL_GROUPS = 3 };

struct acl_permission_row {
    const char *name;   /* in XML */
    const char *header; /* that grants it */
    char letter;        /* in the kept form */
    enum acl_permission permission;
};

struct acl_group_row {
    const char *uri;
    char letter;
    enum acl_grantee grantee;
};

extern const struct acl_permission_row acl_permissions[ACL_PERMISSIONS];
extern const struct acl_group_row acl_groups[ACL_GROUPS];

/* An empty list with room for all grants. */
int acl_begin(struct acl *acl, struct arena *a, struct str owner, struct err *err) MUST_CHECK;
/* ERR_TOO_LARGE past ACL_MAX_GRANTS. `id` must live in the arena. */
int acl_add(struct acl *acl, enum acl_grantee grantee, struct str id,
            enum acl_permission permission);

#endif
