/* Error codes and the text that goes with them.
 *
 * A function that can fail returns int: 0, or one of the negative codes below. A text for people,
 * which says what went wrong, goes into a struct err that the caller owns (one for each request,
 * task or command). There are three kinds of errors:
 *   expected  the code is the answer to the caller's question (not found, precondition failed);
 *             never logged;
 *   failure   I/O, a peer, a limit; logged once, where it is handled;
 *   bug       BUG_ON.
 * The outermost parts of weir (S3, REST, tracker, CLI) translate codes by tables of their own. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/base.h"

#include <stdarg.h>

/*      name            kind      default text */
#define ERR_TABLE(X)                                                                               \
    X(NOT_FOUND, EXPECTED, "not found")                                                            \
    X(NO_BUCKET, EXPECTED, "no such bucket")                                                       \
    X(NOT_MODIFIED, EXPECTED, "not modified")                                                      \
    X(GONE, EXPECTED, "removed for good")                                                          \
    X(EXISTS, EXPECTED, "already exists")                                                          \
    X(PRECONDITION, EXPECTED, "precondition failed")                                               \
    X(CONFLICT, EXPECTED, "changed by somebody else")                                              \
    X(END, EXPECTED, "no more")                                                                    \
    X(AGAIN, EXPECTED, "would have to wait")                                                       \
    X(CANCELED, EXPECTED, "canceled")                                                              \
    X(INVALID, EXPECTED, "invalid argument")                                                       \
    X(PARSE, EXPECTED, "malformed input")                                                          \
    X(TYPE, EXPECTED, "wrong type of value")                                                       \
    X(TOO_LARGE, EXPECTED, "too large")                                                            \
    X(RANGE, EXPECTED, "out of range")                                                             \
    X(DENIED, EXPECTED, "not allowed")                                                             \
    X(UNSUPPORTED, EXPECTED, "not supported")                                                      \
    X(BUSY, FAILURE, "too busy, try again later")                                                  \
    X(IN_USE, FAILURE, "already in use")                                                           \
    X(NO_MEMORY, FAILURE, "memory limit reached")                                                  \
    X(NO_SPACE, FAILURE, "no space left on the device")                                            \
    X(IO, FAILURE, "input/output error")                                                           \
    X(CORRUPT, FAILURE, "stored data is damaged")                                                  \
    X(VERSION, FAILURE, "written by a newer version")                                              \
    X(TIMEOUT, FAILURE, "timed out")                                                               \
    X(CLOSED, FAILURE, "closed by the peer")                                                       \
    X(UNAVAILABLE, FAILURE, "cannot be reached")                                                   \
    X(OFFLINE, FAILURE, "the storage is not there at the moment")                                  \
    X(STORE, FAILURE, "the coordination store takes nothing at the moment")                        \
    X(PEER, FAILURE, "the peer answered with an error")                                            \
    X(SHUTDOWN, FAILURE, "shutting down")

enum err_kind { ERR_KIND_EXPECTED, ERR_KIND_FAILURE };

enum err_index {
#define X(name, kind, text) ERR_INDEX_##name,
    ERR_TABLE(X)
#undef X
        ERR_COUNT
};

enum err_code {
    ERR_OK = 0,
#define X(name, kind, text) ERR_##name = -1 - ERR_INDEX_##name,
    ERR_TABLE(X)
#undef X
};

/* Initialise with {0}. `text` is always terminated; a text that does not fit is cut. */
struct err {
    int code;
    char text[512];
};

/* Sets code and text and returns the code, so that a caller can write `return err_set(...)`. `err`
 * may be NULL: then only the code is returned. */
int err_set(struct err *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Sets the code with its default text, and returns the code. */
int err_code(struct err *err, int code);

/* Puts the formatted words and ": " before the text in `err`, or before the default text of `code`
 * when `err` has no text. Sets the code to `code` and returns it. To keep the code of a failed
 * call, pass what that call returned as `code`. */
int err_wrap(struct err *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Sets the code that fits errno (ENOENT, ENOSPC, ETIMEDOUT, ...) and returns it. The text is the
 * formatted words, ": " and the text of strerror(). */
int err_errno(struct err *err, int errnum, const char *fmt, ...) PRINTF_LIKE(3, 4);
int err_from_errno(int errnum);

#ifdef __clang_analyzer__
/* These macros tell clang's analyzer that err_set() and its siblings return negative codes. Without
 * the macros the analyzer would follow paths on which the code is not negative. The first macro
 * cannot be a function, because the analyzer follows only a few levels of nested calls. */
#define err_returned(call)                                                                         \
    ({                                                                                             \
        int returned_ = (call);                                                                    \
        if (returned_ >= 0)                                                                        \
            __builtin_unreachable();                                                               \
        returned_;                                                                                 \
    })
#define err_set(...)   err_returned((err_set)(__VA_ARGS__))
#define err_code(...)  err_returned((err_code)(__VA_ARGS__))
#define err_wrap(...)  err_returned((err_wrap)(__VA_ARGS__))
#define err_errno(...) err_returned((err_errno)(__VA_ARGS__))
#endif

const char *err_name(int code); /* such as "NOT_FOUND" */
const char *err_text(int code); /* the default text */
enum err_kind err_kind(int code);

#endif
