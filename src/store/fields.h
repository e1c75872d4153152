/* Reading a hash of the store into a struct, by a table with a row for each field.
 *
 *     static const struct field_row rows[] = {
 *         FIELD_ROW(struct check, "user", FIELD_TEXT, user),
 *         FIELD_ROW(struct check, "state", FIELD_WORD, state, .words = check_state_names,
 *                   .max = CHECK_STATES),
 *     };
 *     static const struct fields check_fields = FIELDS(rows);
 *
 * Fields of the hash that have no row are ignored. A field may have two rows. */
#ifndef STORE_FIELDS_H
#define STORE_FIELDS_H

#include "base/err.h"
#include "store/store.h"

#include <stddef.h>

enum field_kind {
    FIELD_TEXT,   /* struct str */
    FIELD_BOOL,   /* bool: "1", or `word` if the row has one, is true; any other text is false */
    FIELD_I64,    /* int64_t */
    FIELD_U64,    /* uint64_t */
    FIELD_INT,    /* int, from 0 to `max` */
    FIELD_DOUBLE, /* double */
    FIELD_TIME,   /* int64_t, ms since 1970; stored as ISO 8601 */
    FIELD_WORD,   /* an enum: the index of the value in `words`, which has `max` entries */
    FIELD_BYTES,  /* an array of `max` bytes: the value must have that length */
};

struct field_row {
    const char *name;
    enum field_kind kind;
    size_t at;     /* offset of the member in the struct */
    bool required; /* the hash must have the field */
    int max; /* FIELD_INT: largest value; FIELD_WORD: number of `words`; FIELD_BYTES: length */
    const char *word;         /* for FIELD_BOOL: the text of true */
    const char *const *words; /* for FIELD_WORD: the words */
};
#define FIELD_ROW(type, field, field_kind, member, ...)                                            \
    {                                                                                              \
        .name = (field), .kind = (field_kind), .at = offsetof(type, member), ##__VA_ARGS__         \
    }

struct fields {
    const struct field_row *rows;
    size_t count;
};
#define FIELDS(array)                                                                              \
    {                                                                                              \
        (array), ARRAY_SIZE(array)                                                                 \
    }

/* Reads an answer of HGETALL: names and values in turn. Members whose fields are absent keep their
 * values. Texts are copied into `keep`; if that is NULL, they are borrowed from the reply.
 * ERR_CORRUPT: a value cannot be read, or a required field is absent; *out may then be changed in
 * part. */
int fields_read(void *out, const struct fields *fields, const struct reply *hash,
                struct arena *keep, struct err *err) MUST_CHECK;
/* Like fields_read(), but reads the answer of an HMGET that asked for the fields of the table, in
 * the table's order (fields_command()). A nil in the answer means that the field is absent. */
int fields_read_values(void *out, const struct fields *fields, const struct reply *values,
                       struct arena *keep, struct err *err) MUST_CHECK;
/* Makes the command HMGET for all fields of the table, in the arena. The command has no arguments
 * if the arena is full. */
struct store_args fields_command(const struct fields *fields, struct arena *a, struct str key);

/* Returns the value of the field `name` from an answer of HGETALL. NULL: there is no such field. */
const struct reply *fields_find(const struct reply *hash, struct str name);

#endif
