/* Writes the schemas of the OpenAPI document from fields. The limits in a schema are those that
 * field.c checks. OpenAPI counts the characters of a text, and weir counts bytes. A text of at most
 * N bytes has at most N characters, so the schema of a request accepts all that weir accepts. */
#include "rest/openapi.h"

static void write_object_keys(struct json_out *w, const struct rest_field *members,
                              const char *list, struct str items, enum rest_side side);

static void member_z(struct json_out *w, const char *name, const char *text)
{
    json_out_member_str(w, name, str_z(text));
}

/* --- limits --- */

/* Writes two limits; `most` is used if the field has no upper limit, and 0 is none. */
static void write_limits(struct json_out *w, const struct rest_field *f, const char *least,
                         const char *greatest, int64_t most)
{
    int64_t max = f->max ? f->max : most;

    if (f->min)
        json_out_member_i64(w, least, f->min);
    if (max && max != INT64_MAX)
        json_out_member_i64(w, greatest, max);
}

/* Writes the limits of a number. An INTEGER whose limits are both 0 has none. */
static void write_bounds(struct json_out *w, const struct rest_field *f)
{
    if (f->min || f->max || f->type == REST_NUMBER)
        json_out_member_i64(w, "minimum", f->min);
    if (f->max && f->max != INT64_MAX)
        json_out_member_i64(w, "maximum", f->max);
    if (f->usual)
        json_out_member_i64(w, "default", f->usual);
}

/* A text of `min` bytes has at least a quarter as many characters. */
static void write_lengths(struct json_out *w, const struct rest_field *f)
{
    if (f->min)
        json_out_member_i64(w, "minLength", (f->min + 3) / 4);
    json_out_member_i64(w, "maxLength", f->max ? f->max : REST_TEXT_MAX);
}

static void write_choices(struct json_out *w, const struct rest_field *f)
{
    json_out_key(w, "enum");
    json_out_open(w, '[');
    for (const char *const *choice = f->choices; *choice; choice++)
        json_out_str(w, str_z(*choice));
    if (f->nullable)
        json_out_null(w);
    json_out_close(w, ']');
}

/* --- types --- */

static void write_string(struct json_out *w, const struct rest_field *f, enum rest_side side)
{
    if (f->secret)
        member_z(w, "format", "password");
    if (f->choices)
        write_choices(w, f);
    else if (side == REST_REQUEST)
        write_lengths(w, f);
}

static void write_duration_keys(struct json_out *w, const struct rest_field *f, enum rest_side side)
{
    member_z(w, "pattern",
             side == REST_REQUEST ? "^[0-9]+([mM][sS]|[sSmMhHdD])$" : "^[0-9]+(ms|s)$");
    if (side == REST_REQUEST)
        write_limits(w, f, "x-weir-min-ms", "x-weir-max-ms", 0);
}

/* The empty text stands for no time. */
static void write_time_keys(struct json_out *w, enum rest_side side)
{
    member_z(w, "pattern",
             side == REST_REQUEST
                 ? "^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?"
                   "(Z|[+-][0-9]{2}:[0-9]{2}))?$"
                 : "^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z)?$");
}

static void write_text_schema(struct json_out *w, enum rest_side side)
{
    json_out_open(w, '{');
    member_z(w, "type", "string");
    if (side == REST_REQUEST)
        json_out_member_i64(w, "maxLength", REST_TEXT_MAX);
    json_out_close(w, '}');
}

static void write_array(struct json_out *w, const struct rest_field *f, enum rest_side side)
{
    if (side == REST_REQUEST)
        write_limits(w, f, "minItems", "maxItems", REST_ITEMS_MAX);
    json_out_key(w, "items");
    if (f->type == REST_STRINGS)
        write_text_schema(w, side);
    else
        rest_object_schema(w, f->members, NULL, STR_EMPTY, side);
}

static void write_map(struct json_out *w, const struct rest_field *f, enum rest_side side)
{
    if (side == REST_REQUEST)
        write_limits(w, f, "minProperties", "maxProperties", REST_ITEMS_MAX);
    json_out_key(w, "additionalProperties");
    write_text_schema(w, side);
}

static void write_keys(struct json_out *w, const struct rest_field *f, enum rest_side side)
{
    switch (f->type) {
    case REST_STRING:
        write_string(w, f, side);
        return;
    case REST_INTEGER:
        member_z(w, "format", "int64");
        if (side == REST_REQUEST)
            write_bounds(w, f);
        return;
    case REST_NUMBER:
        member_z(w, "format", "double");
        if (side == REST_REQUEST)
            write_bounds(w, f);
        return;
    case REST_TIME:
        write_time_keys(w, side);
        return;
    case REST_DURATION:
        write_duration_keys(w, f, side);
        return;
    case REST_STRINGS:
    case REST_OBJECTS:
        write_array(w, f, side);
        return;
    case REST_OBJECT:
        write_object_keys(w, f->members, NULL, STR_EMPTY, side);
        return;
    case REST_MAP:
        write_map(w, f, side);
        return;
    case REST_BOOLEAN:
    case REST_ANY:
        return;
    }
    BUG_ON(true);
}

void rest_schema(struct json_out *w, const struct rest_field *f, enum rest_side side)
{
    static const char *const types[] = {
        [REST_STRING] = "string",   [REST_INTEGER] = "integer", [REST_NUMBER] = "number",
        [REST_BOOLEAN] = "boolean", [REST_TIME] = "string",     [REST_DURATION] = "string",
        [REST_STRINGS] = "array",   [REST_OBJECT] = "object",   [REST_OBJECTS] = "array",
        [REST_MAP] = "object",      [REST_ANY] = NULL,
    };

    json_out_open(w, '{');
    member_z(w, "description", f->doc);
    if (types[f->type])
        member_z(w, "type", types[f->type]);
    if (f->nullable && types[f->type])
        json_out_member_bool(w, "nullable", true);
    write_keys(w, f, side);
    json_out_close(w, '}');
}

/* --- objects --- */

/* Whether the field stands for all members that have no field of their own. */
static bool is_any_name(const struct rest_field *f)
{
    return strcmp(f->name, "*") == 0;
}

static bool is_required(const struct rest_field *f, enum rest_side side)
{
    return side == REST_REQUEST ? f->required : !f->sometimes && !is_any_name(f);
}

static void write_properties(struct json_out *w, const struct rest_field *members, const char *list,
                             struct str items, enum rest_side side)
{
    static const struct rest_field next = {"next", "The `after` of the next page; empty: this page "
                                                   "is the last."};

    json_out_key(w, "properties");
    json_out_open(w, '{');
    if (list) {
        json_out_key(w, list);
        json_out_open(w, '{');
        member_z(w, "type", "array");
        json_out_key(w, "items");
        json_out_raw(w, items);
        json_out_close(w, '}');
        json_out_key(w, next.name);
        rest_schema(w, &next, side);
    }
    for (const struct rest_field *f = members; f && f->name; f++)
        if (!is_any_name(f)) {
            json_out_key(w, f->name);
            rest_schema(w, f, side);
        }
    json_out_close(w, '}');
}

/* Writes the names of the members that are always there. OpenAPI does not allow an empty array. */
static void write_required(struct json_out *w, const struct rest_field *members, const char *list,
                           enum rest_side side)
{
    bool any = list != NULL;

    for (const struct rest_field *f = members; f && f->name; f++)
        any |= is_required(f, side);
    if (!any)
        return;
    json_out_key(w, "required");
    json_out_open(w, '[');
    if (list) {
        json_out_str(w, str_z(list));
        json_out_str(w, STR("next"));
    }
    for (const struct rest_field *f = members; f && f->name; f++)
        if (is_required(f, side))
            json_out_str(w, str_z(f->name));
    json_out_close(w, ']');
}

static void write_others(struct json_out *w, const struct rest_field *members, enum rest_side side)
{
    json_out_key(w, "additionalProperties");
    for (const struct rest_field *f = members; f && f->name; f++)
        if (is_any_name(f)) {
            rest_schema(w, f, side);
            return;
        }
    json_out_bool(w, false);
}

/* Writes the keys of an object's schema. Without fields and a list it may have any members. */
static void write_object_keys(struct json_out *w, const struct rest_field *members,
                              const char *list, struct str items, enum rest_side side)
{
    if (!members && !list)
        return;
    write_properties(w, members, list, items, side);
    write_required(w, members, list, side);
    write_others(w, members, side);
}

void rest_object_schema(struct json_out *w, const struct rest_field *members, const char *list,
                        struct str items, enum rest_side side)
{
    json_out_open(w, '{');
    member_z(w, "type", "object");
    write_object_keys(w, members, list, items, side);
    json_out_close(w, '}');
}
