/* The actions and condition keys that a bucket policy may name: one row each. */
#ifndef S3_ACCESS_POLICY_TABLE_H
#define S3_ACCESS_POLICY_TABLE_H

#include "base/str.h"

/* clang-format off */
/* Columns: name; text behind "s3:"; whether the action is on the service, a bucket or an object */
#define S3_ACTION_TABLE(X) \
    X(ABORT_MULTIPART_UPLOAD, "AbortMultipartUpload", OBJECT) \
    X(BYPASS_GOVERNANCE_RETENTION, "BypassGovernanceRetention", OBJECT) \
    X(CREATE_BUCKET, "CreateBucket", BUCKET) \
    X(DELETE_BUCKET, "DeleteBucket", BUCKET) \
    X(DELETE_BUCKET_POLICY, "DeleteBucketPolicy", BUCKET) \
    X(DELETE_BUCKET_WEBSITE, "DeleteBucketWebsite", BUCKET) \
    X(DELETE_OBJECT, "DeleteObject", OBJECT) \
    X(DELETE_OBJECT_TAGGING, "DeleteObjectTagging", OBJECT) \
    X(DELETE_OBJECT_VERSION, "DeleteObjectVersion", OBJECT) \
    X(DELETE_OBJECT_VERSION_TAGGING, "DeleteObjectVersionTagging", OBJECT) \
    X(GET_ACCELERATE_CONFIGURATION, "GetAccelerateConfiguration", BUCKET) \
    X(GET_ANALYTICS_CONFIGURATION, "GetAnalyticsConfiguration", BUCKET) \
    X(GET_BUCKET_ACL, "GetBucketAcl", BUCKET) \
    X(GET_BUCKET_CORS, "GetBucketCORS", BUCKET) \
    X(GET_BUCKET_LOCATION, "GetBucketLocation", BUCKET) \
    X(GET_BUCKET_LOGGING, "GetBucketLogging", BUCKET) \
    X(GET_BUCKET_NOTIFICATION, "GetBucketNotification", BUCKET) \
    X(GET_BUCKET_OBJECT_LOCK_CONFIGURATION, "GetBucketObjectLockConfiguration", BUCKET) \
    X(GET_BUCKET_OWNERSHIP_CONTROLS, "GetBucketOwnershipControls", BUCKET) \
    X(GET_BUCKET_POLICY, "GetBucketPolicy", BUCKET) \
    X(GET_BUCKET_POLICY_STATUS, "GetBucketPolicyStatus", BUCKET) \
    X(GET_BUCKET_PUBLIC_ACCESS_BLOCK, "GetBucketPublicAccessBlock", BUCKET) \
    X(GET_BUCKET_REQUEST_PAYMENT, "GetBucketRequestPayment", BUCKET) \
    X(GET_BUCKET_TAGGING, "GetBucketTagging", BUCKET) \
    X(GET_BUCKET_VERSIONING, "GetBucketVersioning", BUCKET) \
    X(GET_BUCKET_WEBSITE, "GetBucketWebsite", BUCKET) \
    X(GET_ENCRYPTION_CONFIGURATION, "GetEncryptionConfiguration", BUCKET) \
    X(GET_INTELLIGENT_TIERING_CONFIGURATION, "GetIntelligentTieringConfiguration", BUCKET) \
    X(GET_INVENTORY_CONFIGURATION, "GetInventoryConfiguration", BUCKET) \
    X(GET_LIFECYCLE_CONFIGURATION, "GetLifecycleConfiguration", BUCKET) \
    X(GET_METRICS_CONFIGURATION, "GetMetricsConfiguration", BUCKET) \
    X(GET_OBJECT, "GetObject", OBJECT) \
    X(GET_OBJECT_ACL, "GetObjectAcl", OBJECT) \
    X(GET_OBJECT_ATTRIBUTES, "GetObjectAttributes", OBJECT) \
    X(GET_OBJECT_LEGAL_HOLD, "GetObjectLegalHold", OBJECT) \
    X(GET_OBJECT_RETENTION, "GetObjectRetention", OBJECT) \
    X(GET_OBJECT_TAGGING, "GetObjectTagging", OBJECT) \
    X(GET_OBJECT_TORRENT, "GetObjectTorrent", OBJECT) \
    X(GET_OBJECT_VERSION, "GetObjectVersion", OBJECT) \
    X(GET_OBJECT_VERSION_ACL, "GetObjectVersionAcl", OBJECT) \
    X(GET_OBJECT_VERSION_ATTRIBUTES, "GetObjectVersionAttributes", OBJECT) \
    X(GET_OBJECT_VERSION_FOR_REPLICATION, "GetObjectVersionForReplication", OBJECT) \
    X(GET_OBJECT_VERSION_TAGGING, "GetObjectVersionTagging", OBJECT) \
    X(GET_OBJECT_VERSION_TORRENT, "GetObjectVersionTorrent", OBJECT) \
    X(GET_REPLICATION_CONFIGURATION, "GetReplicationConfiguration", BUCKET) \
    X(INITIATE_REPLICATION, "InitiateReplication", OBJECT) \
    X(LIST_ALL_MY_BUCKETS, "ListAllMyBuckets", SERVICE) \
    X(LIST_BUCKET, "ListBucket", BUCKET) \
    X(LIST_BUCKET_MULTIPART_UPLOADS, "ListBucketMultipartUploads", BUCKET) \
    X(LIST_BUCKET_VERSIONS, "ListBucketVersions", BUCKET) \
    X(LIST_MULTIPART_UPLOAD_PARTS, "ListMultipartUploadParts", OBJECT) \
    X(OBJECT_OWNER_OVERRIDE_TO_BUCKET_OWNER, "ObjectOwnerOverrideToBucketOwner", OBJECT) \
    X(PUT_ACCELERATE_CONFIGURATION, "PutAccelerateConfiguration", BUCKET) \
    X(PUT_ANALYTICS_CONFIGURATION, "PutAnalyticsConfiguration", BUCKET) \
    X(PUT_BUCKET_ACL, "PutBucketAcl", BUCKET) \
    X(PUT_BUCKET_CORS, "PutBucketCORS", BUCKET) \
    X(PUT_BUCKET_LOGGING, "PutBucketLogging", BUCKET) \
    X(PUT_BUCKET_NOTIFICATION, "PutBucketNotification", BUCKET) \
    X(PUT_BUCKET_OBJECT_LOCK_CONFIGURATION, "PutBucketObjectLockConfiguration", BUCKET) \
    X(PUT_BUCKET_OWNERSHIP_CONTROLS, "PutBucketOwnershipControls", BUCKET) \
    X(PUT_BUCKET_POLICY, "PutBucketPolicy", BUCKET) \
    X(PUT_BUCKET_PUBLIC_ACCESS_BLOCK, "PutBucketPublicAccessBlock", BUCKET) \
    X(PUT_BUCKET_REQUEST_PAYMENT, "PutBucketRequestPayment", BUCKET) \
    X(PUT_BUCKET_TAGGING, "PutBucketTagging", BUCKET) \
    X(PUT_BUCKET_VERSIONING, "PutBucketVersioning", BUCKET) \
    X(PUT_BUCKET_WEBSITE, "PutBucketWebsite", BUCKET) \
    X(PUT_ENCRYPTION_CONFIGURATION, "PutEncryptionConfiguration", BUCKET) \
    X(PUT_INTELLIGENT_TIERING_CONFIGURATION, "PutIntelligentTieringConfiguration", BUCKET) \
    X(PUT_INVENTORY_CONFIGURATION, "PutInventoryConfiguration", BUCKET) \
    X(PUT_LIFECYCLE_CONFIGURATION, "PutLifecycleConfiguration", BUCKET) \
    X(PUT_METRICS_CONFIGURATION, "PutMetricsConfiguration", BUCKET) \
    X(PUT_OBJECT, "PutObject", OBJECT) \
    X(PUT_OBJECT_ACL, "PutObjectAcl", OBJECT) \
    X(PUT_OBJECT_LEGAL_HOLD, "PutObjectLegalHold", OBJECT) \
    X(PUT_OBJECT_RETENTION, "PutObjectRetention", OBJECT) \
    X(PUT_OBJECT_TAGGING, "PutObjectTagging", OBJECT) \
    X(PUT_OBJECT_VERSION_ACL, "PutObjectVersionAcl", OBJECT) \
    X(PUT_OBJECT_VERSION_TAGGING, "PutObjectVersionTagging", OBJECT) \
    X(PUT_REPLICATION_CONFIGURATION, "PutReplicationConfiguration", BUCKET) \
    X(REPLICATE_DELETE, "ReplicateDelete", OBJECT) \
    X(REPLICATE_OBJECT, "ReplicateObject", OBJECT) \
    X(REPLICATE_TAGS, "ReplicateTags", OBJECT) \
    X(RESTORE_OBJECT, "RestoreObject", OBJECT)

/*    Columns:
 *    - name;
 *    - the key's text; if it ends in '/', a policy puts a name behind it;
 *    - whether a condition that compares the key with a fixed value limits who may send the
 *      request, so that a statement for everybody is not public (S3's "The meaning of public");
 *    - whether some request to weir has the key. weir has no organisations, VPCs, roles, tokens,
 *      access points or second factors, and evaluates no policy when a bucket is made. */
#define POLICY_KEY_TABLE(X) \
    X(CALLED_VIA, "aws:CalledVia", false, false) \
    X(CURRENT_TIME, "aws:CurrentTime", false, true) \
    X(EPOCH_TIME, "aws:EpochTime", false, true) \
    X(MULTI_FACTOR_AUTH_AGE, "aws:MultiFactorAuthAge", false, false) \
    X(MULTI_FACTOR_AUTH_PRESENT, "aws:MultiFactorAuthPresent", false, false) \
    X(PRINCIPAL_ACCOUNT, "aws:PrincipalAccount", true, true) \
    X(PRINCIPAL_ARN, "aws:PrincipalArn", true, true) \
    X(PRINCIPAL_IS_AWS_SERVICE, "aws:PrincipalIsAWSService", false, true) \
    X(PRINCIPAL_ORG_ID, "aws:PrincipalOrgID", true, false) \
    X(PRINCIPAL_ORG_PATHS, "aws:PrincipalOrgPaths", true, false) \
    X(PRINCIPAL_SERVICE_NAME, "aws:PrincipalServiceName", false, true) \
    X(PRINCIPAL_TAG, "aws:PrincipalTag/", false, false) \
    X(PRINCIPAL_TYPE, "aws:PrincipalType", false, true) \
    X(REFERER, "aws:Referer", false, true) \
    X(REQUESTED_REGION, "aws:RequestedRegion", false, true) \
    X(RESOURCE_ACCOUNT, "aws:ResourceAccount", false, true) \
    X(RESOURCE_ORG_ID, "aws:ResourceOrgID", false, false) \
    X(SECURE_TRANSPORT, "aws:SecureTransport", false, true) \
    X(SOURCE_ACCOUNT, "aws:SourceAccount", true, true) \
    X(SOURCE_ARN, "aws:SourceArn", true, true) \
    X(SOURCE_IP, "aws:SourceIp", true, true) \
    X(SOURCE_ORG_ID, "aws:SourceOrgID", true, false) \
    X(SOURCE_OWNER, "aws:SourceOwner", true, false) \
    X(SOURCE_VPC, "aws:SourceVpc", true, false) \
    X(SOURCE_VPCE, "aws:SourceVpce", true, false) \
    X(TOKEN_ISSUE_TIME, "aws:TokenIssueTime", false, false) \
    X(USER_AGENT, "aws:UserAgent", false, true) \
    X(USER_ID, "aws:userid", true, true) \
    X(USER_NAME, "aws:username", false, true) \
    X(VIA_AWS_SERVICE, "aws:ViaAWSService", false, true) \
    X(VPC_SOURCE_IP, "aws:VpcSourceIp", false, false) \
    X(AUTH_TYPE, "s3:authType", false, true) \
    X(DATA_ACCESS_POINT_ACCOUNT, "s3:DataAccessPointAccount", true, false) \
    X(DATA_ACCESS_POINT_ARN, "s3:DataAccessPointArn", true, false) \
    X(DELIMITER, "s3:delimiter", false, true) \
    X(EXISTING_OBJECT_TAG, "s3:ExistingObjectTag/", false, true) \
    X(IF_MATCH, "s3:if-match", false, true) \
    X(IF_NONE_MATCH, "s3:if-none-match", false, true) \
    X(LOCATION_CONSTRAINT, "s3:LocationConstraint", false, false) \
    X(MAX_KEYS, "s3:max-keys", false, true) \
    X(OBJECT_CREATION_OPERATION, "s3:ObjectCreationOperation", false, true) \
    X(OBJECT_LOCK_LEGAL_HOLD, "s3:object-lock-legal-hold", false, true) \
    X(OBJECT_LOCK_MODE, "s3:object-lock-mode", false, true) \
    X(OBJECT_LOCK_REMAINING_RETENTION_DAYS, "s3:object-lock-remaining-retention-days", false, true) \
    X(OBJECT_LOCK_RETAIN_UNTIL_DATE, "s3:object-lock-retain-until-date", false, true) \
    X(PREFIX, "s3:prefix", false, true) \
    X(REQUEST_OBJECT_TAG, "s3:RequestObjectTag/", false, true) \
    X(REQUEST_OBJECT_TAG_KEYS, "s3:RequestObjectTagKeys", false, true) \
    X(S3_RESOURCE_ACCOUNT, "s3:ResourceAccount", false, true) \
    X(SIGNATURE_AGE, "s3:signatureAge", false, true) \
    X(SIGNATURE_VERSION, "s3:signatureversion", false, true) \
    X(TLS_VERSION, "s3:TlsVersion", false, true) \
    X(VERSION_ID, "s3:VersionId", false, true) \
    X(X_AMZ_ACL, "s3:x-amz-acl", false, true) \
    X(X_AMZ_CONTENT_SHA256, "s3:x-amz-content-sha256", false, true) \
    X(X_AMZ_COPY_SOURCE, "s3:x-amz-copy-source", false, true) \
    X(X_AMZ_GRANT_FULL_CONTROL, "s3:x-amz-grant-full-control", false, true) \
    X(X_AMZ_GRANT_READ, "s3:x-amz-grant-read", false, true) \
    X(X_AMZ_GRANT_READ_ACP, "s3:x-amz-grant-read-acp", false, true) \
    X(X_AMZ_GRANT_WRITE, "s3:x-amz-grant-write", false, true) \
    X(X_AMZ_GRANT_WRITE_ACP, "s3:x-amz-grant-write-acp", false, true) \
    X(X_AMZ_METADATA_DIRECTIVE, "s3:x-amz-metadata-directive", false, true) \
    X(X_AMZ_OBJECT_OWNERSHIP, "s3:x-amz-object-ownership", false, true) \
    X(X_AMZ_SERVER_SIDE_ENCRYPTION, "s3:x-amz-server-side-encryption", false, true) \
    X(X_AMZ_SERVER_SIDE_ENCRYPTION_AWS_KMS_KEY_ID, "s3:x-amz-server-side-encryption-aws-kms-key-id", true, true) \
    X(X_AMZ_SERVER_SIDE_ENCRYPTION_CUSTOMER_ALGORITHM, "s3:x-amz-server-side-encryption-customer-algorithm", false, true) \
    X(X_AMZ_STORAGE_CLASS, "s3:x-amz-storage-class", false, true) \
    X(X_AMZ_WEBSITE_REDIRECT_LOCATION, "s3:x-amz-website-redirect-location", false, true)
/* clang-format on */

enum s3_action {
#define X(name, text, on) S3_ACTION_##name,
    S3_ACTION_TABLE(X)
#undef X
        S3_ACTIONS
};

enum s3_action_on { S3_ON_SERVICE, S3_ON_BUCKET, S3_ON_OBJECT };

enum policy_key {
#define X(name, text, limits, given) POLICY_KEY_##name,
    POLICY_KEY_TABLE(X)
#undef X
        POLICY_KEYS
};

struct s3_action_row {
    const char *name; /* the action's name without "s3:" */
    enum s3_action_on on;
};

struct policy_key_row {
    const char *name;
    bool limits_public;
    bool is_given; /* some request to weir has this key */
};

extern const struct s3_action_row s3_actions[S3_ACTIONS];
extern const struct policy_key_row policy_keys[POLICY_KEYS];

/* Finds a condition key by its name, in any case. If the text of its row ends in '/', *suffix is
 * the part of the name behind that '/', which is not empty. Returns false when there is no such
 * key. */
bool policy_key_find(struct str name, enum policy_key *key, struct str *suffix);

#endif
