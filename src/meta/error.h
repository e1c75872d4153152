/* The errors of the S3 API: one table of codes with status and message, and the XML body of an
 * error. There is no state, and any thread may call.
 *
 * An S3 code is a negative int outside the range of base/err.h's codes, so one function can return
 * codes of either kind. A module of s3/ returns 0, an S3_* code (with its message in struct err,
 * set by err_set() or s3_fail()) or an ERR_* code. Modules that know nothing of S3, such as
 * readers, hand such codes on unchanged. s3_code_of() is called once, where the answer to the
 * client is written. */
#ifndef META_ERROR_H
#define META_ERROR_H

#include "base/buf.h"
#include "base/err.h"

/* clang-format off */
/* The columns: name, S3's code, HTTP status, message. */
#define S3_ERROR_TABLE(X) \
    X(ACCESS_CONTROL_LIST_NOT_SUPPORTED, "AccessControlListNotSupported", 400, "The bucket does not allow ACLs") \
    X(ACCESS_DENIED, "AccessDenied", 403, "Access Denied") \
    X(ACCESS_FORBIDDEN, "AccessForbidden", 403, "CORSResponse: This CORS request is not allowed.") \
    X(ACCOUNT_PROBLEM, "AccountProblem", 403, "There is a problem with your account that prevents the operation from completing successfully.") \
    X(AMBIGUOUS_GRANT_BY_EMAIL_ADDRESS, "AmbiguousGrantByEmailAddress", 400, "The email address you provided is associated with more than one account.") \
    X(AUTHORIZATION_HEADER_MALFORMED, "AuthorizationHeaderMalformed", 400, "The authorization header is malformed.") \
    X(AUTHORIZATION_QUERY_PARAMETERS_ERROR, "AuthorizationQueryParametersError", 400, "Error parsing the authorization query parameters.") \
    X(BAD_DIGEST, "BadDigest", 400, "The Content-MD5 you specified did not match what we received.") \
    X(BAD_REQUEST, "BadRequest", 400, "Bad Request") \
    X(BUCKET_ALREADY_EXISTS, "BucketAlreadyExists", 409, "The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please select a different name and try again.") \
    X(BUCKET_ALREADY_OWNED_BY_YOU, "BucketAlreadyOwnedByYou", 409, "Your previous request to create the named bucket succeeded and you already own it.") \
    X(BUCKET_NOT_EMPTY, "BucketNotEmpty", 409, "The bucket you tried to delete is not empty") \
    X(CONDITIONAL_REQUEST_CONFLICT, "ConditionalRequestConflict", 409, "A conflicting operation occurred during the request. Please try again.") \
    X(CREDENTIALS_NOT_SUPPORTED, "CredentialsNotSupported", 400, "This request does not support credentials.") \
    X(ENTITY_TOO_LARGE, "EntityTooLarge", 400, "Your proposed upload exceeds the maximum allowed size") \
    X(ENTITY_TOO_SMALL, "EntityTooSmall", 400, "Your proposed upload is smaller than the minimum allowed size") \
    X(EXPIRED_TOKEN, "ExpiredToken", 400, "The provided token has expired.") \
    X(ILLEGAL_LOCATION_CONSTRAINT_EXCEPTION, "IllegalLocationConstraintException", 400, "The specified location constraint is not valid for the region this request was sent to.") \
    X(ILLEGAL_VERSIONING_CONFIGURATION_EXCEPTION, "IllegalVersioningConfigurationException", 400, "The versioning configuration specified in the request is invalid.") \
    X(INCOMPLETE_BODY, "IncompleteBody", 400, "You did not provide the number of bytes specified by the Content-Length HTTP header") \
    X(INCORRECT_NUMBER_OF_FILES_IN_POST_REQUEST, "IncorrectNumberOfFilesInPostRequest", 400, "POST requires exactly one file upload per request.") \
    X(INLINE_DATA_TOO_LARGE, "InlineDataTooLarge", 400, "Inline data exceeds the maximum allowed size.") \
    X(INSUFFICIENT_STORAGE, "InsufficientStorage", 507, "There is not enough space left to store what you sent.") \
    X(INTERNAL_ERROR, "InternalError", 500, "We encountered an internal error. Please try again.") \
    X(INVALID_ACCESS_KEY_ID, "InvalidAccessKeyId", 403, "The AWS Access Key Id you provided does not exist in our records.") \
    X(INVALID_ARGUMENT, "InvalidArgument", 400, "Invalid Argument") \
    X(INVALID_BUCKET_ACL_WITH_OBJECT_OWNERSHIP, "InvalidBucketAclWithObjectOwnership", 400, "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting") \
    X(INVALID_BUCKET_NAME, "InvalidBucketName", 400, "The specified bucket is not valid.") \
    X(INVALID_BUCKET_STATE, "InvalidBucketState", 409, "The request is not valid with the current state of the bucket.") \
    X(INVALID_CHUNK_SIZE_ERROR, "InvalidChunkSizeError", 403, "The size of a chunk of the body is not valid.") \
    X(INVALID_DIGEST, "InvalidDigest", 400, "The Content-MD5 you specified was invalid.") \
    X(INVALID_ENCRYPTION_ALGORITHM_ERROR, "InvalidEncryptionAlgorithmError", 400, "The encryption request you specified is not valid. The valid value is AES256.") \
    X(INVALID_LOCATION_CONSTRAINT, "InvalidLocationConstraint", 400, "The specified location constraint is not valid.") \
    X(INVALID_OBJECT_STATE, "InvalidObjectState", 403, "The operation is not valid for the current state of the object.") \
    X(INVALID_PART, "InvalidPart", 400, "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.") \
    X(INVALID_PART_NUMBER, "InvalidPartNumber", 416, "The requested partnumber is not satisfiable") \
    X(INVALID_PART_ORDER, "InvalidPartOrder", 400, "The list of parts was not in ascending order. Parts must be ordered by part number.") \
    X(INVALID_POLICY_DOCUMENT, "InvalidPolicyDocument", 400, "The content of the form does not meet the conditions specified in the policy document.") \
    X(INVALID_RANGE, "InvalidRange", 416, "The requested range is not satisfiable") \
    X(INVALID_REGION, "InvalidRegion", 403, "The specified region is not valid.") \
    X(INVALID_REQUEST, "InvalidRequest", 400, "Invalid Request") \
    X(INVALID_RETENTION_PERIOD, "InvalidRetentionPeriod", 400, "The retention period is not valid.") \
    X(INVALID_SECURITY, "InvalidSecurity", 403, "The provided security credentials are not valid.") \
    X(INVALID_STORAGE_CLASS, "InvalidStorageClass", 400, "The storage class you specified is not valid") \
    X(INVALID_TAG, "InvalidTag", 400, "The tag provided was not a valid tag.") \
    X(INVALID_TARGET_BUCKET_FOR_LOGGING, "InvalidTargetBucketForLogging", 400, "The target bucket for logging does not exist, is not owned by you, or does not have the appropriate grants for the log-delivery group.") \
    X(INVALID_TOKEN, "InvalidToken", 400, "The provided token is malformed or otherwise invalid.") \
    X(INVALID_URI, "InvalidURI", 400, "Couldn't parse the specified URI.") \
    X(INVALID_VERSION_ID, "InvalidArgument", 400, "Invalid version id specified") \
    X(KEY_TOO_LONG_ERROR, "KeyTooLongError", 400, "Your key is too long") \
    X(KMS_NOT_FOUND_EXCEPTION, "KMS.NotFoundException", 400, "The key that was named does not exist.") \
    X(MALFORMED_ACL_ERROR, "MalformedACLError", 400, "The XML you provided was not well-formed or did not validate against our published schema") \
    X(MALFORMED_POLICY, "MalformedPolicy", 400, "The policy is not valid.") \
    X(MALFORMED_POST_REQUEST, "MalformedPOSTRequest", 400, "The body of your POST request is not well-formed multipart/form-data.") \
    X(MALFORMED_TRAILER_ERROR, "MalformedTrailerError", 400, "The request contained trailing data that was not well-formed or did not conform to our published schema.") \
    X(MALFORMED_XML, "MalformedXML", 400, "The XML you provided was not well-formed or did not validate against our published schema") \
    X(MAX_MESSAGE_LENGTH_EXCEEDED, "MaxMessageLengthExceeded", 400, "Your request was too large.") \
    X(MAX_POST_PRE_DATA_LENGTH_EXCEEDED_ERROR, "MaxPostPreDataLengthExceededError", 400, "Your POST request fields preceding the upload file were too large.") \
    X(METADATA_TOO_LARGE, "MetadataTooLarge", 400, "Your metadata headers exceed the maximum allowed metadata size") \
    X(METHOD_NOT_ALLOWED, "MethodNotAllowed", 405, "The specified method is not allowed against this resource.") \
    X(MISSING_CONTENT_LENGTH, "MissingContentLength", 411, "You must provide the Content-Length HTTP header.") \
    X(MISSING_REQUEST_BODY_ERROR, "MissingRequestBodyError", 400, "Request Body is empty") \
    X(MISSING_SECURITY_HEADER, "MissingSecurityHeader", 400, "Your request was missing a required header") \
    X(NO_SUCH_BUCKET, "NoSuchBucket", 404, "The specified bucket does not exist") \
    X(NO_SUCH_BUCKET_POLICY, "NoSuchBucketPolicy", 404, "The bucket policy does not exist") \
    X(NO_SUCH_CONFIGURATION, "NoSuchConfiguration", 404, "The specified configuration does not exist.") \
    X(NO_SUCH_CORS_CONFIGURATION, "NoSuchCORSConfiguration", 404, "The CORS configuration does not exist") \
    X(NO_SUCH_KEY, "NoSuchKey", 404, "The specified key does not exist.") \
    X(NO_SUCH_LIFECYCLE_CONFIGURATION, "NoSuchLifecycleConfiguration", 404, "The lifecycle configuration does not exist") \
    X(NO_SUCH_OBJECT_LOCK_CONFIGURATION, "NoSuchObjectLockConfiguration", 404, "The specified object does not have a ObjectLock configuration") \
    X(NO_SUCH_PUBLIC_ACCESS_BLOCK_CONFIGURATION, "NoSuchPublicAccessBlockConfiguration", 404, "The public access block configuration was not found") \
    X(NO_SUCH_TAG_SET, "NoSuchTagSet", 404, "The TagSet does not exist") \
    X(NO_SUCH_UPLOAD, "NoSuchUpload", 404, "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.") \
    X(NO_SUCH_VERSION, "NoSuchVersion", 404, "The specified version does not exist.") \
    X(NO_SUCH_WEBSITE_CONFIGURATION, "NoSuchWebsiteConfiguration", 404, "The specified bucket does not have a website configuration") \
    X(NOT_IMPLEMENTED, "NotImplemented", 501, "A header you provided implies functionality that is not implemented") \
    X(NOT_MODIFIED, "NotModified", 304, "Not Modified") \
    X(OBJECT_LOCK_CONFIGURATION_NOT_FOUND_ERROR, "ObjectLockConfigurationNotFoundError", 404, "Object Lock configuration does not exist for this bucket") \
    X(OPERATION_ABORTED, "OperationAborted", 409, "A conflicting conditional operation is currently in progress against this resource. Try again.") \
    X(OWNERSHIP_CONTROLS_NOT_FOUND_ERROR, "OwnershipControlsNotFoundError", 404, "The bucket ownership controls were not found") \
    X(PERMANENT_REDIRECT, "PermanentRedirect", 301, "The bucket you are attempting to access must be addressed using the specified endpoint. Please send all future requests to this endpoint.") \
    X(PRECONDITION_FAILED, "PreconditionFailed", 412, "At least one of the pre-conditions you specified did not hold") \
    X(REPLICATION_CONFIGURATION_NOT_FOUND_ERROR, "ReplicationConfigurationNotFoundError", 404, "The replication configuration was not found") \
    X(REQUEST_HEADER_SECTION_TOO_LARGE, "RequestHeaderSectionTooLarge", 400, "Your request header section exceeds the maximum allowed size.") \
    X(REQUEST_IS_NOT_MULTI_PART_CONTENT, "RequestIsNotMultiPartContent", 412, "Bucket POST must be of the enclosure-type multipart/form-data.") \
    X(REQUEST_TIME_TOO_SKEWED, "RequestTimeTooSkewed", 403, "The difference between the request time and the current time is too large.") \
    X(REQUEST_TIMEOUT, "RequestTimeout", 400, "Your socket connection to the server was not read from or written to within the timeout period.") \
    X(RESTORE_ALREADY_IN_PROGRESS, "RestoreAlreadyInProgress", 409, "Object restore is already in progress") \
    X(SERVER_SIDE_ENCRYPTION_CONFIGURATION_NOT_FOUND_ERROR, "ServerSideEncryptionConfigurationNotFoundError", 404, "The server side encryption configuration was not found") \
    X(STORAGE_OFFLINE, "ServiceUnavailable", 503, "The disk or storage that this bucket is on is not there at the moment.") \
    X(SERVICE_UNAVAILABLE, "ServiceUnavailable", 503, "Service is unable to handle request.") \
    X(SIGNATURE_DOES_NOT_MATCH, "SignatureDoesNotMatch", 403, "The request signature we calculated does not match the signature you provided. Check your key and signing method.") \
    X(SLOW_DOWN, "SlowDown", 503, "Please reduce your request rate.") \
    X(TEMPORARY_REDIRECT, "TemporaryRedirect", 307, "You are being redirected to the bucket while DNS updates.") \
    X(TOO_MANY_BUCKETS, "TooManyBuckets", 400, "You have attempted to create more buckets than allowed") \
    X(UNEXPECTED_CONTENT, "UnexpectedContent", 400, "This request does not support content") \
    X(UNRESOLVABLE_GRANT_BY_EMAIL_ADDRESS, "UnresolvableGrantByEmailAddress", 400, "The email address you provided does not match any account on record.") \
    X(UNSUPPORTED_ARGUMENT, "UnsupportedArgument", 400, "The request contained an unsupported argument.") \
    X(UNSUPPORTED_SIGNATURE, "UnsupportedSignature", 400, "The provided request is signed with an unsupported STS Token version or the signature version is not supported.") \
    X(USER_KEY_MUST_BE_SPECIFIED, "UserKeyMustBeSpecified", 400, "The bucket POST must contain the specified field name. If it is specified, check the order of the fields.") \
    X(X_AMZ_CONTENT_SHA256_MISMATCH, "XAmzContentSHA256Mismatch", 400, "The provided 'x-amz-content-sha256' header does not match what was computed.")
/* clang-format on */

enum s3_index {
#define X(name, code, status, message) S3_INDEX_##name,
    S3_ERROR_TABLE(X)
#undef X
        S3_ERROR_COUNT
};

enum { S3_FIRST_CODE = -1000 };

enum s3_code {
    S3_OK = 0,
#define X(name, code, status, message) S3_##name = S3_FIRST_CODE - S3_INDEX_##name,
    S3_ERROR_TABLE(X)
#undef X
};

/* Returns the S3 code that a client gets. S3 codes stay as they are, ERR_* codes are translated by
 * a table, and all other codes become InternalError. ERR_NOT_FOUND becomes NoSuchKey; a caller that
 * did not find a version, an upload or a document has to replace the code first. */
enum s3_code s3_code_of(int code);

/* These functions accept S3 codes, and translate other codes by s3_code_of(). */
const char *s3_code_name(int code); /* such as "NoSuchKey" */
int s3_code_status(int code);       /* HTTP status, such as 404 */
const char *s3_code_message(int code);

/* Sets *err to the code with its message from the table, and returns the code. For another message
 * use err_set(). */
int s3_fail(struct err *err, enum s3_code code);

/* A field of an error body that only some codes have (ArgumentName, StringToSign, Region, ...). */
struct s3_error_field {
    const char *name;
    struct str value;
};

struct s3_error_body {
    int code;
    struct str message; /* empty: the code's message in the table */
    struct str bucket, key, resource;
    struct str request_id, host_id;
    const struct s3_error_field *fields;
    size_t field_count;
};

/* Writes <Error> as S3 does. Empty strings are left out, except RequestId and HostId. */
void s3_error_write(struct buf *out, const struct s3_error_body *body);

#endif
