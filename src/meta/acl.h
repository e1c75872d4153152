/* Access control lists of buckets and objects: canned names, grant headers, the XML document, the
 * compact stored form, and whether a list allows something.
 *
 * A list names its owner, who may always read and write the list itself, and up to 100 grants.
 * Grants by e-mail address are resolved to the user's id when they are read. Strings live in the
 * arena. Any thread may call. */
#ifndef META_ACL_H
#define META_ACL_H

#include "base/arena.h"
#include "base/buf.h"
#include "http/wire.h"
#include "meta/error.h"

enum { ACL_MAX_GRANTS = 100 };

enum acl_permission {
    ACL_READ = 1,
    ACL_WRITE = 2,
    ACL_READ_ACP = 4,
    ACL_WRITE_ACP = 8,
    ACL_FULL_CONTROL = 15,
};

enum acl_grantee { ACL_USER, ACL_ALL_USERS, ACL_AUTHENTICATED_USERS, ACL_LOG_DELIVERY };

struct acl_grant {
    enum acl_grantee grantee;
    struct str id; /* user id; only for ACL_USER */
    enum acl_permission permission;
};

struct acl {
    struct str owner; /* user id */
    struct acl_grant *grants;
    size_t count;
};

/* How to look up users. find() looks up a user by id or, if `by_email`, by e-mail address. It
 * returns false if there is no such user. The strings that find() sets are valid until its next
 * call. */
struct acl_users {
    bool (*find)(void *ctx, bool by_email, struct str name, struct str *id,
                 struct str *display_name);
    void *ctx;
};

/* The owner of the bucket or object that a list is made for. */
struct acl_subject {
    struct str owner;
    struct str bucket_owner; /* owner of the object's bucket; empty: the list is for a bucket */
};

/* Makes the canned list of this name ("public-read"). InvalidArgument: there is no such name. */
int acl_canned(struct acl *out, struct arena *a, struct str name, const struct acl_subject *subject,
               struct err *err) MUST_CHECK;

/* Makes the list that the headers x-amz-acl or x-amz-grant-* ask for; without these headers the
 * list is "private". InvalidRequest: both kinds of headers are given. InvalidArgument,
 * UnresolvableGrantByEmailAddress: a header cannot be understood, or a user is not known. */
int acl_from_headers(struct acl *out, struct arena *a, const struct http_head *head,
                     const struct acl_subject *subject, const struct acl_users *users,
                     struct err *err) MUST_CHECK;
/* Whether the request has a header x-amz-acl or x-amz-grant-*. */
bool acl_headers_given(const struct http_head *head);

/* Reads <AccessControlPolicy>. AccessDenied: the document names an owner other than `owner`.
 * MalformedACLError: the document is not valid. InvalidArgument: a user or group is not known.
 * UnresolvableGrantByEmailAddress: no user has the address. */
int acl_read(struct acl *out, struct arena *a, struct str xml, struct str owner,
             const struct acl_users *users, struct err *err) MUST_CHECK;
void acl_write(struct buf *out, const struct acl *acl, const struct acl_users *users);

/* These two read and write the <Grant> elements that are children of an element `list` in another
 * document. acl_grants_read() leaves out->owner empty; if `list` is NULL, there are no grants.
 * Errors are those of acl_read(). */
struct xml_node;
int acl_grants_read(struct acl *out, struct arena *a, const struct xml_node *list,
                    const struct acl_users *users, struct err *err) MUST_CHECK;
void acl_grants_write(struct buf *out, const struct acl *acl, const struct acl_users *users);

/* Whether the list grants `permission` to the group that delivers logs. */
bool acl_allows_log_delivery(const struct acl *acl, enum acl_permission permission);

/* Write and read the compact form in which lists are stored. ERR_CORRUPT: the text is not of this
 * form. */
void acl_encode(struct buf *out, const struct acl *acl);
int acl_decode(struct acl *out, struct arena *a, struct str stored, struct err *err) MUST_CHECK;

/* Whether the list grants `permission` to a user (empty: anonymous). `ignore_public` leaves out
 * grants to groups (IgnorePublicAcls). */
bool acl_allows(const struct acl *acl, struct str user, enum acl_permission permission,
                bool ignore_public);

/* Whether the list grants anything to all users, or to all users with credentials. */
bool acl_is_public(const struct acl *acl);

/* Whether the list grants nothing to anyone but its owner and the user `other`. */
bool acl_is_between(const struct acl *acl, struct str other);

/* Whether the list grants nothing to anyone but its owner. BucketOwnerEnforced demands this of a
 * bucket. */
bool acl_is_owners_only(const struct acl *acl);

#endif
