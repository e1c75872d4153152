/* Reads and checks values of a request as their fields say, and fills structs with them. */
#include "base/clock.h"
#include "conf/nearest.h"
#include "rest/rest_int.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

enum { MEMBERS_MAX = 32 /* the most fields of an object inside of a body */ };

size_t rest_field_count(const struct rest_field *fields)
{
    size_t count = 0;

    while (fields && fields[count].name)
        count++;
    return count;
}

struct rest_value rest_value_absent(const struct rest_field *f)
{
    return (struct rest_value){.field = f, .integer = f->usual, .number = (double)f->usual};
}

/* --- checks --- */

/* Checks the limits of a value. In the message "name must be 1 to 64 bytes long" `verb` is "be" and
 * `unit` is " bytes long". `most` is the upper limit if the field has none; 0: none. */
static int check_limits(const struct rest_field *f, int64_t size, int64_t most, const char *verb,
                        const char *unit, struct err *err)
{
    int64_t min = f->min, max = f->max ? f->max : most;

    if ((min == 0 && max == 0) || (size >= min && (size <= max || max == 0)))
        return 0;
    if (max == 0 || max == INT64_MAX)
        return err_set(err, ERR_INVALID, "%s must %s %lld%s or more", f->name, verb, (long long)min,
                       unit);
    return err_set(err, ERR_INVALID, "%s must %s %lld to %lld%s", f->name, verb, (long long)min,
                   (long long)max, unit);
}

static bool is_choice(const struct rest_field *f, struct str text)
{
    for (const char *const *choice = f->choices; *choice; choice++)
        if (str_eq(str_z(*choice), text))
            return true;
    return false;
}

static int check_choice(const struct rest_field *f, struct str text, struct err *err)
{
    struct buf all = BUF_INIT(1024);

    if (is_choice(f, text))
        return 0;
    for (const char *const *choice = f->choices; *choice; choice++)
        if (**choice) /* an empty choice stands for a member that is absent */
            buf_appendf(&all, "%s%s", !all.len ? "" : choice[1] ? ", " : " or ", *choice);
    err_set(err, ERR_INVALID, "%s must be " STR_FMT ", not '" STR_FMT "'", f->name,
            STR_ARG(buf_str(&all)), STR_ARG(str_head(text, 64)));
    buf_release(&all);
    return ERR_INVALID;
}

static int wrong_type(const struct rest_field *f, struct err *err)
{
    static const char *const kinds[] = {
        [REST_STRING] = "a string",
        [REST_INTEGER] = "a whole number",
        [REST_NUMBER] = "a number",
        [REST_BOOLEAN] = "true or false",
        [REST_TIME] = "a time such as \"2026-01-31T03:00:00Z\"",
        [REST_DURATION] = "a duration such as 500ms, 30s or 5m",
        [REST_STRINGS] = "a list of strings",
        [REST_OBJECT] = "an object",
        [REST_OBJECTS] = "a list of objects",
        [REST_MAP] = "an object whose members are strings",
    };

    return err_set(err, ERR_INVALID, "%s must be %s", f->name, kinds[f->type]);
}

/* Refuses a text with a NUL. Functions for C strings would take it for the end of the value, and
 * other functions would not. */
static int check_nul(const struct rest_field *f, struct str text, struct err *err)
{
    return str_chr(text, '\0') < 0 ? 0
                                   : err_set(err, ERR_INVALID, "%s must not have a NUL", f->name);
}

static int check_count(const struct rest_field *f, size_t count, const char *unit,
                       enum rest_manner manner, struct err *err)
{
    return check_limits(f, (int64_t)count, manner == REST_STRICT ? REST_ITEMS_MAX : 0, "have", unit,
                        err);
}

/* --- one value --- */

static int value_set_time(struct rest_value *v, struct err *err)
{
    return v->text.len && clock_parse_iso(v->text, &v->integer) < 0 ? wrong_type(v->field, err) : 0;
}

static int value_set_duration(struct rest_value *v, struct err *err)
{
    uint64_t ms;

    if (str_duration_ms(v->text, &ms) < 0 || ms > INT64_MAX)
        return wrong_type(v->field, err);
    v->integer = (int64_t)ms;
    return check_limits(v->field, v->integer, 0, "be", " ms", err);
}

static int value_set_text(struct rest_value *v, struct str text, enum rest_manner manner,
                          struct err *err)
{
    int code = check_nul(v->field, text, err);

    v->text = text;
    if (code < 0)
        return code;
    if (v->field->type == REST_DURATION)
        return value_set_duration(v, err);
    if (v->field->type == REST_TIME && manner == REST_STRICT)
        return value_set_time(v, err);
    if (v->field->choices)
        return check_choice(v->field, text, err);
    return check_limits(v->field, (int64_t)text.len, manner == REST_STRICT ? REST_TEXT_MAX : 0,
                        "be", " bytes long", err);
}

static int value_set_integer(struct rest_value *v, int64_t integer, struct err *err)
{
    v->integer = integer;
    return check_limits(v->field, integer, 0, "be", "", err);
}

static int value_set_number(struct rest_value *v, double number, struct err *err)
{
    const struct rest_field *f = v->field;

    v->number = number;
    if (!isfinite(number) || number < (double)f->min || (f->max && number > (double)f->max))
        return f->max ? err_set(err, ERR_INVALID, "%s must be %lld to %lld", f->name,
                                (long long)f->min, (long long)f->max)
                      : err_set(err, ERR_INVALID, "%s must be %lld or more", f->name,
                                (long long)f->min);
    return 0;
}

/* Reads true or false. Lenient reading also accepts spellings that other programs use, such as
 * "True". */
static int value_set_boolean(struct rest_value *v, struct str text, enum rest_manner manner,
                             struct err *err)
{
    bool yes = str_eq(text, STR("true")), no = str_eq(text, STR("false"));

    if (manner == REST_LENIENT) {
        yes = str_ieq(text, STR("true")) || str_ieq(text, STR("t")) || str_eq(text, STR("1"));
        no = str_ieq(text, STR("false")) || str_ieq(text, STR("f")) || str_eq(text, STR("0"));
    }
    v->truth = yes;
    return yes || no ? 0 : wrong_type(v->field, err);
}

int rest_value_from_text(struct rest_value *v, struct str text, enum rest_manner manner,
                         struct err *err)
{
    int64_t integer;

    v->given = true;
    switch (v->field->type) {
    case REST_STRING:
    case REST_TIME:
    case REST_DURATION:
        return value_set_text(v, text, manner, err);
    case REST_INTEGER:
        return str_i64(text, &integer) < 0 ? wrong_type(v->field, err)
                                           : value_set_integer(v, integer, err);
    case REST_BOOLEAN:
        return value_set_boolean(v, text, manner, err);
    default:
        BUG_ON(true); /* a field of a path or query may not have another type */
    }
}

/* --- JSON --- */

static struct str json_text(const json_t *string)
{
    return str_n(json_string_value(string), json_string_length(string));
}

static int check_item(const struct rest_field *f, const json_t *item, enum rest_manner manner,
                      struct err *err)
{
    struct str text = json_text(item);

    if (!json_is_string(item))
        return wrong_type(f, err);
    if (manner == REST_STRICT && text.len > REST_TEXT_MAX)
        return err_set(err, ERR_INVALID, "each of %s must be 0 to %d bytes long", f->name,
                       REST_TEXT_MAX);
    return check_nul(f, text, err);
}

static int check_strings(const struct rest_field *f, const json_t *list, enum rest_manner manner,
                         struct err *err)
{
    const json_t *item;
    size_t i;

    if (!json_is_array(list))
        return wrong_type(f, err);
    json_array_foreach(list, i, item)
    {
        int code = check_item(f, item, manner, err);
        if (code < 0)
            return code;
    }
    return check_count(f, json_array_size(list), " items", manner, err);
}

static int check_map(const struct rest_field *f, const json_t *map, enum rest_manner manner,
                     struct err *err)
{
    const char *key;
    json_t *item;

    if (!json_is_object(map))
        return wrong_type(f, err);
    json_object_foreach((json_t *)(uintptr_t)map, key, item)
    {
        int code = check_item(f, item, manner, err);
        if (code < 0)
            return code;
    }
    return check_count(f, json_object_size(map), " members", manner, err);
}

int rest_unknown(const struct rest_field *const *fields, size_t count, const char *what,
                 struct str name, struct err *err)
{
    struct nearest nearest = NEAREST_INIT(name);

    for (size_t i = 0; i < count; i++)
        for (const struct rest_field *f = fields[i]; f && f->name; f++)
            nearest_offer(&nearest, f->name);
    name = str_head(name, 64);
    return nearest.best ? err_set(err, ERR_INVALID, "%s \"" STR_FMT "\"; did you mean \"%s\"?",
                                  what, STR_ARG(name), nearest.best)
                        : err_set(err, ERR_INVALID, "%s \"" STR_FMT "\"", what, STR_ARG(name));
}

static struct rest_value *value_in(struct rest_value *values, const struct rest_field *fields,
                                   const char *name)
{
    for (size_t i = 0; fields[i].name; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &values[i];
    return NULL;
}

int rest_values_from_json(struct rest_value *values, const struct rest_field *fields,
                          const json_t *object, const char *what, enum rest_manner manner,
                          struct err *err)
{
    const char *name;
    json_t *json;

    json_object_foreach((json_t *)(uintptr_t)object, name, json)
    {
        struct rest_value *v = value_in(values, fields, name);
        if (manner == REST_LENIENT && (!v || json_is_null(json)))
            continue;
        int code = v ? rest_value_from_json(v, json, manner, err)
                     : rest_unknown(&fields, 1, what, str_z(name), err);
        if (code < 0)
            return code;
    }
    return 0;
}

static void values_of(struct rest_value *out, const struct rest_field *fields)
{
    for (size_t i = 0; fields[i].name; i++)
        out[i] = rest_value_absent(&fields[i]);
}

/* Checks the object of a field, and reads its members into `values`, which has room for
 * MEMBERS_MAX. */
static int read_members(struct rest_value *values, const struct rest_field *f, const json_t *object,
                        enum rest_manner manner, struct err *err)
{
    const struct rest_field *fields = f->members;
    char what[128];
    int code = json_is_object(object) ? 0 : wrong_type(f, err);

    if (code < 0 || !fields)
        return code;
    BUG_ON(rest_field_count(fields) > MEMBERS_MAX);
    values_of(values, fields);
    snprintf(what, sizeof(what), "%s takes no member", f->name);
    code = rest_values_from_json(values, fields, object, what, manner, err);
    for (size_t i = 0; fields[i].name && code == 0; i++)
        if (fields[i].required && !values[i].given)
            code = err_set(err, ERR_INVALID, "%s.%s is required", f->name, fields[i].name);
    return code;
}

static int check_object(const struct rest_field *f, const json_t *object, enum rest_manner manner,
                        struct err *err)
{
    struct rest_value values[MEMBERS_MAX] = {0};

    return read_members(values, f, object, manner, err);
}

static int check_objects(const struct rest_field *f, const json_t *list, enum rest_manner manner,
                         struct err *err)
{
    if (!json_is_array(list))
        return wrong_type(f, err);
    int code = check_count(f, json_array_size(list), " items", manner, err);
    for (size_t i = 0; code == 0 && i < json_array_size(list); i++)
        code = check_object(f, json_array_get(list, i), manner, err);
    return code;
}

int rest_value_from_json(struct rest_value *v, const json_t *json, enum rest_manner manner,
                         struct err *err)
{
    const struct rest_field *f = v->field;

    v->given = true;
    v->json = json;
    switch (f->type) {
    case REST_STRING:
    case REST_TIME:
    case REST_DURATION:
        return json_is_string(json) ? value_set_text(v, json_text(json), manner, err)
                                    : wrong_type(f, err);
    case REST_INTEGER:
        return json_is_integer(json) ? value_set_integer(v, json_integer_value(json), err)
                                     : wrong_type(f, err);
    case REST_NUMBER:
        return json_is_number(json) ? value_set_number(v, json_number_value(json), err)
                                    : wrong_type(f, err);
    case REST_BOOLEAN:
        v->truth = json_is_true(json);
        return json_is_boolean(json) ? 0 : wrong_type(f, err);
    case REST_STRINGS:
        return check_strings(f, json, manner, err);
    case REST_MAP:
        return check_map(f, json, manner, err);
    case REST_OBJECT:
        return check_object(f, json, manner, err);
    case REST_OBJECTS:
        return check_objects(f, json, manner, err);
    case REST_ANY:
        return 0;
    }
    BUG_ON(true);
}

/* --- structs --- */

static int store_object(void *out, const struct rest_field *f, const json_t *object,
                        struct arena *arena, struct err *err)
{
    struct rest_value values[MEMBERS_MAX] = {0};
    int code = read_members(values, f, object, REST_STRICT, err);

    return code < 0 ? code
                    : rest_values_store(out, values, rest_field_count(f->members), arena, err);
}

static int store_items(void *out, const struct rest_value *v, struct arena *arena, struct err *err)
{
    const struct rest_field *f = v->field;
    size_t count = json_array_size(v->json);
    char *items = arena_array(arena, size_max(count, 1), f->item_size);
    int code = items ? 0 : err_code(err, ERR_NO_MEMORY);

    for (size_t i = 0; i < count && code == 0; i++) {
        const json_t *json = json_array_get(v->json, i);
        char *item = items + i * f->item_size;
        struct str text = json_text(json);
        if (f->type == REST_STRINGS)
            memcpy(item, &text, sizeof(text));
        else
            code = store_object(item, f, json, arena, err);
    }
    memcpy((char *)out + f->at, &items, sizeof(items));
    memcpy((char *)out + f->count_at, &count, sizeof(count));
    return code;
}

static int store_pointer(void *out, const struct rest_value *v, struct arena *arena,
                         struct err *err)
{
    void *thing = v->given ? arena_alloc(arena, v->field->item_size) : NULL;

    if (!v->given)
        return 0;
    memcpy((char *)out + v->field->at, &thing, sizeof(thing));
    return thing ? store_object(thing, v->field, v->json, arena, err)
                 : err_code(err, ERR_NO_MEMORY);
}

static int store_int(int *place, const struct rest_value *v, struct err *err)
{
    if (v->integer < INT_MIN || v->integer > INT_MAX)
        return err_set(err, ERR_INVALID, "%s is too large", v->field->name);
    *place = (int)v->integer;
    return 0;
}

static unsigned choice_number(const struct rest_value *v)
{
    unsigned i = 0;

    while (v->given && v->field->choices[i] && !str_eq(str_z(v->field->choices[i]), v->text))
        i++;
    return i;
}

static int store_unsigned(unsigned *place, const struct rest_value *v, struct err *err)
{
    if (v->field->type != REST_STRING && (v->integer < 0 || v->integer > UINT_MAX))
        return err_set(err, ERR_INVALID, "%s is too large", v->field->name);
    *place = v->field->type == REST_STRING ? choice_number(v) : (unsigned)v->integer;
    return 0;
}

static int store_u64(uint64_t *place, const struct rest_value *v, struct err *err)
{
    if (v->integer < 0)
        return err_set(err, ERR_INVALID, "%s must be 0 or more", v->field->name);
    *place = (uint64_t)v->integer;
    return 0;
}

static int value_store(void *out, const struct rest_value *v, struct arena *arena, struct err *err)
{
    void *place = (char *)out + v->field->at;

    switch (v->field->as) {
    case REST_NO_PLACE:
        return 0;
    case REST_AT_STR:
        *(struct str *)place = v->text;
        return 0;
    case REST_AT_Z:
        *(const char **)place = v->given ? arena_z(arena, v->text) : NULL;
        return v->given && !*(const char **)place ? err_code(err, ERR_NO_MEMORY) : 0;
    case REST_AT_BOOL:
        *(bool *)place = v->truth;
        return 0;
    case REST_AT_INT:
        return store_int(place, v, err);
    case REST_AT_UNSIGNED:
        return store_unsigned(place, v, err);
    case REST_AT_I64:
        *(int64_t *)place = v->integer;
        return 0;
    case REST_AT_U64:
        return store_u64(place, v, err);
    case REST_AT_F64:
        *(double *)place = v->number;
        return 0;
    case REST_AT_KNOWN:
        *(struct rest_known *)place =
            (struct rest_known){v->given, v->field->type == REST_BOOLEAN ? v->truth : v->integer};
        return 0;
    case REST_AT_ITEMS:
        return store_items(out, v, arena, err);
    case REST_AT_INSIDE:
        return v->given ? store_object(place, v->field, v->json, arena, err) : 0;
    case REST_AT_POINTER:
        return store_pointer(out, v, arena, err);
    case REST_AT_CHARS:
        break;
    }
    BUG_ON(true); /* a text of a request has no limit that an array of char has */
}

int rest_values_store(void *out, const struct rest_value *values, size_t count, struct arena *arena,
                      struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++)
        code = value_store(out, &values[i], arena, err);
    return code;
}

int rest_fields_read(void *out, const struct rest_field *fields, const json_t *object,
                     struct arena *arena, struct err *err)
{
    const struct rest_field all = {"the object", .type = REST_OBJECT, .members = fields};

    return store_object(out, &all, object, arena, err);
}
