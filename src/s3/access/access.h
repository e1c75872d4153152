/* Decides whether a user may perform an action, from the public access block, object ownership, the
 * bucket's policy and the access control lists (ACLs).
 *
 * access_allowed() is called once for each action that a request needs: a copy needs GetObject on
 * its source and PutObject on its target; a PUT with tags also needs PutObjectTagging, a PUT with
 * an ACL or grants also needs PutObjectAcl. The decision does no I/O: the caller has read
 * everything that it depends on. The functions may be called from any thread. */
#ifndef S3_ACCESS_ACCESS_H
#define S3_ACCESS_ACCESS_H

#include "meta/acl.h"
#include "s3/access/policy.h"

/* --- PublicAccessBlockConfiguration --- */

struct public_block {
    bool block_acls;       /* BlockPublicAcls: a public ACL cannot be set */
    bool ignore_acls;      /* IgnorePublicAcls: grants to groups are ignored */
    bool block_policy;     /* BlockPublicPolicy: a public policy cannot be set */
    bool restrict_buckets; /* RestrictPublicBuckets: a public policy counts only for the
                              owner and for weir's own services */
};

int public_block_read(struct public_block *out, struct arena *a, struct str xml,
                      struct err *err) MUST_CHECK;
void public_block_write(struct buf *out, const struct public_block *block);

/* --- OwnershipControls ---
 *
 * A bucket without this document behaves as if its mode were ObjectWriter. Buckets of S3 behaved so
 * before 2023, and Ceph's buckets still do. */

enum ownership {
    OWNERSHIP_OBJECT_WRITER,
    OWNERSHIP_BUCKET_OWNER_PREFERRED,
    OWNERSHIP_BUCKET_OWNER_ENFORCED, /* ACLs are ignored */
};

int ownership_read(enum ownership *out, struct arena *a, struct str xml,
                   struct err *err) MUST_CHECK;
void ownership_write(struct buf *out, enum ownership ownership);
const char *ownership_name(enum ownership ownership);
/* Parses the value of x-amz-object-ownership. InvalidArgument: there is no such mode. */
int ownership_parse(enum ownership *out, struct str name, struct err *err) MUST_CHECK;

/* Returns the owner of a new object that `writer` puts; the mode and the request's canned ACL
 * decide. */
struct str ownership_of_new(enum ownership ownership, struct str writer, struct str bucket_owner,
                            struct str canned_acl);

/* --- the decision --- */

struct access_request {
    struct policy_request ask;   /* user, action, bucket, key, and values for conditions */
    struct str bucket_owner;     /* user id */
    struct str object_owner;     /* user id; empty: the action is not on an existing object */
    const struct policy *policy; /* NULL: the bucket has none */
    /* True: the policy was set with x-amz-confirm-remove-self-bucket-access, so it can lock out the
     * bucket's owner. */
    bool policy_binds_owner;
    const struct acl *bucket_acl, *object_acl; /* NULL: there is none */
    struct public_block block;
    enum ownership ownership;
};

/* Whether the action is allowed. The rules apply in this order:
 *  1. when the policy denies it, it is denied; but the bucket's owner may always read, replace and
 *     delete the policy, unless the policy binds the owner;
 *  2. the bucket's owner may do everything in the bucket. But unless ownership is
 *     BucketOwnerEnforced, rules 3 to 5 decide whether the owner may read another user's object,
 *     or read or change its ACL;
 *  3. when the policy allows it, it is allowed, unless RestrictPublicBuckets is set and the
 *     policy is public;
 *  4. when the ACL of the bucket or object grants it, it is allowed, unless ownership is
 *     BucketOwnerEnforced;
 *  5. otherwise it is denied. */
bool access_allowed(const struct access_request *r);
/* Whether any request of this user for the action in this bucket could be allowed: true if
 * access_allowed() could be true for some key, some object and some values of the conditions. */
bool access_possible(const struct access_request *r);
/* Whether rule 1 of access_allowed() denies the action. */
bool access_denied(const struct access_request *r);

/* Whether there is a text T such that rule 1 of access_allowed() denies the action on the key
 * `from` + T, but not on the key `to` + T (policy_denies_beyond()). r->ask.key has no effect. */
bool access_denied_beyond(const struct access_request *r, struct str from, struct str to);

/* Whether rules 2 to 4 of access_allowed() allow the action on every object whose key begins with
 * `begin`. Rule 1 is ignored; access_denied_beyond() checks it. Objects count as owned by the
 * bucket's owner. The result may be false although rules 2 to 4 allow the action, but it is never
 * true if they do not. r->ask.key has no effect. */
bool access_granted_below(const struct access_request *r, struct str begin);

/* Whether some user may read an object below `to`, but may not read the same object below `from`.
 * If a decision about reads depends on tags, also whether some user may change tags below `to`, but
 * not below `from`, because new tags could allow the read. The answer may be true although there is
 * no such user, but it is never false if there is one. The user, the action and the key of `r` have
 * no effect. */
bool access_reveals(const struct access_request *r, struct str from, struct str to);

/* The ACL permission that grants an action, besides the policy, and whether the bucket's or the
 * object's ACL must have it. */
struct access_by_acl {
    enum acl_permission permission; /* 0: no permission grants the action */
    enum s3_action_on list;
};
struct access_by_acl access_by_acl(enum s3_action action);

/* clang-format off */
/* Columns: S3 operation; action that it needs; action that it needs when the request names a
 * version */
#define S3_OPERATION_TABLE(X) \
    X(AbortMultipartUpload, ABORT_MULTIPART_UPLOAD, ABORT_MULTIPART_UPLOAD) \
    X(CompleteMultipartUpload, PUT_OBJECT, PUT_OBJECT) \
    X(CopyObject, PUT_OBJECT, PUT_OBJECT) \
    X(CreateBucket, CREATE_BUCKET, CREATE_BUCKET) \
    X(CreateMultipartUpload, PUT_OBJECT, PUT_OBJECT) \
    X(DeleteBucket, DELETE_BUCKET, DELETE_BUCKET) \
    X(DeleteBucketCors, PUT_BUCKET_CORS, PUT_BUCKET_CORS) \
    X(DeleteBucketEncryption, PUT_ENCRYPTION_CONFIGURATION, PUT_ENCRYPTION_CONFIGURATION) \
    X(DeleteBucketLifecycle, PUT_LIFECYCLE_CONFIGURATION, PUT_LIFECYCLE_CONFIGURATION) \
    X(DeleteBucketOwnershipControls, PUT_BUCKET_OWNERSHIP_CONTROLS, PUT_BUCKET_OWNERSHIP_CONTROLS) \
    X(DeleteBucketPolicy, DELETE_BUCKET_POLICY, DELETE_BUCKET_POLICY) \
    X(DeleteBucketReplication, PUT_REPLICATION_CONFIGURATION, PUT_REPLICATION_CONFIGURATION) \
    X(DeleteBucketTagging, PUT_BUCKET_TAGGING, PUT_BUCKET_TAGGING) \
    X(DeleteBucketWebsite, DELETE_BUCKET_WEBSITE, DELETE_BUCKET_WEBSITE) \
    X(DeleteObject, DELETE_OBJECT, DELETE_OBJECT_VERSION) \
    X(DeleteObjectTagging, DELETE_OBJECT_TAGGING, DELETE_OBJECT_VERSION_TAGGING) \
    X(DeleteObjects, DELETE_OBJECT, DELETE_OBJECT_VERSION) \
    X(DeletePublicAccessBlock, PUT_BUCKET_PUBLIC_ACCESS_BLOCK, PUT_BUCKET_PUBLIC_ACCESS_BLOCK) \
    X(GetBucketAcl, GET_BUCKET_ACL, GET_BUCKET_ACL) \
    X(GetBucketCors, GET_BUCKET_CORS, GET_BUCKET_CORS) \
    X(GetBucketEncryption, GET_ENCRYPTION_CONFIGURATION, GET_ENCRYPTION_CONFIGURATION) \
    X(GetBucketLifecycleConfiguration, GET_LIFECYCLE_CONFIGURATION, GET_LIFECYCLE_CONFIGURATION) \
    X(GetBucketLocation, GET_BUCKET_LOCATION, GET_BUCKET_LOCATION) \
    X(GetBucketLogging, GET_BUCKET_LOGGING, GET_BUCKET_LOGGING) \
    X(GetBucketNotificationConfiguration, GET_BUCKET_NOTIFICATION, GET_BUCKET_NOTIFICATION) \
    X(GetBucketOwnershipControls, GET_BUCKET_OWNERSHIP_CONTROLS, GET_BUCKET_OWNERSHIP_CONTROLS) \
    X(GetBucketPolicy, GET_BUCKET_POLICY, GET_BUCKET_POLICY) \
    X(GetBucketPolicyStatus, GET_BUCKET_POLICY_STATUS, GET_BUCKET_POLICY_STATUS) \
    X(GetBucketReplication, GET_REPLICATION_CONFIGURATION, GET_REPLICATION_CONFIGURATION) \
    X(GetBucketRequestPayment, GET_BUCKET_REQUEST_PAYMENT, GET_BUCKET_REQUEST_PAYMENT) \
    X(GetBucketTagging, GET_BUCKET_TAGGING, GET_BUCKET_TAGGING) \
    X(GetBucketVersioning, GET_BUCKET_VERSIONING, GET_BUCKET_VERSIONING) \
    X(GetBucketWebsite, GET_BUCKET_WEBSITE, GET_BUCKET_WEBSITE) \
    X(GetObject, GET_OBJECT, GET_OBJECT_VERSION) \
    X(GetObjectAcl, GET_OBJECT_ACL, GET_OBJECT_VERSION_ACL) \
    X(GetObjectAttributes, GET_OBJECT_ATTRIBUTES, GET_OBJECT_VERSION_ATTRIBUTES) \
    X(GetObjectLegalHold, GET_OBJECT_LEGAL_HOLD, GET_OBJECT_LEGAL_HOLD) \
    X(GetObjectLockConfiguration, GET_BUCKET_OBJECT_LOCK_CONFIGURATION, GET_BUCKET_OBJECT_LOCK_CONFIGURATION) \
    X(GetObjectRetention, GET_OBJECT_RETENTION, GET_OBJECT_RETENTION) \
    X(GetObjectTagging, GET_OBJECT_TAGGING, GET_OBJECT_VERSION_TAGGING) \
    X(GetObjectTorrent, GET_OBJECT_TORRENT, GET_OBJECT_VERSION_TORRENT) \
    X(GetPublicAccessBlock, GET_BUCKET_PUBLIC_ACCESS_BLOCK, GET_BUCKET_PUBLIC_ACCESS_BLOCK) \
    X(GetUsage, LIST_ALL_MY_BUCKETS, LIST_ALL_MY_BUCKETS) \
    X(HeadBucket, LIST_BUCKET, LIST_BUCKET) \
    X(HeadObject, GET_OBJECT, GET_OBJECT_VERSION) \
    X(ListBuckets, LIST_ALL_MY_BUCKETS, LIST_ALL_MY_BUCKETS) \
    X(ListMultipartUploads, LIST_BUCKET_MULTIPART_UPLOADS, LIST_BUCKET_MULTIPART_UPLOADS) \
    X(ListObjectVersions, LIST_BUCKET_VERSIONS, LIST_BUCKET_VERSIONS) \
    X(ListObjects, LIST_BUCKET, LIST_BUCKET) \
    X(ListObjectsV2, LIST_BUCKET, LIST_BUCKET) \
    X(ListParts, LIST_MULTIPART_UPLOAD_PARTS, LIST_MULTIPART_UPLOAD_PARTS) \
    X(PostBucketLogging, PUT_BUCKET_LOGGING, PUT_BUCKET_LOGGING) \
    X(PostObject, PUT_OBJECT, PUT_OBJECT) \
    X(PutBucketAcl, PUT_BUCKET_ACL, PUT_BUCKET_ACL) \
    X(PutBucketCors, PUT_BUCKET_CORS, PUT_BUCKET_CORS) \
    X(PutBucketEncryption, PUT_ENCRYPTION_CONFIGURATION, PUT_ENCRYPTION_CONFIGURATION) \
    X(PutBucketLifecycleConfiguration, PUT_LIFECYCLE_CONFIGURATION, PUT_LIFECYCLE_CONFIGURATION) \
    X(PutBucketLogging, PUT_BUCKET_LOGGING, PUT_BUCKET_LOGGING) \
    X(PutBucketNotificationConfiguration, PUT_BUCKET_NOTIFICATION, PUT_BUCKET_NOTIFICATION) \
    X(PutBucketOwnershipControls, PUT_BUCKET_OWNERSHIP_CONTROLS, PUT_BUCKET_OWNERSHIP_CONTROLS) \
    X(PutBucketPolicy, PUT_BUCKET_POLICY, PUT_BUCKET_POLICY) \
    X(PutBucketReplication, PUT_REPLICATION_CONFIGURATION, PUT_REPLICATION_CONFIGURATION) \
    X(PutBucketRequestPayment, PUT_BUCKET_REQUEST_PAYMENT, PUT_BUCKET_REQUEST_PAYMENT) \
    X(PutBucketTagging, PUT_BUCKET_TAGGING, PUT_BUCKET_TAGGING) \
    X(PutBucketVersioning, PUT_BUCKET_VERSIONING, PUT_BUCKET_VERSIONING) \
    X(PutBucketWebsite, PUT_BUCKET_WEBSITE, PUT_BUCKET_WEBSITE) \
    X(PutObject, PUT_OBJECT, PUT_OBJECT) \
    X(PutObjectAcl, PUT_OBJECT_ACL, PUT_OBJECT_VERSION_ACL) \
    X(PutObjectLegalHold, PUT_OBJECT_LEGAL_HOLD, PUT_OBJECT_LEGAL_HOLD) \
    X(PutObjectLockConfiguration, PUT_BUCKET_OBJECT_LOCK_CONFIGURATION, PUT_BUCKET_OBJECT_LOCK_CONFIGURATION) \
    X(PutObjectRetention, PUT_OBJECT_RETENTION, PUT_OBJECT_RETENTION) \
    X(PutObjectTagging, PUT_OBJECT_TAGGING, PUT_OBJECT_VERSION_TAGGING) \
    X(PutPublicAccessBlock, PUT_BUCKET_PUBLIC_ACCESS_BLOCK, PUT_BUCKET_PUBLIC_ACCESS_BLOCK) \
    X(RestoreObject, RESTORE_OBJECT, RESTORE_OBJECT) \
    X(UploadPart, PUT_OBJECT, PUT_OBJECT) \
    X(UploadPartCopy, PUT_OBJECT, PUT_OBJECT)
/* clang-format on */

enum s3_operation {
#define X(name, action, version_action) S3_OP_##name,
    S3_OPERATION_TABLE(X)
#undef X
        S3_OPERATIONS
};

struct s3_operation_row {
    const char *name;
    enum s3_action action, version_action; /* what needs a right; the second: of a named version */
};
extern const struct s3_operation_row s3_operations[S3_OPERATIONS];

#endif
