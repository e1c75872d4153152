/* The tables and functions that the files of acl share. */
#ifndef META_ACL_INT_H
#define META_ACL_INT_H

#include "meta/acl.h"

enum { ACL_PERMISSIONS = 5, ACL_GROUPS = 3 };

struct acl_permission_row {
    const char *name;   /* the permission's name in XML */
    const char *header; /* the header that grants the permission */
    char letter;        /* the permission's letter in the stored form */
    enum acl_permission permission;
};

struct acl_group_row {
    const char *uri;
    char letter;
    enum acl_grantee grantee;
};

extern const struct acl_permission_row acl_permissions[ACL_PERMISSIONS];
extern const struct acl_group_row acl_groups[ACL_GROUPS];

/* Makes an empty list with room for ACL_MAX_GRANTS grants. */
int acl_begin(struct acl *acl, struct arena *a, struct str owner, struct err *err) MUST_CHECK;
/* Adds a grant. `id` must live in the arena. ERR_TOO_LARGE: the list has ACL_MAX_GRANTS grants
 * already. */
int acl_add(struct acl *acl, enum acl_grantee grantee, struct str id,
            enum acl_permission permission);

#endif
