/* Reads the values of a request from path, query and body. */
#include "rest/rest_int.h"

enum { QUERY_VALUE_MAX = 4096, QUERY_LIST_MAX = 1000 };

enum { PAGING_AFTER, PAGING_LIMIT }; /* indexes in a dialect's `paging` */

static const struct rest_field no_fields[] = {{0}};

static enum rest_manner manner_of(const struct rest_call *c)
{
    return c->dialect->lenient ? REST_LENIENT : REST_STRICT;
}

/* --- path and query --- */

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
    if (str_chr(text, '\0') >= 0)
        return err_set(err, ERR_INVALID, "%s must not have a NUL", v->field->name);
    if (json_array_size(list) == QUERY_LIST_MAX ||
        json_array_append_new(list, json_stringn(text.p, text.len)) < 0)
        return err_set(err, ERR_INVALID, "%s has too many values, or one that is not UTF-8",
                       v->field->name);
    return 0;
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
        code = rest_value_from_text(v, path->value[i], manner_of(c), err);
    }
    return code;
}

static bool is_in(const struct rest_field *fields, const struct rest_field *f)
{
    return fields && f >= fields && f < fields + rest_field_count(fields);
}

/* Finds the value of a query parameter. NULL: the call does not have it. */
static struct rest_value *query_value(const struct rest_call *c, struct str name)
{
    struct rest_value *v = rest_value_find(c, name);

    return v && (is_in(c->row->query, v->field) ||
                 (c->row->list && is_in(c->dialect->paging, v->field)))
               ? v
               : NULL;
}

/* Refuses a query parameter that the row does not have. Calls that anyone may make ignore it:
 * health checks and scrapers of other programs may add their own. */
static int query_unknown(const struct rest_call *c, struct str name, struct err *err)
{
    const struct rest_field *known[] = {c->row->query, c->row->list ? c->dialect->paging : NULL};

    if (c->dialect->lenient || c->row->access == REST_ANYONE)
        return 0;
    return rest_unknown(known, ARRAY_SIZE(known), "this call takes no query parameter", name, err);
}

static int query_read_value(struct rest_call *c, struct rest_value *v, struct str text,
                            struct err *err)
{
    if (text.len == 0)
        return 0;
    if (v->field->type == REST_STRINGS)
        return add_to_list(c, v, text, err);
    if (v->given && !c->dialect->lenient)
        return err_set(err, ERR_INVALID, "the query has %s twice", v->field->name);
    return rest_value_from_text(v, arena_str(c->arena, text), manner_of(c), err);
}

/* Reads the query. An empty value counts as absent. In a lenient dialect the last value counts when
 * a name comes twice. */
static int read_query(struct rest_call *c, struct err *err)
{
    struct str rest = http_request_head(c->req)->query, name, raw;
    struct buf text = BUF_INIT(QUERY_VALUE_MAX);
    int code = 0;

    while (code == 0 && url_query_next(&rest, &name, &raw)) {
        struct rest_value *v = query_value(c, name);
        if (!v) {
            code = query_unknown(c, name, err);
            continue;
        }
        buf_reset(&text);
        code = url_decode(&text, raw, true);
        if (code == 0)
            code = buf_error(&text);
        code = code < 0 ? err_set(err, c->dialect->lenient ? code : ERR_INVALID,
                                  "the value of %s in the query cannot be read, "
                                  "or is longer than %d bytes",
                                  v->field->name, QUERY_VALUE_MAX)
                        : query_read_value(c, v, buf_str(&text), err);
    }
    buf_release(&text);
    return code;
}

/* --- body --- */

static int read_object(struct rest_call *c, struct str text, struct err *err)
{
    const struct rest_field *fields = c->row->body ? c->row->body : no_fields;
    struct rest_value *values = c->values + c->value_count - rest_field_count(fields);

    if ((c->dialect->lenient || !c->row->body) && text.len == 0)
        return 0;
    int code = json_read(&c->body, text, err);

    if (code == ERR_PARSE)
        return text.len ? err_wrap(err, code, "the body is not JSON")
                        : err_set(err, code, "this call needs a body, a JSON object");
    if (code == 0 && !json_is_object(c->body))
        code = err_set(err, ERR_INVALID, "the body must be a JSON object");
    return code < 0 ? code
                    : rest_values_from_json(values, fields, c->body, "this call takes no member",
                                            manner_of(c), err);
}

/* --- all together --- */

static void values_add(struct rest_call *c, const struct rest_field *fields)
{
    for (const struct rest_field *f = fields; f && f->name; f++)
        c->values[c->value_count++] = rest_value_absent(f);
}

/* Makes a value for each field. Those of the body come last. */
static int values_init(struct rest_call *c, struct err *err)
{
    const struct rest_row *row = c->row;
    const struct rest_field *all[] = {row->in_path, row->query,
                                      row->list ? c->dialect->paging : no_fields, row->body};
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        count += rest_field_count(all[i]);
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

/* Whether the body is a JSON object. A call that takes no body may get an empty object, but nothing
 * else; a quick call does not wait for a body. */
static bool takes_object(const struct rest_call *c)
{
    const struct rest_row *row = c->row;

    return row->body || !(row->raw_body || row->stream_body || row->quick || c->dialect->lenient ||
                          row->method == HTTP_GET);
}

/* Fills the struct of rest_in(). */
static int rest_fill(struct rest_call *c, struct err *err)
{
    if (c->row->in == 0)
        return 0;
    c->in = arena_alloc(c->arena, c->row->in);
    return c->in ? rest_values_store(c->in, c->values, c->value_count, c->arena, err)
                 : err_code(err, ERR_NO_MEMORY);
}

int rest_read_body(struct rest_call *c, struct err *err)
{
    const struct rest_row *row = c->row;
    bool object = takes_object(c);
    int code = 0;

    if (object || row->raw_body)
        code = http_request_read_all(c->req, row->raw_body ? row->raw_max : c->dialect->body_max,
                                     &c->raw, err);
    if (code == 0 && object)
        code = read_object(c, c->raw, err);
    if (code == 0)
        code = check_required(c, err);
    return code < 0 ? code : rest_fill(c, err);
}

/* --- for the row's function --- */

static const struct rest_value *rest_value_of(const struct rest_call *c, const char *name,
                                              enum rest_type type)
{
    const struct rest_value *v = rest_value_find(c, str_z(name));

    BUG_ON(!v || v->field->type != type);
    return v;
}

const void *rest_in_struct(const struct rest_call *c, size_t size)
{
    BUG_ON(!c->in || size != c->row->in);
    return c->in;
}

struct str rest_text(const struct rest_call *c, const char *name)
{
    const struct rest_value *v = rest_value_find(c, str_z(name));

    BUG_ON(!v || (v->field->type != REST_STRING && v->field->type != REST_TIME &&
                  v->field->type != REST_DURATION));
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
