/* The table of S3 error codes, the translation of weir's own codes, and the body of an error. */
#include "meta/error.h"

#include "base/xml.h"

struct row {
    const char *name;
    const char *message;
    int status;
};

static const struct row rows[] = {
#define X(name, code, status, message) {code, message, status},
    S3_ERROR_TABLE(X)
#undef X
};

/* The S3 code for each ERR_* code, by its index in base/err.h. A failure of a storage becomes a
 * 5xx, so that clients try again. */
static const enum s3_code from_err[ERR_COUNT] = {
    [ERR_INDEX_NOT_FOUND] = S3_NO_SUCH_KEY,
    [ERR_INDEX_NO_BUCKET] = S3_NO_SUCH_BUCKET,
    [ERR_INDEX_NOT_MODIFIED] = S3_NOT_MODIFIED,
    [ERR_INDEX_GONE] = S3_NO_SUCH_VERSION,
    [ERR_INDEX_EXISTS] = S3_BUCKET_ALREADY_EXISTS,
    [ERR_INDEX_PRECONDITION] = S3_PRECONDITION_FAILED,
    [ERR_INDEX_CONFLICT] = S3_CONDITIONAL_REQUEST_CONFLICT,
    [ERR_INDEX_END] = S3_INCOMPLETE_BODY,
    [ERR_INDEX_AGAIN] = S3_SLOW_DOWN,
    [ERR_INDEX_CANCELED] = S3_SERVICE_UNAVAILABLE,
    [ERR_INDEX_INVALID] = S3_INVALID_ARGUMENT,
    [ERR_INDEX_PARSE] = S3_INVALID_REQUEST,
    [ERR_INDEX_TYPE] = S3_INVALID_ARGUMENT,
    [ERR_INDEX_TOO_LARGE] = S3_ENTITY_TOO_LARGE,
    [ERR_INDEX_RANGE] = S3_INVALID_RANGE,
    [ERR_INDEX_DENIED] = S3_ACCESS_DENIED,
    [ERR_INDEX_UNSUPPORTED] = S3_NOT_IMPLEMENTED,
    [ERR_INDEX_BUSY] = S3_SLOW_DOWN,
    [ERR_INDEX_IN_USE] = S3_OPERATION_ABORTED,
    [ERR_INDEX_NO_MEMORY] = S3_SERVICE_UNAVAILABLE,
    [ERR_INDEX_NO_SPACE] = S3_INSUFFICIENT_STORAGE,
    [ERR_INDEX_IO] = S3_INTERNAL_ERROR,
    [ERR_INDEX_CORRUPT] = S3_INTERNAL_ERROR,
    [ERR_INDEX_VERSION] = S3_INTERNAL_ERROR,
    [ERR_INDEX_TIMEOUT] = S3_SERVICE_UNAVAILABLE,
    [ERR_INDEX_CLOSED] = S3_SERVICE_UNAVAILABLE,
    [ERR_INDEX_UNAVAILABLE] = S3_SERVICE_UNAVAILABLE,
    [ERR_INDEX_OFFLINE] = S3_STORAGE_OFFLINE,
    [ERR_INDEX_STORE] = S3_SERVICE_UNAVAILABLE,
    [ERR_INDEX_PEER] = S3_INTERNAL_ERROR,
    [ERR_INDEX_SHUTDOWN] = S3_SERVICE_UNAVAILABLE,
};

enum s3_code s3_code_of(int code)
{
    if (code == 0 || (code <= S3_FIRST_CODE && code > S3_FIRST_CODE - S3_ERROR_COUNT))
        return (enum s3_code)code;
    if (code < 0 && code >= -ERR_COUNT && from_err[-1 - code] != S3_OK)
        return from_err[-1 - code];
    return S3_INTERNAL_ERROR;
}

static const struct row *s3_error_row(int code)
{
    static const struct row ok = {"OK", "", 200};
    enum s3_code known = s3_code_of(code);
    return known == S3_OK ? &ok : &rows[S3_FIRST_CODE - (int)known];
}

const char *s3_code_name(int code)
{
    return s3_error_row(code)->name;
}

int s3_code_status(int code)
{
    return s3_error_row(code)->status;
}

const char *s3_code_message(int code)
{
    return s3_error_row(code)->message;
}

int s3_fail(struct err *err, enum s3_code code)
{
    return err_set(err, code, "%s", s3_code_message(code));
}

static void put_if_given(struct buf *out, const char *name, struct str value)
{
    if (value.len)
        xml_element(out, name, value);
}

void s3_error_write(struct buf *out, const struct s3_error_body *body)
{
    struct str message = body->message.len ? body->message : str_z(s3_code_message(body->code));

    xml_prolog(out);
    xml_open(out, "Error");
    xml_element(out, "Code", str_z(s3_code_name(body->code)));
    xml_element(out, "Message", message);
    put_if_given(out, "BucketName", body->bucket);
    put_if_given(out, "Key", body->key);
    put_if_given(out, "Resource", body->resource);
    for (size_t i = 0; i < body->field_count; i++)
        put_if_given(out, body->fields[i].name, body->fields[i].value);
    xml_element(out, "RequestId", body->request_id);
    xml_element(out, "HostId", body->host_id);
    xml_close(out, "Error");
}
