/* The errors of the S3 API: one table of codes, with status and words. Any thread, no state.
 *
 * An S3 code is a negative int outside the range of base/err.h's codes, so both travel the same
 * way. */
#ifndef S3_ERROR_H
#define S3_ERROR_H

#include "base/err.h"

/* clang-format off */
/*    name, code, HTTP status, message */
#define S3_ERROR_TABLE(X) \
    X(ACCESS_DENIED, "AccessDenied", 403, "Access Denied") \
    X(AUTHORIZATION_HEADER_MALFORMED, "AuthorizationHeaderMalformed", 400, "The authorization header is malformed.") \
    X(AUTHORIZATION_QUERY_PARAMETERS_ERROR, "AuthorizationQueryParametersError", 400, "Error parsing the authorization query parameters.") \
    X(BAD_DIGEST, "BadDigest", 400, "The Content-MD5 you specified did not match what we received.") \
    X(ENTITY_TOO_LARGE, "EntityTooLarge", 400, "Your proposed upload exceeds the maximum allowed size") \
    X(ENTITY_TOO_SMALL, "EntityTooSmall", 400, "Your proposed upload is smaller than the minimum allowed size") \
    X(INCOMPLETE_BODY, "IncompleteBody", 400, "You did not provide the number of bytes specified by the Content-Length HTTP header") \
    X(INCORRECT_NUMBER_OF_FILES_IN_POST_REQUEST, "IncorrectNumberOfFilesInPostRequest", 400, "POST requires exactly one file upload per request.") \
    X(INVALID_ACCESS_KEY_ID, "InvalidAccessKeyId", 403, "The AWS Access Key Id you provided does not exist in our records.") \
    X(INVALID_ARGUMENT, "InvalidArgument", 400, "Invalid Argument") \
    X(INVALID_CHUNK_SIZE_ERROR, "InvalidChunkSizeError", 403, "The size of a chunk of the body is not valid.") \
    X(INVALID_DIGEST, "InvalidDigest", 400, "The Content-MD5 you specified was invalid.") \
    X(INVALID_POLICY_DOCUMENT, "InvalidPolicyDocument", 400, "The content of the form does not meet the conditions specified in the policy document.") \
    X(INVALID_REQUEST, "InvalidRequest", 400, "Invalid Request") \
    X(INVALID_URI, "InvalidURI", 400, "Couldn't parse the specified URI.") \
    X(MALFORMED_POST_REQUEST, "MalformedPOSTRequest", 400, "The body of your POST request is not well-formed multipart/form-data.") \
    X(MALFORMED_TRAILER_ERROR, "MalformedTrailerError", 400, "The request contained trailing data that was not well-formed or did not conform to our published schema.") \
    X(MAX_POST_PRE_DATA_LENGTH_EXCEEDED_ERROR, "MaxPostPreDataLengthExceededError", 400, "Your POST request fields preceding the upload file were too large.") \
    X(MISSING_SECURITY_HEADER, "MissingSecurityHeader", 400, "Your request was missing a required header") \
    X(REQUEST_IS_NOT_MULTI_PART_CONTENT, "RequestIsNotMultiPartContent", 412, "Bucket POST must be of the enclosure-type multipart/form-data.") \
    X(REQUEST_TIME_TOO_SKEWED, "RequestTimeTooSkewed", 403, "The difference between the request time and the current time is too large.") \
    X(SIGNATURE_DOES_NOT_MATCH, "SignatureDoesNotMatch", 403, "The request signature we calculated does not match the signature you provided. Check your key and signing method.") \
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

const char *s3_code_name(int code); /* "NoSuchKey" */

/* The code with its message from the table; returns the code. For other words: err_set(). */
int s3_fail(struct err *err, enum s3_code code);

#endif
