/* Reads JSON that a peer has sent, without building a tree. The reader goes through the text once
 * and returns the values that the caller asks for. So it needs no memory besides the text. (The
 * tree of a hostile page of 16 MiB may take a hundred times as much.)
 *
 *     struct scan s;
 *     scan_init(&s, text);
 *     scan_open(&s, '[');
 *     while (scan_more(&s)) {
 *         scan_open(&s, '{');
 *         while (scan_key(&s, key, sizeof(key)))
 *             if (strcmp(key, "id") == 0)
 *                 scan_number(&s, &id);
 *             else
 *                 scan_skip(&s);
 *     }
 *     code = scan_end(&s, err);
 *
 * Errors need to be checked only at the end: after the first error every call does nothing,
 * scan_more() and scan_key() return false, and scan_end() returns the error. The text must be one
 * JSON value by RFC 8259, in UTF-8, at most SCAN_DEPTH deep. In keys and strings that are
 * unescaped, U+FFFD stands for \u0000 and for half of a surrogate pair; what scan_skip() returns
 * keeps them as they came. Nothing here blocks, or allocates outside of the given arena. */
#ifndef ARCHIVE_SCAN_H
#define ARCHIVE_SCAN_H

#include "base/arena.h"
#include "base/err.h"

enum { SCAN_DEPTH = 64 };

enum scan_type {
    SCAN_NOTHING, /* the text has ended, or is malformed */
    SCAN_OBJECT,
    SCAN_ARRAY,
    SCAN_STRING,
    SCAN_NUMBER,
    SCAN_TRUE,
    SCAN_FALSE,
    SCAN_NULL,
};

struct scan {
    struct str text;
    size_t at;
    unsigned depth;
    char open[SCAN_DEPTH];  /* '{' or '[' for each level */
    bool first[SCAN_DEPTH]; /* nothing was read at this depth yet */
    const char *wrong;      /* describes the error; NULL: none so far */
};

void scan_init(struct scan *s, struct str text);

/* The type of the next value. */
enum scan_type scan_peek(struct scan *s);
/* Enters an object ('{') or an array ('['). Another value is an error. */
void scan_open(struct scan *s, char brace);
/* Whether the array has another value. After the last one, the reader is past the array. */
bool scan_more(struct scan *s);
/* Whether the object has another member. The member's key is unescaped into `key`; a key that does
 * not fit becomes "". After the last member, the reader is past the object. */
bool scan_key(struct scan *s, char *key, size_t size);
/* Skips the next value, of any type. *raw becomes its text; `raw` may be NULL. */
void scan_skip(struct scan *s, struct str *raw);

/* These functions read the next value. A value of another type is an error. */
void scan_string(struct scan *s, struct arena *a, size_t max, struct str *out); /* unescaped */
void scan_integer(struct scan *s, int64_t *out);
void scan_bool(struct scan *s, bool *out);

/* Ends the reading. ERR_PARSE: the text is not one complete JSON value, or was not read to its
 * end. */
int scan_end(struct scan *s, struct err *err) MUST_CHECK;
/* Fails the reader: scan_end() will return ERR_PARSE with the text `wrong`. */
void scan_fail(struct scan *s, const char *wrong);

#endif
