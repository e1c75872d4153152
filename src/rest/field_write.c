/* Writes structs as JSON, as their fields say. */
#include "base/clock.h"
#include "rest/field.h"

#include <stdio.h>

void rest_time(struct json_out *w, const char *name, int64_t wall_ms)
{
    char text[CLOCK_ISO_LEN + 1] = "";

    if (wall_ms)
        clock_iso(wall_ms, text);
    json_out_member_str(w, name, str_z(text));
}

static const char *item_at(const struct rest_field *f, const void *thing, size_t *count)
{
    const char *items;

    memcpy(&items, (const char *)thing + f->at, sizeof(items));
    memcpy(count, (const char *)thing + f->count_at, sizeof(*count));
    return items;
}

static void write_items(struct json_out *w, const struct rest_field *f, const void *thing)
{
    size_t count;
    const char *items = item_at(f, thing, &count);

    json_out_key(w, f->name);
    json_out_open(w, '[');
    for (size_t i = 0; i < count; i++) {
        const char *item = items + i * f->item_size;
        if (f->type == REST_STRINGS) {
            json_out_str(w, *(const struct str *)(const void *)item);
            continue;
        }
        json_out_open(w, '{');
        rest_fields_write(w, f->members, item);
        json_out_close(w, '}');
    }
    json_out_close(w, ']');
}

/* Writes an object; NULL: it is absent. */
static void write_object(struct json_out *w, const struct rest_field *f, const void *thing)
{
    if (!thing && f->sometimes)
        return;
    json_out_key(w, f->name);
    if (!thing) {
        json_out_null(w);
        return;
    }
    json_out_open(w, '{');
    rest_fields_write(w, f->members, thing);
    json_out_close(w, '}');
}

/* Writes a value of any type, whose text is JSON; another text becomes a string. */
static void write_any(struct json_out *w, const struct rest_field *f, struct str text)
{
    json_t *json = NULL;

    json_out_key(w, f->name);
    if (json_read(&json, text, NULL) == 0)
        json_out_raw(w, text);
    else
        json_out_str(w, text);
    json_decref(json);
}

static void write_text(struct json_out *w, const struct rest_field *f, struct str text)
{
    if (!text.p && f->sometimes)
        return;
    if (f->type == REST_ANY) {
        write_any(w, f, text);
    } else if (!text.p && f->nullable) {
        json_out_key(w, f->name);
        json_out_null(w);
    } else {
        json_out_member_str(w, f->name, text);
    }
}

/* Writes a duration in whole seconds, such as "30s", or else as "1500ms". */
static void write_duration(struct json_out *w, const struct rest_field *f, uint64_t ms)
{
    char text[32];
    bool whole = ms % MS_PER_S == 0;

    snprintf(text, sizeof(text), "%llu%s", (unsigned long long)(whole ? ms / MS_PER_S : ms),
             whole ? "s" : "ms");
    json_out_member_str(w, f->name, str_z(text));
}

static void write_u64(struct json_out *w, const struct rest_field *f, uint64_t value)
{
    if (f->type == REST_DURATION)
        write_duration(w, f, value);
    else
        json_out_member_u64(w, f->name, value);
}

static void write_i64(struct json_out *w, const struct rest_field *f, int64_t value)
{
    if (f->type == REST_TIME)
        rest_time(w, f->name, value);
    else if (f->type == REST_DURATION)
        write_duration(w, f, (uint64_t)value);
    else if (f->type == REST_BOOLEAN)
        json_out_member_bool(w, f->name, value != 0);
    else
        json_out_member_i64(w, f->name, value);
}

static void write_known(struct json_out *w, const struct rest_field *f, struct rest_known number)
{
    if (number.known) {
        write_i64(w, f, number.value);
    } else if (!f->sometimes) {
        json_out_key(w, f->name);
        json_out_null(w);
    }
}

static void write_unsigned(struct json_out *w, const struct rest_field *f, unsigned value)
{
    if (f->choices)
        json_out_member_str(w, f->name, str_z(f->choices[value]));
    else
        json_out_member_u64(w, f->name, value);
}

static struct str text_z(const char *text)
{
    return text ? str_z(text) : (struct str){0};
}

static void field_write(struct json_out *w, const struct rest_field *f, const void *thing)
{
    const void *place = (const char *)thing + f->at;

    switch (f->as) {
    case REST_NO_PLACE:
        return;
    case REST_AT_STR:
        write_text(w, f, *(const struct str *)place);
        return;
    case REST_AT_Z:
        write_text(w, f, text_z(*(const char *const *)place));
        return;
    case REST_AT_CHARS:
        write_text(w, f, str_z(place));
        return;
    case REST_AT_BOOL:
        json_out_member_bool(w, f->name, *(const bool *)place);
        return;
    case REST_AT_INT:
        json_out_member_i64(w, f->name, *(const int *)place);
        return;
    case REST_AT_UNSIGNED:
        write_unsigned(w, f, *(const unsigned *)place);
        return;
    case REST_AT_I64:
        write_i64(w, f, *(const int64_t *)place);
        return;
    case REST_AT_U64:
        write_u64(w, f, *(const uint64_t *)place);
        return;
    case REST_AT_F64:
        json_out_member_f64(w, f->name, *(const double *)place);
        return;
    case REST_AT_KNOWN:
        write_known(w, f, *(const struct rest_known *)place);
        return;
    case REST_AT_ITEMS:
        write_items(w, f, thing);
        return;
    case REST_AT_INSIDE:
        write_object(w, f, place);
        return;
    case REST_AT_POINTER:
        write_object(w, f, *(const void *const *)place);
        return;
    }
    BUG_ON(true);
}

void rest_fields_write(struct json_out *w, const struct rest_field *fields, const void *thing)
{
    for (const struct rest_field *f = fields; f && f->name; f++)
        field_write(w, f, thing);
}
