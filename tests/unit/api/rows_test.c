/* The table of routes as a whole: every row says all that a description of the API needs. */
#include "api/api_int.h"
#include "archive/room.h"
#include "replica/room.h"
#include "shard/room.h"
#include "swarm/room.h"
#include "unit/api/api_lab.h"

static void complain_of(const struct rest_row *row, const char *what, const char *name)
{
    test_fail(__FILE__, __LINE__, "%s %s: %s %s", http_method_name(row->method), row->path, what,
              name);
}

static bool is_sentence(const char *doc)
{
    struct str text = str_z(doc);

    return text.len > 1 && (str_ends(text, STR(".")) || str_ends(text, STR("?")));
}

static void check_fields(const struct rest_row *row, const struct rest_field *fields)
{
    for (const struct rest_field *f = fields; f && f->name; f++) {
        if (!is_sentence(f->doc))
            complain_of(row, "no sentence about", f->name);
        if (f->max < f->min && f->max != 0)
            complain_of(row, "wrong limits of", f->name);
        if (f->choices && f->type != REST_STRING)
            complain_of(row, "choices, but no string:", f->name);
        for (const struct rest_field *g = fields; g < f; g++)
            if (strcmp(f->name, g->name) == 0)
                complain_of(row, "twice:", f->name);
        check_fields(row, f->members);
    }
}

/* One name means one value of a call, wherever it comes from. */
static void check_apart(const struct rest_row *row, const struct rest_field *some,
                        const struct rest_field *others)
{
    for (const struct rest_field *f = some; f && f->name; f++)
        for (const struct rest_field *g = others; g && g->name; g++)
            if (strcmp(f->name, g->name) == 0)
                complain_of(row, "in two places:", f->name);
}

/* Where a value of a request stands, as bits. */
enum { IN_PATH = 1, IN_QUERY = 2, IN_BODY = 4, ANYWHERE = 7 };

static const unsigned places[] = {
    [REST_STRING] = ANYWHERE,  [REST_INTEGER] = ANYWHERE,
    [REST_BOOLEAN] = ANYWHERE, [REST_STRINGS] = IN_QUERY | IN_BODY,
    [REST_NUMBER] = IN_BODY,   [REST_TIME] = IN_BODY,
    [REST_OBJECT] = IN_BODY,   [REST_OBJECTS] = IN_BODY,
    [REST_MAP] = IN_BODY,      [REST_ANY] = IN_BODY,
    [REST_DURATION] = IN_BODY,
};

static void check_types(const struct rest_row *row, const struct rest_field *fields, unsigned place)
{
    for (const struct rest_field *f = fields; f && f->name; f++) {
        if (!(places[f->type] & place))
            complain_of(row, "a request cannot have the type of", f->name);
        if (f->sometimes || f->nullable)
            complain_of(row, "of answers alone:", f->name);
    }
}

static void check_path(const struct rest_row *row)
{
    const struct rest_field *f = row->in_path;
    struct str rest = str_z(row->path), before, name;

    while (f && str_cut(rest, '{', &before, &rest)) {
        str_cut(rest, '}', &name, &rest);
        if (str_ends(name, STR("...")))
            name.len -= 3;
        if (!f->name || !str_eq(name, str_z(f->name)))
            complain_of(row, "not in the order of the path:", f->name ? f->name : "nothing");
        else
            f++;
    }
    if (f && f->name)
        complain_of(row, "not in the path:", f->name);
}

static void check_answer(const struct rest_row *row)
{
    bool empty = row->status == 204;

    if (empty != !(row->answer || row->list || row->media))
        complain_of(row, "an answer is not described, or 204 with", "one");
    if (row->media && (row->answer || row->list))
        complain_of(row, "JSON and", row->media);
    if (!row->list != !row->items)
        complain_of(row, "list and items belong together:", row->list ? row->list : "");
    if (!row->list && (row->by_place || row->by_source || row->page_usual || row->page_max))
        complain_of(row, "pages without", "a list");
    check_fields(row, row->answer);
    check_fields(row, row->items);
}

/* Of weir's own calls, those below /api and no others are for administrators. A dialect checks its
 * callers itself. */
static void check_access(const struct rest_row *row, const struct rest_dialect *dialect)
{
    bool below = str_starts(str_z(row->path), STR("/api"));

    if (dialect ? row->access != REST_USER && row->access != REST_ANYONE
                : (row->access == REST_ADMIN) != below)
        complain_of(row, "what is under /api is for", "administrators or a dialect");
}

/* The places, as bits, that can hold a value of each type. A text with choices may also lie in an
 * enum. */
static const unsigned fitting[] = {
    [REST_STRING] = 1u << REST_AT_STR | 1u << REST_AT_Z | 1u << REST_AT_CHARS,
    [REST_INTEGER] = 1u << REST_AT_INT | 1u << REST_AT_UNSIGNED | 1u << REST_AT_I64 |
                     1u << REST_AT_U64 | 1u << REST_AT_KNOWN,
    [REST_NUMBER] = 1u << REST_AT_F64,
    [REST_BOOLEAN] = 1u << REST_AT_BOOL | 1u << REST_AT_KNOWN,
    [REST_TIME] = 1u << REST_AT_I64 | 1u << REST_AT_KNOWN,
    [REST_DURATION] = 1u << REST_AT_U64 | 1u << REST_AT_I64 | 1u << REST_AT_KNOWN,
    [REST_STRINGS] = 1u << REST_AT_ITEMS,
    [REST_OBJECT] = 1u << REST_AT_INSIDE | 1u << REST_AT_POINTER,
    [REST_OBJECTS] = 1u << REST_AT_ITEMS,
    [REST_MAP] = 0,
    [REST_ANY] = 1u << REST_AT_STR,
};

static bool place_fits(const struct rest_field *f)
{
    if (f->as == REST_AT_UNSIGNED)
        return f->type == REST_STRING ? f->choices != NULL : f->type == REST_INTEGER;
    return fitting[f->type] & 1u << f->as;
}

/* The fields' places lie in a struct of that size, each field has one that can hold its type, and
 * no two have the same. */
static void check_places(const struct rest_row *row, const struct rest_field *fields, size_t size)
{
    for (const struct rest_field *f = fields; size && f && f->name; f++) {
        if (f->as == REST_NO_PLACE || f->at >= size || f->count_at >= size)
            complain_of(row, "no place in the struct:", f->name);
        else if (!place_fits(f))
            complain_of(row, "its place cannot hold the type of", f->name);
        for (const struct rest_field *g = fields; g < f; g++)
            if (f->at == g->at)
                complain_of(row, "two members have the place of", f->name);
        if (f->members && f->as != REST_AT_INSIDE)
            check_places(row, f->members, f->item_size);
        else if (f->members)
            check_places(row, f->members, size - f->at);
    }
}

/* What a request has for one member of the struct comes from one field. */
static void check_apart_in(const struct rest_row *row, const struct rest_field *some,
                           const struct rest_field *others)
{
    for (const struct rest_field *f = row->in ? some : NULL; f && f->name; f++)
        for (const struct rest_field *g = others; g && g->name; g++)
            if (f->at == g->at)
                complain_of(row, "two values have the place of", f->name);
}

/* A request does not say how any JSON value lies in a text. */
static void check_readable(const struct rest_row *row, const struct rest_field *fields)
{
    for (const struct rest_field *f = fields; row->in && f && f->name; f++) {
        if (f->type == REST_ANY || f->as == REST_AT_CHARS)
            complain_of(row, "cannot be read into a struct:", f->name);
        check_readable(row, f->members);
    }
}

static void check_row(const struct rest_row *row, const struct rest_dialect *dialect)
{
    static const struct rest_field own[] = {{"after", "Paging."}, {"limit", "Paging."}, {0}};
    const struct rest_field *paging = dialect ? dialect->paging : own;

    if (row->access == REST_NOT_SAID || !row->run || !row->doc ||
        !str_ends(str_z(row->doc), STR(".")))
        complain_of(row, "no access, function or", "sentence");
    check_access(row, dialect);
    if ((row->body || row->raw_body || row->stream_body) && (row->quick || row->method == HTTP_GET))
        complain_of(row, "no body here:", row->method == HTTP_GET ? "GET" : "quick");
    check_path(row);
    check_types(row, row->in_path, IN_PATH);
    check_types(row, row->query, IN_QUERY);
    check_types(row, row->body, IN_BODY);
    check_fields(row, row->in_path);
    check_fields(row, row->query);
    check_fields(row, row->body);
    check_apart(row, row->in_path, row->query);
    check_apart(row, row->in_path, row->body);
    check_apart(row, row->query, row->body);
    check_apart(row, row->query, row->list ? paging : NULL);
    check_places(row, row->in_path, row->in);
    check_places(row, row->query, row->in);
    check_places(row, row->body, row->in);
    check_apart_in(row, row->in_path, row->query);
    check_apart_in(row, row->in_path, row->body);
    check_apart_in(row, row->query, row->body);
    check_readable(row, row->in_path);
    check_readable(row, row->query);
    check_readable(row, row->body);
    check_places(row, row->answer, row->out);
    check_places(row, row->items, row->item);
    check_answer(row);
}

static bool same_place(const struct rest_row *a, const struct rest_row *b)
{
    struct str x = str_z(a->path), y = str_z(b->path), s, t;

    while (x.len && y.len) {
        str_cut(x, '/', &s, &x);
        str_cut(y, '/', &t, &y);
        bool parameters = str_starts(s, STR("{")) && str_starts(t, STR("{"));
        if (!parameters && !str_eq(s, t))
            return false;
    }
    return x.len == y.len && a->method == b->method;
}

/* The rows that were checked. */
struct checked {
    const struct rest_row *rows[512];
    size_t count;
};

static void check_table(struct checked *c, const struct rest_table *table)
{
    for (const struct rest_row *row = table->rows; row < table->rows + table->count; row++) {
        check_row(row, table->dialect);
        for (size_t i = 0; i < c->count; i++)
            if (same_place(c->rows[i], row))
                complain_of(row, "the same place as", c->rows[i]->path);
        CHECK(c->count < ARRAY_SIZE(c->rows));
        c->rows[c->count++] = row;
    }
}

TEST(api_rows, every_row_describes_its_call_and_no_two_rows_have_the_same_place)
{
    static const struct room *const more[] = {&archive_room, &shard_room};
    struct checked checked = {0};
    struct api_lab l;

    api_lab_start(&l);
    for (size_t i = 0; i < l.api->table_count; i++)
        check_table(&checked, &l.api->tables[i]);
    for (size_t i = 0; i < ARRAY_SIZE(more); i++)
        for (const struct rest_table *const *t = more[i]->routes; *t; t++)
            check_table(&checked, *t);
    CHECK(checked.count > 120);
    api_lab_stop(&l);
}

TEST(api_rows, the_list_of_routes_has_every_row)
{
    struct api_lab l;
    size_t rows = 0;

    api_lab_start(&l);
    for (size_t i = 0; i < l.api->table_count; i++)
        rows += l.api->tables[i].count;
    api_call(&l, "GET /api/v1", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "routes")), rows);
    api_call(&l, "GET /api/v1?limit=10&after=5", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "routes")), 10);
    CHECK_STR(api_text(&l, "next"), STR("15"));
    api_lab_stop(&l);
}
