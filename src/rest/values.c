/* Reads the values of a request from path, query and body, and checks them as the row's fields say.
 */
#include "conf/nearest.h"
#include "rest/rest_int.h"

#include <math.h>

enum { QUERY_VALUE_MAX = 4096, QUERY_LIST_MAX = 1000 };

enum { PAGING_AFTER, PAGING_LIMIT }; /* indexes in a dialect's `paging` */

static const struct rest_field no_fields[] = {{0}};

static size_t field_count(const struct rest_field *fields)
{
    size_t count = 0;

    while (fields && fields[count].name)
        count++;
    return count;
}

/* --- checks --- */

/* Checks the limits of a value. In the message "name must be 1 to 64 bytes long" `verb` is "be" and
 * `unit` is " bytes long". */
static int check_limits(const struct rest_field *f, int64_t size, const char *verb,
                        const char *unit, struct err *err)
{
    if ((f->min == 0 && f->max == 0) || (size >= f->min && (size <= f->max || f->max == 0)))
        return 0;
    if (f->max == 0 || f->max == INT64_MAX)
        return err_set(err, ERR_INVALID, "%s must %s %lld%s or more", f->name, verb,
                       (long long)f->min, unit);
    return err_set(err, ERR_INVALID, "%s must %s %lld to %lld%s", f->name, verb, (long long)f->min,
                   (long long)f->max, unit);
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

/* Refuses a value with a NUL. Functions for C strings would take the NUL for the end of the value,
 * and other functions would not. */
static int check_nul(const struct rest_field *f, struct str text, struct err *err)
{
    return str_chr(text, '\0') < 0 ? 0
                                   : err_set(err, ERR_INVALID, "%s must not have a NUL", f->name);
}

static int set_text(struct rest_value *v, struct str text, struct err *err)
{
    v->text = text;
    int code = check_nul(v->field, text, err);
    if (code < 0)
        return code;
    if (v->field->choices)
        return check_choice(v->field, text, err);
    return check_limits(v->field, (int64_t)text.len, "be", " bytes long", err);
}

static int set_integer(struct rest_value *v, int64_t integer, struct err *err)
{
    v->integer = integer;
    return check_limits(v->field, integer, "be", "", err);
}

static int set_number(struct rest_value *v, double number, struct err *err)
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

/* --- path and query: text --- */

static int wrong_type(const struct rest_field *f, struct err *err)
{
    static const char *const kinds[] = {
        [REST_STRING] = "a string",
        [REST_INTEGER] = "a whole number",
        [REST_NUMBER] = "a number",
        [REST_BOOLEAN] = "true or false",
        [REST_TIME] = "a time such as \"2026-01-31T03:00:00Z\"",
        [REST_STRINGS] = "a list of strings",
        [REST_OBJECT] = "an object",
        [REST_OBJECTS] = "a list of objects",
        [REST_MAP] = "an object whose members are strings",
    };

    return err_set(err, ERR_INVALID, "%s must be %s", f->name, kinds[f->type]);
}

/* Adds a value to a list of strings in the query. Such a list repeats its name for each value. */
static int add_to_list(struct rest_call *c, struct rest_value *v, struct str text, struct err *err)
{
    json_t *list = json_object_get(c->lists, v->field->name);

    if (!c->lists)
        c->lists = json_object();
    if (!list) {
        list = json_array();
        json_object_set_new(c->lists, v->field->name, list);
    }
    v->given = true;
    v->json = list;
    if (check_nul(v->field, text, err) < 0)
        return ERR_INVALID;
    if (json_array_size(list) == QUERY_LIST_MAX ||
        json_array_append_new(list, json_stringn(text.p, text.len)) < 0)
        return err_set(err, ERR_INVALID, "%s has too many values, or one that is not UTF-8",
                       v->field->name);
    return 0;
}

/* Reads true or false. A lenient dialect also accepts spellings that other programs use, such as
 * "True". */
static int read_boolean(struct rest_value *v, struct str text, bool lenient, struct err *err)
{
    bool yes = str_eq(text, STR("true")), no = str_eq(text, STR("false"));

    if (lenient) {
        yes = str_ieq(text, STR("true")) || str_ieq(text, STR("t")) || str_eq(text, STR("1"));
        no = str_ieq(text, STR("false")) || str_ieq(text, STR("f")) || str_eq(text, STR("0"));
    }
    v->truth = yes;
    return yes || no ? 0 : wrong_type(v->field, err);
}

static int read_from_text(const struct rest_call *c, struct rest_value *v, struct str text,
                          struct err *err)
{
    int64_t integer;

    v->given = true;
    switch (v->field->type) {
    case REST_STRING:
        return set_text(v, text, err);
    case REST_INTEGER:
        return str_i64(text, &integer) < 0 ? wrong_type(v->field, err)
                                           : set_integer(v, integer, err);
    case REST_BOOLEAN:
        return read_boolean(v, text, c->dialect->lenient, err);
    default:
        BUG_ON(true); /* a field of a path or query may not have another type */
    }
}

static struct rest_value *rest_value_find(const struct rest_call *c, struct str name)
{
    for (size_t i = 0; i < c->value_count; i++)
        if (str_eq(str_z(c->values[i].field->name), name))
            return &c->values[i];
    return NULL;
}

/* Reads the values of the path. A row without fields for the path does not use these values. */
static int read_path(struct rest_call *c, const struct rest_path *path, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < path->count && c->row->in_path && code == 0; i++) {
        struct rest_value *v = rest_value_find(c, path->name[i]);
        BUG_ON(!v);
        code = read_from_text(c, v, path->value[i], err);
    }
    return code;
}

static bool is_in(const struct rest_field *fields, const struct rest_field *f)
{
    return fields && f >= fields && f < fields + field_count(fields);
}

/* Reads the query. When a name comes twice, the last value counts, except in a list. An empty value
 * counts as absent. Names that the row does not have are ignored. */
static int read_query(struct rest_call *c, struct err *err)
{
    struct str rest = http_request_head(c->req)->query, name, raw;
    struct buf text = BUF_INIT(QUERY_VALUE_MAX);
    int code = 0;

    while (code == 0 && url_query_next(&rest, &name, &raw)) {
        struct rest_value *v = rest_value_find(c, name);
        if (!v || !(is_in(c->row->query, v->field) || is_in(c->dialect->paging, v->field)))
            continue;
        buf_reset(&text);
        code = url_decode(&text, raw, true);
        if (code == 0)
            code = buf_error(&text);
        if (code < 0)
            err_set(err, code, "the query cannot be read");
        else if (text.len && v->field->type == REST_STRINGS)
            code = add_to_list(c, v, buf_str(&text), err);
        else if (text.len)
            code = read_from_text(c, v, arena_str(c->arena, buf_str(&text)), err);
    }
    buf_release(&text);
    return code;
}

/* --- body --- */

static struct str json_text(const json_t *string)
{
    return str_n(json_string_value(string), json_string_length(string));
}

static int check_strings(const struct rest_field *f, const json_t *list, struct err *err)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        int code = json_is_string(item) ? check_nul(f, json_text(item), err) : wrong_type(f, err);
        if (code < 0)
            return code;
    }
    return check_limits(f, (int64_t)json_array_size(list), "have", " items", err);
}

static int check_map(const struct rest_field *f, const json_t *map, struct err *err)
{
    const char *key;
    json_t *item;

    json_object_foreach((json_t *)(uintptr_t)map, key, item)
    {
        int code = json_is_string(item) ? check_nul(f, json_text(item), err) : wrong_type(f, err);
        if (code < 0)
            return code;
    }
    return check_limits(f, (int64_t)json_object_size(map), "have", " members", err);
}

static int read_from_json(struct rest_value *v, const json_t *json, struct err *err);

/* Checks the members of an object that is a value itself. */
static int check_object(const struct rest_field *f, const json_t *object, struct err *err)
{
    int code = json_is_object(object) ? 0 : wrong_type(f, err);

    for (const struct rest_field *m = f->members; m && m->name && code == 0; m++) {
        const json_t *json = json_object_get(object, m->name);
        if (json && !json_is_null(json))
            code = read_from_json(&(struct rest_value){.field = m}, json, err);
        else if (m->required)
            code = err_set(err, ERR_INVALID, "%s.%s is required", f->name, m->name);
    }
    return code;
}

static int check_objects(const struct rest_field *f, const json_t *list, struct err *err)
{
    int code = check_limits(f, (int64_t)json_array_size(list), "have", " items", err);

    for (size_t i = 0; code == 0 && i < json_array_size(list); i++)
        code = check_object(f, json_array_get(list, i), err);
    return code;
}

static int read_from_json(struct rest_value *v, const json_t *json, struct err *err)
{
    v->given = true;
    v->json = json;
    switch (v->field->type) {
    case REST_STRING:
    case REST_TIME:
        return json_is_string(json) ? set_text(v, json_text(json), err) : wrong_type(v->field, err);
    case REST_INTEGER:
        return json_is_integer(json) ? set_integer(v, json_integer_value(json), err)
                                     : wrong_type(v->field, err);
    case REST_NUMBER:
        return json_is_number(json) ? set_number(v, json_number_value(json), err)
                                    : wrong_type(v->field, err);
    case REST_BOOLEAN:
        v->truth = json_is_true(json);
        return json_is_boolean(json) ? 0 : wrong_type(v->field, err);
    case REST_STRINGS:
        return json_is_array(json) ? check_strings(v->field, json, err) : wrong_type(v->field, err);
    case REST_MAP:
        return json_is_object(json) ? check_map(v->field, json, err) : wrong_type(v->field, err);
    case REST_OBJECT:
        return check_object(v->field, json, err);
    case REST_OBJECTS:
        return json_is_array(json) ? check_objects(v->field, json, err) : wrong_type(v->field, err);
    case REST_ANY:
        return 0;
    }
    BUG_ON(true);
}

static int unknown_member(const struct rest_row *row, const char *name, struct err *err)
{
    struct nearest nearest = NEAREST_INIT(str_z(name));

    for (const struct rest_field *f = row->body; f->name; f++)
        nearest_offer(&nearest, f->name);
    return nearest.best ? err_set(err, ERR_INVALID,
                                  "this call takes no member \"%.64s\"; did you mean "
                                  "\"%s\"?",
                                  name, nearest.best)
                        : err_set(err, ERR_INVALID, "this call takes no member \"%.64s\"", name);
}

static int read_members(struct rest_call *c, struct err *err)
{
    const char *name;
    json_t *json;

    json_object_foreach(c->body, name, json)
    {
        struct rest_value *v = rest_value_find(c, str_z(name));
        bool known = v && is_in(c->row->body, v->field);
        if (c->dialect->lenient && (!known || json_is_null(json)))
            continue;
        int code = known ? read_from_json(v, json, err) : unknown_member(c->row, name, err);
        if (code < 0)
            return code;
    }
    return 0;
}

static int read_object(struct rest_call *c, struct str text, struct err *err)
{
    if (c->dialect->lenient && text.len == 0)
        return 0;
    int code = json_read(&c->body, text, err);

    if (code == ERR_PARSE)
        return text.len ? err_wrap(err, code, "the body is not JSON")
                        : err_set(err, code, "this call needs a body, a JSON object");
    if (code == 0 && !json_is_object(c->body))
        code = err_set(err, ERR_INVALID, "the body must be a JSON object");
    return code < 0 ? code : read_members(c, err);
}

/* --- all together --- */

static void values_add(struct rest_call *c, const struct rest_field *fields)
{
    for (const struct rest_field *f = fields; f && f->name; f++)
        c->values[c->value_count++] = (struct rest_value){.field = f, .integer = f->usual};
}

static int values_init(struct rest_call *c, struct err *err)
{
    const struct rest_row *row = c->row;
    const struct rest_field *all[] = {row->in_path, row->query, row->body,
                                      row->list ? c->dialect->paging : no_fields};
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        count += field_count(all[i]);
    c->values = arena_array(c->arena, size_max(count, 1), sizeof(*c->values));
    if (!c->values)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        values_add(c, all[i]);
    return 0;
}

static int check_required(const struct rest_call *c, struct err *err)
{
    for (size_t i = 0; i < c->value_count; i++)
        if (c->values[i].field->required && !c->values[i].given)
            return err_set(err, ERR_INVALID, "%s is required", c->values[i].field->name);
    return 0;
}

static int rest_read_page(struct rest_call *c, struct err *err)
{
    const struct rest_row *row = c->row;
    const struct rest_dialect *d = c->dialect;
    int64_t most = (int64_t)(row->page_max ? row->page_max : d->page_max);
    int64_t usual = (int64_t)(row->page_usual ? row->page_usual : d->page_usual), limit = usual;
    const char *name = d->paging[PAGING_LIMIT].name;
    uint64_t skip = 0;

    if (!row->list)
        return 0;
    if (rest_given(c, name))
        limit = rest_integer(c, name);
    if (d->lenient)
        limit = limit < 1 ? usual : limit > most ? most : limit;
    if (limit < 1 || limit > most)
        return err_set(err, ERR_INVALID, "%s must be 1 to %lld", name, (long long)most);
    c->page.limit = (size_t)limit;
    c->page.after = rest_text(c, d->paging[PAGING_AFTER].name);
    if (row->by_place && c->page.after.len &&
        (str_u64(c->page.after, &skip) < 0 || skip > INT32_MAX))
        return err_set(err, ERR_INVALID, "after must be the next of another page");
    c->page.skip = skip;
    return 0;
}

int rest_read(struct rest_call *c, const struct rest_path *path, struct err *err)
{
    int code = values_init(c, err);

    if (code == 0)
        code = read_path(c, path, err);
    if (code == 0)
        code = read_query(c, err);
    if (code == 0)
        code = rest_read_page(c, err);
    if (code == 0 && arena_error(c->arena) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    return code;
}

int rest_read_body(struct rest_call *c, struct err *err)
{
    const struct rest_row *row = c->row;
    int code = 0;

    if (row->body || row->raw_body)
        code = http_request_read_all(c->req, row->raw_body ? row->raw_max : c->dialect->body_max,
                                     &c->raw, err);
    if (code == 0 && row->body)
        code = read_object(c, c->raw, err);
    return code < 0 ? code : check_required(c, err);
}

/* --- for the row's function --- */

static const struct rest_value *rest_value_of(const struct rest_call *c, const char *name,
                                              enum rest_type type)
{
    const struct rest_value *v = rest_value_find(c, str_z(name));

    BUG_ON(!v || v->field->type != type);
    return v;
}

struct str rest_text(const struct rest_call *c, const char *name)
{
    const struct rest_value *v = rest_value_find(c, str_z(name));

    BUG_ON(!v || (v->field->type != REST_STRING && v->field->type != REST_TIME));
    return v->text;
}

const char *rest_text_z(const struct rest_call *c, const char *name)
{
    return arena_z(c->arena, rest_text(c, name));
}

int64_t rest_integer(const struct rest_call *c, const char *name)
{
    return rest_value_of(c, name, REST_INTEGER)->integer;
}

double rest_number(const struct rest_call *c, const char *name, double fallback)
{
    const struct rest_value *v = rest_value_of(c, name, REST_NUMBER);

    return v->given ? v->number : fallback;
}

bool rest_bool(const struct rest_call *c, const char *name)
{
    return rest_value_of(c, name, REST_BOOLEAN)->truth;
}

const json_t *rest_strings(const struct rest_call *c, const char *name)
{
    return rest_value_of(c, name, REST_STRINGS)->json;
}

const json_t *rest_json(const struct rest_call *c, const char *name)
{
    const struct rest_value *v = rest_value_find(c, str_z(name));

    BUG_ON(!v || (v->field->type != REST_MAP && v->field->type != REST_OBJECT &&
                  v->field->type != REST_OBJECTS && v->field->type != REST_ANY));
    return v->json;
}

struct str rest_raw(const struct rest_call *c)
{
    BUG_ON(!c->row->raw_body);
    return c->raw;
}

bool rest_given(const struct rest_call *c, const char *name)
{
    const struct rest_value *v = rest_value_find(c, str_z(name));

    BUG_ON(!v);
    return v->given;
}
