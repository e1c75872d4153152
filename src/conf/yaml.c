/* Reads the YAML file and passes each value with its dotted name to a function. Only the YAML that
 * a configuration needs is accepted: one document of nested maps with scalars. YAML that two
 * programs could understand differently is refused. */
#include "conf/conf_int.h"

#include <yaml.h>

enum { MAX_GROUPS = 4096 };

struct level {
    size_t name_len; /* length of the dotted name of this map */
};

struct walk {
    const char *file;
    struct conf_problems *problems;
    conf_yaml_fn *fn;
    void *ctx;
    yaml_parser_t parser;
    struct buf name; /* dotted name of the map or value that is being read */
    struct level levels[CONF_MAX_DEPTH];
    size_t depth;
    bool have_key; /* a key was read, its value comes next */
    struct arena arena;
    struct str groups[MAX_GROUPS]; /* names of the maps seen so far, in the arena */
    size_t group_count;
    size_t documents;
    bool done, failed;
};

typedef void event_fn(struct walk *w, const yaml_event_t *e);
static event_fn on_nothing, on_document, on_alias, on_scalar, on_list, on_map, on_map_end, walk_end;

static event_fn *const handlers[] = {
    [YAML_NO_EVENT] = on_nothing,           [YAML_STREAM_START_EVENT] = on_nothing,
    [YAML_STREAM_END_EVENT] = walk_end,     [YAML_DOCUMENT_START_EVENT] = on_document,
    [YAML_DOCUMENT_END_EVENT] = on_nothing, [YAML_ALIAS_EVENT] = on_alias,
    [YAML_SCALAR_EVENT] = on_scalar,        [YAML_SEQUENCE_START_EVENT] = on_list,
    [YAML_SEQUENCE_END_EVENT] = on_nothing, [YAML_MAPPING_START_EVENT] = on_map,
    [YAML_MAPPING_END_EVENT] = on_map_end,
};

/* Reports a problem after which the file cannot be read any further. */
static void walk_refuse(struct walk *w, size_t line, const char *what)
{
    conf_problem(w->problems, "%s:%zu: %s", w->file, line, what);
    w->failed = true;
}

static void on_parser_error(struct walk *w)
{
    const yaml_parser_t *p = &w->parser;
    const char *what = p->problem ? p->problem : "cannot be read";

    conf_problem(w->problems, "%s:%zu: not valid YAML: %s", w->file, p->problem_mark.line + 1,
                 what);
    w->failed = true;
}

void conf_yaml_walk(const char *file, struct str text, struct conf_problems *problems,
                    conf_yaml_fn *fn, void *ctx)
{
    struct walk w = {.file = file, .problems = problems, .fn = fn, .ctx = ctx};

    buf_init(&w.name, 4096);
    arena_init(&w.arena, MIB);
    BUG_ON(!yaml_parser_initialize(&w.parser));
    yaml_parser_set_encoding(&w.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&w.parser, (const unsigned char *)(text.p ? text.p : ""),
                                 text.len);
    while (!w.done && !w.failed && !conf_problems_full(problems)) {
        yaml_event_t event;
        if (!yaml_parser_parse(&w.parser, &event)) {
            on_parser_error(&w);
            break;
        }
        handlers[event.type](&w, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&w.parser);
    buf_release(&w.name);
    arena_release(&w.arena);
}

static size_t event_line(const yaml_event_t *e)
{
    return e->start_mark.line + 1;
}

static void on_nothing(struct walk *w, const yaml_event_t *e)
{
}

static void walk_end(struct walk *w, const yaml_event_t *e)
{
    w->done = true;
}

static void on_document(struct walk *w, const yaml_event_t *e)
{
    if (w->documents++ > 0)
        walk_refuse(w, event_line(e), "a second document; only one is allowed");
}

static void on_alias(struct walk *w, const yaml_event_t *e)
{
    walk_refuse(w, event_line(e), "aliases (*name) are not allowed");
}

static void on_list(struct walk *w, const yaml_event_t *e)
{
    walk_refuse(w, event_line(e), "lists are not allowed; no key takes one");
}

static bool refuse_marks(struct walk *w, const yaml_event_t *e, const yaml_char_t *anchor,
                         const yaml_char_t *tag)
{
    if (anchor)
        walk_refuse(w, event_line(e), "anchors (&name) are not allowed");
    else if (tag)
        walk_refuse(w, event_line(e), "tags (!name) are not allowed");
    return anchor || tag;
}

/* Shortens `name` to the name of the innermost open map. The next scalar is a key of that map. */
static void back_to_map(struct walk *w)
{
    w->name.len = w->depth ? w->levels[w->depth - 1].name_len : 0;
    w->have_key = false;
}

static void on_key(struct walk *w, const yaml_event_t *e)
{
    if (w->name.len)
        buf_append_char(&w->name, '.');
    buf_append(&w->name, e->data.scalar.value, e->data.scalar.length);
    w->have_key = true;
    if (buf_error(&w->name) < 0)
        walk_refuse(w, event_line(e), "the name of a key is too long");
}

/* Whether the value is missing, ~ or null. A quoted "" is not null but the empty text. */
static bool is_null(const yaml_event_t *e)
{
    struct str value = str_n(e->data.scalar.value, e->data.scalar.length);
    return e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (value.len == 0 || str_eq(value, STR("~")) || str_ieq(value, STR("null")));
}

static void on_scalar(struct walk *w, const yaml_event_t *e)
{
    if (refuse_marks(w, e, e->data.scalar.anchor, e->data.scalar.tag))
        return;
    if (w->depth == 0) {
        if (!is_null(e))
            walk_refuse(w, event_line(e), "expected keys with values (key: value)");
        return;
    }
    if (!w->have_key) {
        on_key(w, e);
        return;
    }
    if (is_null(e)) {
        struct buf name = BUF_INIT(1024);
        conf_quote(&name, buf_str(&w->name));
        conf_problem(w->problems, "%s:%zu: %s has no value; leave the line out for the default",
                     w->file, event_line(e), name.p);
        buf_release(&name);
    } else {
        w->fn(w->ctx, event_line(e), buf_str(&w->name),
              str_n(e->data.scalar.value, e->data.scalar.length));
    }
    back_to_map(w);
}

static bool group_is_new(struct walk *w)
{
    struct str name = buf_str(&w->name);

    for (size_t i = 0; i < w->group_count; i++)
        if (str_eq(w->groups[i], name))
            return false;
    if (w->group_count == MAX_GROUPS)
        return false;
    w->groups[w->group_count++] = arena_str(&w->arena, name);
    return true;
}

static void on_map(struct walk *w, const yaml_event_t *e)
{
    if (refuse_marks(w, e, e->data.mapping_start.anchor, e->data.mapping_start.tag))
        return;
    if (w->depth > 0 && !w->have_key) {
        walk_refuse(w, event_line(e), "a map cannot be a key");
        return;
    }
    if (w->depth == CONF_MAX_DEPTH) {
        walk_refuse(w, event_line(e), "nested too deep");
        return;
    }
    if (w->depth > 0 && !group_is_new(w)) {
        walk_refuse(w, event_line(e), "the same group of keys is given twice");
        return;
    }
    w->levels[w->depth++].name_len = w->name.len;
    w->have_key = false;
}

static void on_map_end(struct walk *w, const yaml_event_t *e)
{
    w->depth--;
    back_to_map(w);
}
