/* JSON: reading a text into jansson's values under limits, and writing straight into a buf.
 *
 * Reading: a document is at most JSON_MAX_BYTES long and JSON_MAX_DEPTH deep. Duplicate keys are
 * refused: if two programs read the same document and used different duplicates, that could be a
 * security hole. The caller owns the value and frees it with json_decref().
 *
 * Writing: there is no tree. The writer adds commas and quotes; the caller opens and closes objects
 * and arrays.
 *
 *     struct json_out w;
 *     json_out_init(&w, &buf);
 *     json_out_open(&w, '{');
 *     json_out_member_str(&w, "name", name);
 *     json_out_close(&w, '}'); */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

enum { JSON_MAX_BYTES = 16 * 1024 * 1024, JSON_MAX_DEPTH = 64 };

/* Reads a document. ERR_PARSE: the document is malformed; the text of `err` has line and column.
 * ERR_TOO_LARGE: the document is past a limit. The caller owns *out. */
int json_read(json_t **out, struct str text, struct err *err) MUST_CHECK;

/* These functions return a member of an object, or `fallback` when the member is absent or of
 * another type. Strings are borrowed from the object. */
struct str json_get_str(const json_t *object, const char *key, struct str fallback);
int64_t json_get_i64(const json_t *object, const char *key, int64_t fallback);
bool json_get_bool(const json_t *object, const char *key, bool fallback);

/* Removes the first character from *rest, which is not empty, and writes it in the form that it has
 * inside a quoted JSON string. Returns the number of bytes written. Bytes that are not UTF-8 become
 * U+FFFD; control characters are escaped. */
enum { JSON_ESCAPE_MAX = 6 };
size_t json_escape(struct str *rest, char out[JSON_ESCAPE_MAX]);

struct json_out {
    struct buf *out;
    bool comma; /* the next value needs a comma before it */
};

void json_out_init(struct json_out *w, struct buf *out);
void json_out_open(struct json_out *w, char brace);  /* '{' or '[' */
void json_out_close(struct json_out *w, char brace); /* '}' or ']' */
void json_out_key(struct json_out *w, const char *key);
void json_out_key_str(struct json_out *w, struct str key);
void json_out_str(struct json_out *w, struct str s); /* bytes that are not UTF-8 become U+FFFD */
void json_out_u64(struct json_out *w, uint64_t v);
void json_out_i64(struct json_out *w, int64_t v);
/* Writes the shortest form that reads back equal, or null when v is not finite. */
void json_out_f64(struct json_out *w, double v);
void json_out_bool(struct json_out *w, bool v);
void json_out_null(struct json_out *w);
/* Writes `json`, which is a complete JSON value, as it is. */
void json_out_raw(struct json_out *w, struct str json);

/* These functions write a key and its value in one call. */
void json_out_member_str(struct json_out *w, const char *key, struct str s);
void json_out_member_u64(struct json_out *w, const char *key, uint64_t v);
void json_out_member_i64(struct json_out *w, const char *key, int64_t v);
void json_out_member_f64(struct json_out *w, const char *key, double v);
void json_out_member_bool(struct json_out *w, const char *key, bool v);

#endif
