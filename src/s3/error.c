/* The table of S3's errors. */
#include "s3/error.h"

static const struct {
    const char *code, *message;
} errors[] = {
#define X(name, code, status, message) {code, message},
    S3_ERROR_TABLE(X)
#undef X
};

static int index_of(int code)
{
    int index = S3_FIRST_CODE - code;

    return index >= 0 && index < S3_ERROR_COUNT ? index : -1;
}

const char *s3_code_name(int code)
{
    int index = index_of(code);

    return index < 0 ? "InternalError" : errors[index].code;
}

int s3_fail(struct err *err, enum s3_code code)
{
    return err_set(err, code, "%s", errors[index_of(code)].message);
}
