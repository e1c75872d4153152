/* Reading a hash of the store into a struct, by a table with a row for each field.
 *
 *     static const struct field_row rows[] = {
 *         FIELD_ROW(struct check, "user", FIELD_TEXT, user),
 *         FIELD_ROW(struct check, "state", FIELD_WORD, state, .words = check_state_names,
 *                   .max = CHECK_STATES),
 *     };
 *     static const struct fields check_fields = FIELDS(rows);
 *
 * Fields of the hash that have no row are passed over. A field may have two rows. */
#ifndef STORE_FIELDS_H
#define STORE_FIELDS_H

#include "base/err.h"
#include "store/store.h"

#include <stddef.h>

enum field_kind {
    FIELD_TEXT,   /* struct str */
    FIELD_BOOL,   /* bool: true is "1", or `word` where the row has one; false everything else */
    FIELD_I64,    /* int64_t */
    FIELD_U64,    /* uint64_t */
    FIELD_INT,    /* int, from 0 to `max` */
    FIELD_DOUBLE, /* double */
    FIELD_TIME,   /* int64_t, ms since 1970; stored as ISO 8601 */
    FIELD_WORD,   /* an enum: the place of the value among `max` words */
    FIELD_BYTES,  /* an array of `max` bytes: the value must have that length */
};

struct field_row {
    const char *name;
    enum field_kind kind;
    size_t at;                /* of the member in the struct */
    bool required;            /* the hash must have the field */
    int max;                  /* FIELD_INT, FIELD_WORD, FIELD_BYTES */
    const char *word;         /* FIELD_BOOL */
    const char *const *words; /* FIELD_WORD */
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

/* Reads what HGETALL answered: names and values in turn. Members of fields that are absent stay as
 * they are. Texts are copied into `keep`; NULL: they are borrowed from the reply. ERR_CORRUPT: a
 * value cannot be read, or a required field is absent; then *out may have been changed in part. */
int fields_read(void *out, const struct fields *fields, const struct reply *hash,
                struct arena *keep, struct err *err) MUST_CHECK;
/* As fields_read(), for an answer of HMGET to the fields of the table, in the table's order. A nil
 * is an absent field. */
int fields_read_values(void *out, const struct fields *fields, const struct reply *values,
                       struct arena *keep, struct err *err) MUST_CHECK;
/* The command HMGET of all fields of the table. In the arena; without arguments when it is full. */
struct store_args fields_command(const struct fields *fields, struct arena *a, struct str key);

/* One value of what HGETALL answered; NULL: there is no such field. */
const struct reply *fields_find(const struct reply *hash, struct str name);

#endif
