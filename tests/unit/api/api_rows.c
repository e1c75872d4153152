/* Answers of the API against the descriptions in its rows. */
#include "unit/api/api_rows.h"
#include "base/clock.h"
#include "unit/test.h"

static const struct rest_field error_fields[] = {
    {"error", "An error.", REST_OBJECT,
     .members = REST_FIELDS({"code", "A word."}, {"message", "A sentence."},
                            {"request_id", "The request."})},
    {0},
};

/* Segments that are equal when the path fits the row's; -1: it does not fit. */
static int fit_of(struct str pattern, struct str path)
{
    struct str want, got;
    int equal = 0;

    while (pattern.len && path.len) {
        str_cut(pattern, '/', &want, &pattern);
        str_cut(path, '/', &got, &path);
        if (!str_starts(want, STR("{")) && !str_eq(want, got))
            return -1;
        equal += str_eq(want, got);
    }
    return pattern.len == path.len ? equal : -1;
}

static const struct rest_row *row_of(const struct rest_table *tables, size_t count,
                                     struct str method, struct str path)
{
    const struct rest_row *best = NULL;
    int best_fit = -1;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < tables[i].count; k++) {
            const struct rest_row *row = &tables[i].rows[k];
            int fit = fit_of(str_z(row->path), path);
            if (fit > best_fit && str_eq(method, str_z(http_method_name(row->method)))) {
                best = row;
                best_fit = fit;
            }
        }
    return best;
}

static const struct rest_field *field_of(const struct rest_field *fields, const char *name)
{
    for (const struct rest_field *f = fields; f && f->name; f++)
        if (strcmp(f->name, name) == 0 || strcmp(f->name, "*") == 0)
            return f;
    return NULL;
}

static void check_object(const char *request, const struct rest_field *fields,
                         const json_t *object);

static bool is_time(const json_t *value)
{
    int64_t ms;
    struct str text = str_z(json_string_value(value));

    return json_is_string(value) && (!text.len || clock_parse_iso(text, &ms) == 0);
}

static bool is_array_of(const json_t *value, bool strings)
{
    const json_t *item;
    size_t i;

    json_array_foreach(value, i, item) if (strings ? !json_is_string(item)
                                                   : !json_is_object(item)) return false;
    return json_is_array(value);
}

static bool has_type(const struct rest_field *f, const json_t *value)
{
    if (json_is_null(value) && f->nullable)
        return true;
    switch (f->type) {
    case REST_STRING:
    case REST_DURATION:
        return json_is_string(value);
    case REST_INTEGER:
        return json_is_integer(value);
    case REST_NUMBER:
        return json_is_number(value);
    case REST_BOOLEAN:
        return json_is_boolean(value);
    case REST_TIME:
        return is_time(value);
    case REST_STRINGS:
        return is_array_of(value, true);
    case REST_OBJECT:
    case REST_MAP:
        return json_is_object(value);
    case REST_OBJECTS:
        return is_array_of(value, false);
    case REST_ANY:
        return true;
    }
    return false;
}

static void check_member(const char *request, const struct rest_field *f, const json_t *value)
{
    const json_t *item;
    size_t i;

    if (!has_type(f, value))
        test_fail(__FILE__, __LINE__, "%s: %s has another type than its row says", request,
                  f->name);
    if (f->members && f->type == REST_OBJECT)
        check_object(request, f->members, value);
    if (f->members && f->type == REST_OBJECTS)
        json_array_foreach(value, i, item) check_object(request, f->members, item);
}

static void check_object(const char *request, const struct rest_field *fields, const json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        const struct rest_field *f = field_of(fields, name);
        if (!f)
            test_fail(__FILE__, __LINE__, "%s: its row does not describe %s", request, name);
        else
            check_member(request, f, value);
    }
    for (const struct rest_field *f = fields; f && f->name; f++)
        if (!f->sometimes && strcmp(f->name, "*") != 0 && !json_object_get(object, f->name))
            test_fail(__FILE__, __LINE__, "%s: the answer lacks %s", request, f->name);
}

static void check_list(const char *request, const struct rest_row *row, const json_t *answer)
{
    json_t *rest = json_copy((json_t *)(uintptr_t)answer);
    const json_t *item;
    size_t i;

    if (!json_is_array(json_object_get(answer, row->list)) ||
        !json_is_string(json_object_get(answer, "next")))
        test_fail(__FILE__, __LINE__, "%s: the answer is not a list", request);
    json_array_foreach(json_object_get(answer, row->list), i, item)
        check_object(request, row->items, item);
    json_object_del(rest, row->list);
    json_object_del(rest, "next");
    check_object(request, row->answer, rest);
    json_decref(rest);
}

void api_rows_check(const struct rest_table *tables, size_t count, const char *request, int status,
                    const json_t *answer)
{
    struct str method, target, path, query;

    str_cut(str_z(request), ' ', &method, &target);
    str_cut(target, '?', &path, &query);
    const struct rest_row *row = row_of(tables, count, method, path);
    bool success =
        row && (status == (row->status ? row->status : 200) || status == row->other_status);
    if (!success && answer) /* the HTTP server refuses some requests by itself, without JSON */
        check_object(request, error_fields, answer);
    else if (success && row->list)
        check_list(request, row, answer);
    else if (success && answer && !row->media)
        check_object(request, row->answer, answer);
}
