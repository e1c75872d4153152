/* Writes the OpenAPI document: the paths with their operations, and the parts that they refer to.
 * openapi_schema.c writes the schemas. */
#include "rest/openapi.h"
#include "rest/rest_int.h"

#include <stdio.h>

enum { ID_MAX = 256 };

static const char about[] =
    "The calls by which weir is managed. docs/management.md of weir describes the rules that hold "
    "for all of them.\n\n"
    "A request may have only the members and query parameters that are described here. A query "
    "parameter with an empty value counts as absent. Every call that changes something needs the "
    "header `Content-Type: application/json`, also when it has no body. Each GET also serves HEAD. "
    "`maxLength` limits the bytes of a text in UTF-8, and not its characters.\n\n"
    "The API port also serves the API of lakeFS, which is not part of this document.";

static void member_z(struct json_out *w, const char *name, const char *text)
{
    json_out_member_str(w, name, str_z(text));
}

static void open_member(struct json_out *w, const char *name, char brace)
{
    json_out_key(w, name);
    json_out_open(w, brace);
}

/* --- rows --- */

const struct rest_field *rest_paging(void)
{
    return rest_own.paging;
}

struct str rest_next_parameter(struct str *path)
{
    struct str before, name;

    str_cut(*path, '{', &before, path);
    str_cut(*path, '}', &name, path);
    return str_ends(name, STR("...")) ? str_head(name, name.len - 3) : name;
}

const struct rest_field *rest_path_field(const struct rest_row *row, struct str name)
{
    for (const struct rest_field *f = row->in_path; f && f->name; f++)
        if (str_eq(str_z(f->name), name))
            return f;
    return NULL;
}

const char *rest_who(const struct rest_row *row)
{
    static const char *const words[] = {
        [REST_NOT_SAID] = "admin", [REST_ADMIN] = "admin", [REST_ANYONE] = "anyone",
        [REST_TOKEN] = "token",    [REST_USER] = "user",
    };

    return words[row->access];
}

static char to_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || (to_upper(c) >= 'A' && to_upper(c) <= 'Z');
}

void rest_operation_id(struct buf *out, const struct rest_row *row)
{
    struct str own = STR("/api/v1/"), path = str_z(row->path);
    bool begins = true;

    for (const char *c = http_method_name(row->method); *c; c++)
        buf_append_char(out, to_lower(*c));
    if (str_starts(path, own))
        path = str_skip(path, own.len - 1);
    for (size_t i = 0; i < path.len; i++) {
        char c = path.p[i];
        if (c == '{')
            buf_append_z(out, "By");
        if (is_letter_or_digit(c))
            buf_append_char(out, begins ? to_upper(c) : c);
        begins = !is_letter_or_digit(c);
    }
}

/* --- the parts of an operation --- */

/* Writes {"$ref": "#/components/schemas/<id><what>"}. */
static void ref_text(struct buf *out, const struct rest_row *row, const char *what)
{
    buf_append_z(out, "{\"$ref\":\"#/components/schemas/");
    rest_operation_id(out, row);
    buf_appendf(out, "%s\"}", what);
}

static void write_ref(struct json_out *w, const struct rest_row *row, const char *what)
{
    struct buf ref = BUF_INIT(ID_MAX);

    ref_text(&ref, row, what);
    json_out_raw(w, buf_str(&ref));
    buf_release(&ref);
}

static void write_parameter(struct json_out *w, const struct rest_field *f, const char *in)
{
    bool in_path = strcmp(in, "path") == 0;

    json_out_open(w, '{');
    member_z(w, "name", f->name);
    member_z(w, "in", in);
    member_z(w, "description", f->doc);
    if (in_path || f->required)
        json_out_member_bool(w, "required", true);
    json_out_key(w, "schema");
    rest_schema(w, f, REST_REQUEST);
    json_out_close(w, '}');
}

static void write_path_parameters(struct json_out *w, const struct rest_row *row)
{
    struct str path = str_z(row->path), name;

    while ((name = rest_next_parameter(&path)).len) {
        const struct rest_field *f = rest_path_field(row, name);
        BUG_ON(!f); /* the test api_rows checks that each parameter has a field */
        struct rest_field one = *f;
        if (one.type == REST_STRING && !one.min)
            one.min = 1; /* an empty segment fits no path */
        write_parameter(w, &one, "path");
    }
}

/* The parameters of a list. `limit` has the row's bounds. */
static void write_paging(struct json_out *w, const struct rest_row *row)
{
    struct rest_field limit = rest_paging()[1];

    limit.min = 1;
    limit.max = (int64_t)(row->page_max ? row->page_max : rest_own.page_max);
    limit.usual = (int64_t)(row->page_usual ? row->page_usual : rest_own.page_usual);
    write_parameter(w, &rest_paging()[0], "query");
    write_parameter(w, &limit, "query");
}

static void write_parameters(struct json_out *w, const struct rest_row *row)
{
    open_member(w, "parameters", '[');
    write_path_parameters(w, row);
    for (const struct rest_field *f = row->query; f && f->name; f++)
        write_parameter(w, f, "query");
    if (row->list)
        write_paging(w, row);
    json_out_close(w, ']');
}

/* Writes a schema for bytes that are not JSON. */
static void write_bytes(struct json_out *w, const char *media, size_t max)
{
    open_member(w, "content", '{');
    open_member(w, media, '{');
    open_member(w, "schema", '{');
    member_z(w, "type", "string");
    if (!str_starts(str_z(media), STR("text/")))
        member_z(w, "format", "binary");
    if (max)
        json_out_member_u64(w, "maxLength", max);
    json_out_close(w, '}');
    json_out_close(w, '}');
    json_out_close(w, '}');
}

static void write_json(struct json_out *w, const struct rest_row *row, const char *what)
{
    open_member(w, "content", '{');
    open_member(w, "application/json", '{');
    json_out_key(w, "schema");
    write_ref(w, row, what);
    json_out_close(w, '}');
    json_out_close(w, '}');
}

static void write_body(struct json_out *w, const struct rest_row *row)
{
    const char *bytes = row->raw_body ? row->raw_body : row->stream_body;

    if (!row->body && !bytes)
        return;
    open_member(w, "requestBody", '{');
    if (bytes)
        member_z(w, "description", bytes);
    json_out_member_bool(w, "required", true);
    if (row->body)
        write_json(w, row, "Request");
    else
        write_bytes(w, "*/*", row->raw_max);
    json_out_close(w, '}');
}

/* --- answers --- */

static bool has_body(const struct rest_row *row)
{
    return row->answer || row->list || row->media;
}

static void write_success(struct json_out *w, const struct rest_row *row, int status)
{
    char name[16];

    snprintf(name, sizeof(name), "%d", status);
    open_member(w, name, '{');
    member_z(w, "description", has_body(row) ? "The answer." : "The call succeeded.");
    if (row->media)
        write_bytes(w, row->media, 0);
    else if (has_body(row))
        write_json(w, row, "Answer");
    json_out_close(w, '}');
}

static void write_answers(struct json_out *w, const struct rest_row *row)
{
    open_member(w, "responses", '{');
    write_success(w, row, row->status ? row->status : 200);
    if (row->other_status)
        write_success(w, row, row->other_status);
    json_out_key(w, "default");
    json_out_raw(w, STR("{\"$ref\":\"#/components/responses/Error\"}"));
    json_out_close(w, '}');
}

/* How the caller shows who it is. Calls for anyone take an administrator's keys too, because some
 * of them tell administrators more. */
static void write_security(struct json_out *w, const struct rest_row *row)
{
    static const char *const ways[] = {
        [REST_NOT_SAID] = "[{\"keys\":[]}]",
        [REST_ADMIN] = "[{\"keys\":[]}]",
        [REST_ANYONE] = "[{},{\"keys\":[]}]",
        [REST_TOKEN] = "[{\"token\":[]},{\"tokenAsPassword\":[]},{\"tokenInQuery\":[]}]",
        [REST_USER] = "[{\"keys\":[]}]",
    };

    json_out_key(w, "security");
    json_out_raw(w, str_z(ways[row->access]));
}

/* --- operations --- */

/* Returns the first sentence of a text. */
static struct str first_sentence(const char *doc)
{
    ptrdiff_t end = str_find(str_z(doc), STR(". "));

    return end < 0 ? str_z(doc) : str_n(doc, (size_t)end + 1);
}

static void write_operation(struct json_out *w, const struct rest_group *group,
                            const struct rest_row *row)
{
    struct buf id = BUF_INIT(ID_MAX), verb = BUF_INIT(16);

    rest_operation_id(&id, row);
    for (const char *c = http_method_name(row->method); *c; c++)
        buf_append_char(&verb, to_lower(*c));
    open_member(w, verb.p, '{');
    json_out_member_str(w, "operationId", buf_str(&id));
    open_member(w, "tags", '[');
    json_out_str(w, str_z(group->name));
    json_out_close(w, ']');
    json_out_member_str(w, "summary", first_sentence(row->doc));
    member_z(w, "description", row->doc);
    member_z(w, "x-weir-who", rest_who(row));
    write_security(w, row);
    write_parameters(w, row);
    write_body(w, row);
    write_answers(w, row);
    json_out_close(w, '}');
    buf_release(&verb);
    buf_release(&id);
}

/* The rows of a document, in the order of their groups and tables. */
struct rows {
    const struct rest_group *groups;
    size_t count;
};

/* A place among the rows; {0} is before the first one. */
struct rows_place {
    const struct rest_group *group; /* NULL: before the first */
    const struct rest_table *const *table;
    const struct rest_row *row;
};

/* Moves to the next row of weir's own. Returns false at the end. */
static bool next_row(const struct rows *rows, struct rows_place *p)
{
    const struct rest_group *end = rows->groups + rows->count;

    if (!p->group) {
        p->group = rows->groups;
        p->table = NULL;
    }
    for (; p->group < end; p->group++, p->table = NULL) {
        if (!p->table) {
            p->table = p->group->tables;
            p->row = NULL;
        }
        for (; p->table && *p->table; p->table++, p->row = NULL) {
            const struct rest_table *t = *p->table;
            p->row = p->row ? p->row + 1 : t->rows;
            if (!t->dialect && p->row < t->rows + t->count)
                return true;
        }
    }
    return false;
}

/* Whether a row before this one has the same path. */
static bool is_path_written(const struct rows *rows, const struct rest_row *row)
{
    struct rows_place p = {0};

    while (next_row(rows, &p) && p.row != row)
        if (strcmp(p.row->path, row->path) == 0)
            return true;
    return false;
}

static void write_paths(struct json_out *w, const struct rows *rows)
{
    struct rows_place p = {0};

    open_member(w, "paths", '{');
    while (next_row(rows, &p)) {
        struct rows_place same = p;
        if (is_path_written(rows, p.row))
            continue;
        open_member(w, p.row->path, '{');
        do {
            if (strcmp(same.row->path, p.row->path) == 0)
                write_operation(w, same.group, same.row);
        } while (next_row(rows, &same));
        json_out_close(w, '}');
    }
    json_out_close(w, '}');
}

/* --- components --- */

static void open_schema(struct json_out *w, const struct rest_row *row, const char *what)
{
    struct buf name = BUF_INIT(ID_MAX);

    rest_operation_id(&name, row);
    buf_append_z(&name, what);
    json_out_key_str(w, buf_str(&name));
    buf_release(&name);
}

static void write_row_schemas(struct json_out *w, const struct rest_row *row)
{
    struct buf items = BUF_INIT(ID_MAX);

    if (row->body) {
        open_schema(w, row, "Request");
        rest_object_schema(w, row->body, NULL, STR_EMPTY, REST_REQUEST);
    }
    if (row->items) {
        open_schema(w, row, "Item");
        rest_object_schema(w, row->items, NULL, STR_EMPTY, REST_ANSWER);
        ref_text(&items, row, "Item");
    }
    if (row->answer || row->list) {
        open_schema(w, row, "Answer");
        rest_object_schema(w, row->answer, row->list, buf_str(&items), REST_ANSWER);
    }
    buf_release(&items);
}

static const struct rest_field error_members[] = {
    {"error", "What went wrong.", REST_OBJECT,
     .members = REST_FIELDS({"code", "A word for programs, such as not_found."},
                            {"message", "A sentence for people."},
                            {"request_id", "The id of the request, which the log has too."})},
    {0},
};

static void write_components(struct json_out *w, const struct rows *rows)
{
    struct rows_place p = {0};

    open_member(w, "components", '{');
    json_out_key(w, "securitySchemes");
    json_out_raw(w, STR("{\"keys\":{\"type\":\"http\",\"scheme\":\"basic\",\"description\":"
                        "\"The access key and the secret key of an administrator.\"},"
                        "\"token\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":"
                        "\"A token that only this call takes.\"},"
                        "\"tokenAsPassword\":{\"type\":\"http\",\"scheme\":\"basic\","
                        "\"description\":\"The same token as the password; the name does not "
                        "matter.\"},"
                        "\"tokenInQuery\":{\"type\":\"apiKey\",\"in\":\"query\",\"name\":"
                        "\"token\",\"description\":\"The same token in the query.\"}}"));
    json_out_key(w, "responses");
    json_out_raw(w, STR("{\"Error\":{\"description\":\"The call failed.\",\"content\":"
                        "{\"application/json\":{\"schema\":"
                        "{\"$ref\":\"#/components/schemas/Error\"}}}}}"));
    open_member(w, "schemas", '{');
    json_out_key(w, "Error");
    rest_object_schema(w, error_members, NULL, STR_EMPTY, REST_ANSWER);
    while (next_row(rows, &p))
        write_row_schemas(w, p.row);
    json_out_close(w, '}');
    json_out_close(w, '}');
}

/* --- the document --- */

static bool has_own_rows(const struct rest_group *group)
{
    struct rows rows = {group, 1};
    struct rows_place p = {0};

    return next_row(&rows, &p);
}

static void write_tags(struct json_out *w, const struct rows *rows)
{
    open_member(w, "tags", '[');
    for (size_t i = 0; i < rows->count; i++) {
        if (!has_own_rows(&rows->groups[i]))
            continue;
        json_out_open(w, '{');
        member_z(w, "name", rows->groups[i].name);
        if (rows->groups[i].doc)
            member_z(w, "description", rows->groups[i].doc);
        json_out_close(w, '}');
    }
    json_out_close(w, ']');
}

void rest_openapi(struct buf *out, const struct rest_group *groups, size_t count)
{
    struct rows rows = {groups, count};
    struct json_out w;

    json_out_init(&w, out);
    json_out_open(&w, '{');
    member_z(&w, "openapi", "3.0.3");
    open_member(&w, "info", '{');
    member_z(&w, "title", "weir");
    member_z(&w, "version", WEIR_VERSION);
    member_z(&w, "description", about);
    json_out_close(&w, '}');
    json_out_key(&w, "servers");
    json_out_raw(&w, STR("[{\"url\":\"/\"}]"));
    write_tags(&w, &rows);
    write_paths(&w, &rows);
    write_components(&w, &rows);
    json_out_close(&w, '}');
    buf_append_char(out, '\n');
}
