/* The table of error codes. Function names are in parentheses because err.h defines macros of the
 * same names for clang's analyzer, and the parentheses keep the macros from replacing them. */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct row {
    const char *name;
    const char *text;
    enum err_kind kind;
};

static const struct row rows[] = {
#define X(name, kind, text) {#name, text, ERR_KIND_##kind},
    ERR_TABLE(X)
#undef X
};

static const struct row *err_row(int code)
{
    int index = -1 - code;
    return index >= 0 && index < ERR_COUNT ? &rows[index] : NULL;
}

const char *err_name(int code)
{
    const struct row *row = err_row(code);
    return row ? row->name : "OK";
}

const char *err_text(int code)
{
    const struct row *row = err_row(code);
    return row ? row->text : "no error";
}

enum err_kind err_kind(int code)
{
    const struct row *row = err_row(code);
    return row ? row->kind : ERR_KIND_EXPECTED;
}

int(err_set)(struct err *err, int code, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        err->code = code;
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
    }
    return code;
}

/* The text is copied without a format, because most errors of this kind are answers such as "not
 * found", which a request may get several times. */
int(err_code)(struct err *err, int code)
{
    if (err) {
        const char *text = err_text(code);
        err->code = code;
        memcpy(err->text, text, strlen(text) + 1);
    }
    return code;
}

int(err_wrap)(struct err *err, int code, const char *fmt, ...)
{
    char words[sizeof(err->text)], old[sizeof(err->text)];
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    memcpy(old, err->text, sizeof(old));
    return err_set(err, code, "%s: %s", words, old[0] ? old : err_text(code));
}

int err_from_errno(int errnum)
{
    static const struct {
        int errnum, code;
    } map[] = {
        {ENOENT, ERR_NOT_FOUND},
        {EEXIST, ERR_EXISTS},
        {EACCES, ERR_DENIED},
        {EPERM, ERR_DENIED},
        {ENOSPC, ERR_NO_SPACE},
        {EDQUOT, ERR_NO_SPACE},
        {ENOMEM, ERR_NO_MEMORY},
        {EAGAIN, ERR_AGAIN},
        {ETIMEDOUT, ERR_TIMEOUT},
        {EPIPE, ERR_CLOSED},
        {ECONNRESET, ERR_CLOSED},
        {ECONNREFUSED, ERR_UNAVAILABLE},
        {EHOSTUNREACH, ERR_UNAVAILABLE},
        {ENETUNREACH, ERR_UNAVAILABLE},
        {EADDRINUSE, ERR_IN_USE},
        {EINVAL, ERR_INVALID},
        {EMFILE, ERR_BUSY},
        {ENFILE, ERR_BUSY},
    };
    for (size_t i = 0; i < ARRAY_SIZE(map); i++)
        if (map[i].errnum == errnum)
            return map[i].code;
    return ERR_IO;
}

int(err_errno)(struct err *err, int errnum, const char *fmt, ...)
{
    int code = err_from_errno(errnum);
    char words[sizeof(err->text)], reason[128];
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    return err_set(err, code, "%s: %s", words, strerror_r(errnum, reason, sizeof(reason)));
}
