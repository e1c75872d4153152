/* Reading a hash of the store into a struct. */
#include "store/fields.h"
#include "base/clock.h"

#include <stdlib.h>

static int field_read_double(struct str value, double *out)
{
    enum { TEXT_MAX = 63 };
    char text[TEXT_MAX + 1], *end;

    if (value.len == 0 || value.len > TEXT_MAX)
        return ERR_PARSE;
    memcpy(text, value.p, value.len);
    text[value.len] = '\0';
    *out = strtod(text, &end);
    return *end ? ERR_PARSE : 0;
}

static int field_read_int(const struct field_row *row, struct str value, int *out)
{
    int64_t n;

    if (str_i64(value, &n) < 0 || n < 0 || n > row->max)
        return ERR_PARSE;
    *out = (int)n;
    return 0;
}

static int field_read_word(const struct field_row *row, struct str value, int *out)
{
    for (int i = 0; i < row->max; i++)
        if (str_eq(value, str_z(row->words[i]))) {
            *out = i;
            return 0;
        }
    return ERR_PARSE;
}

static int field_read_bytes(const struct field_row *row, struct str value, void *out)
{
    if (value.len != (size_t)row->max)
        return ERR_PARSE;
    memcpy(out, value.p, value.len);
    return 0;
}

static int field_read(const struct field_row *row, struct str value, void *out, struct arena *keep)
{
    void *at = (char *)out + row->at;

    switch (row->kind) {
    case FIELD_TEXT:
        *(struct str *)at = keep ? arena_str(keep, value) : value;
        return 0;
    case FIELD_BOOL:
        *(bool *)at = str_eq(value, row->word ? str_z(row->word) : STR("1"));
        return 0;
    case FIELD_I64:
        return str_i64(value, at);
    case FIELD_U64:
        return str_u64(value, at);
    case FIELD_INT:
        return field_read_int(row, value, at);
    case FIELD_DOUBLE:
        return field_read_double(value, at);
    case FIELD_TIME:
        return clock_parse_iso(value, at);
    case FIELD_WORD:
        return field_read_word(row, value, at);
    case FIELD_BYTES:
        return field_read_bytes(row, value, at);
    }
    return ERR_PARSE;
}

/* Reads one field into its member. `value` is NULL or nil if the hash has no such field. */
static int field_take(const struct field_row *row, const struct reply *value, void *out,
                      struct arena *keep, struct err *err)
{
    bool absent = !value || reply_is_nil(value);

    if (absent && !row->required)
        return 0;
    if (absent)
        return err_set(err, ERR_CORRUPT, "the field '%s' is missing in the store", row->name);
    if (field_read(row, value->str, out, keep) < 0)
        return err_set(err, ERR_CORRUPT, "the field '%s' in the store has a wrong value",
                       row->name);
    return 0;
}

const struct reply *fields_find(const struct reply *hash, struct str name)
{
    for (size_t i = 0; i + 1 < hash->count; i += 2)
        if (str_eq(hash->items[i].str, name))
            return &hash->items[i + 1];
    return NULL;
}

int fields_read(void *out, const struct fields *fields, const struct reply *hash,
                struct arena *keep, struct err *err)
{
    int code = reply_expect(hash, REPLY_ARRAY, err);

    for (size_t i = 0; code == 0 && i < fields->count; i++) {
        const struct field_row *row = &fields->rows[i];
        code = field_take(row, fields_find(hash, str_z(row->name)), out, keep, err);
    }
    return code;
}

int fields_read_values(void *out, const struct fields *fields, const struct reply *values,
                       struct arena *keep, struct err *err)
{
    int code = reply_expect(values, REPLY_ARRAY, err);

    for (size_t i = 0; code == 0 && i < fields->count; i++)
        code = field_take(&fields->rows[i], i < values->count ? &values->items[i] : NULL, out, keep,
                          err);
    return code;
}

struct store_args fields_command(const struct fields *fields, struct arena *a, struct str key)
{
    struct str *argv = arena_array(a, 2 + fields->count, sizeof(*argv));

    if (!argv)
        return (struct store_args){0};
    argv[0] = STR("HMGET");
    argv[1] = key;
    for (size_t i = 0; i < fields->count; i++)
        argv[2 + i] = str_z(fields->rows[i].name);
    return (struct store_args){argv, 2 + fields->count};
}
