/* Parses YAML into a small tree. */
#include "lake/action_yaml.h"
#include "lake/action_file.h"

#include <yaml.h>

struct yaml_reader {
    yaml_parser_t parser;
    struct arena *arena;
    size_t nodes;
    struct err *err;
};

static int yaml_fail(struct yaml_reader *r, size_t line, const char *what)
{
    return err_set(r->err, ERR_INVALID, "line %zu: %s", line, what);
}

static int yaml_next(struct yaml_reader *r, yaml_event_t *e)
{
    if (yaml_parser_parse(&r->parser, e))
        return 0;
    return yaml_fail(r, r->parser.problem_mark.line + 1,
                     r->parser.problem ? r->parser.problem : "the text is not YAML");
}

static struct action_node *yaml_node(struct yaml_reader *r, const yaml_event_t *e)
{
    struct action_node *n =
        r->nodes++ < ACTION_NODES_MAX ? arena_new(r->arena, struct action_node) : NULL;

    if (n)
        n->line = e->start_mark.line + 1;
    return n;
}

static int yaml_value(struct yaml_reader *r, const yaml_event_t *e, unsigned depth,
                      struct action_node **out);

/* Reads the items of a list until its end. */
static int yaml_list(struct yaml_reader *r, struct action_node *list, unsigned depth)
{
    struct action_node **to = &list->first;
    int code = 0;

    while (code == 0) {
        yaml_event_t e;
        code = yaml_next(r, &e);
        if (code < 0)
            break;
        bool is_end = e.type == YAML_SEQUENCE_END_EVENT;
        if (!is_end)
            code = yaml_value(r, &e, depth, to);
        yaml_event_delete(&e);
        if (is_end)
            break;
        if (code == 0)
            to = &(*to)->next;
    }
    return code;
}

/* Reads the key of the next member. Sets *is_end when the map ends instead. */
static int yaml_key(struct yaml_reader *r, const struct action_node *map, struct str *key,
                    size_t *line, bool *is_end)
{
    yaml_event_t e;
    int code = yaml_next(r, &e);

    if (code < 0)
        return code;
    *is_end = e.type == YAML_MAPPING_END_EVENT;
    *line = e.start_mark.line + 1;
    if (!*is_end && e.type != YAML_SCALAR_EVENT)
        code = yaml_fail(r, *line, "a key must be a word");
    if (!*is_end && code == 0) {
        *key = arena_str(r->arena, str_n(e.data.scalar.value, e.data.scalar.length));
        for (const struct action_node *n = map->first; n && code == 0; n = n->next)
            if (str_eq(n->key, *key))
                code = yaml_fail(r, *line, "the key is there twice");
    }
    yaml_event_delete(&e);
    return code;
}

static int yaml_map(struct yaml_reader *r, struct action_node *map, unsigned depth)
{
    struct action_node **to = &map->first;

    for (;;) {
        struct str key = STR_EMPTY;
        bool is_end = false;
        size_t line = 0;
        yaml_event_t e;
        int code = yaml_key(r, map, &key, &line, &is_end);
        if (code < 0 || is_end)
            return code;
        code = yaml_next(r, &e);
        if (code < 0)
            return code;
        code = yaml_value(r, &e, depth, to);
        yaml_event_delete(&e);
        if (code < 0)
            return code;
        (*to)->key = key;
        to = &(*to)->next;
    }
}

static bool yaml_has_anchor(const yaml_event_t *e)
{
    return e->type == YAML_ALIAS_EVENT || (e->type == YAML_SCALAR_EVENT && e->data.scalar.anchor) ||
           (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.anchor) ||
           (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.anchor);
}

static int yaml_value(struct yaml_reader *r, const yaml_event_t *e, unsigned depth,
                      struct action_node **out)
{
    size_t line = e->start_mark.line + 1;

    if (yaml_has_anchor(e))
        return yaml_fail(r, line, "anchors and aliases are not allowed");
    if (depth == 0)
        return yaml_fail(r, line, "the text is nested too deeply");
    *out = yaml_node(r, e);
    if (!*out)
        return yaml_fail(r, line, "the file has too many values");
    if (e->type == YAML_SCALAR_EVENT) {
        (*out)->text = arena_str(r->arena, str_n(e->data.scalar.value, e->data.scalar.length));
        return 0;
    }
    (*out)->kind = e->type == YAML_MAPPING_START_EVENT ? ACTION_MAP : ACTION_LIST;
    return (*out)->kind == ACTION_MAP ? yaml_map(r, *out, depth - 1)
                                      : yaml_list(r, *out, depth - 1);
}

/* Skips the parser's events before the first value. */
static int yaml_begin(struct yaml_reader *r, yaml_event_t *e)
{
    for (;;) {
        int code = yaml_next(r, e);
        if (code < 0)
            return code;
        if (e->type == YAML_STREAM_END_EVENT || e->type == YAML_DOCUMENT_END_EVENT) {
            yaml_event_delete(e);
            return yaml_fail(r, 1, "the file is empty");
        }
        if (e->type != YAML_STREAM_START_EVENT && e->type != YAML_DOCUMENT_START_EVENT)
            return 0;
        yaml_event_delete(e);
    }
}

/* Checks that nothing follows the document. */
static int yaml_finish(struct yaml_reader *r)
{
    yaml_event_t e;
    int code = yaml_next(r, &e); /* the end of the document */

    if (code < 0)
        return code;
    yaml_event_delete(&e);
    code = yaml_next(r, &e);
    if (code < 0)
        return code;
    if (e.type != YAML_STREAM_END_EVENT)
        code = yaml_fail(r, e.start_mark.line + 1, "a file has one document");
    yaml_event_delete(&e);
    return code;
}

int action_yaml_read(struct action_node **out, struct arena *a, struct str text, struct err *err)
{
    struct yaml_reader r = {.arena = a, .err = err};
    yaml_event_t e;

    if (text.len == 0 || text.len > ACTION_BYTES_MAX)
        return err_set(err, ERR_INVALID, "an action file has 1 to %d bytes", ACTION_BYTES_MAX);
    if (!yaml_parser_initialize(&r.parser))
        return err_code(err, ERR_NO_MEMORY);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text.p, text.len);
    int code = yaml_begin(&r, &e);
    if (code == 0) {
        code = yaml_value(&r, &e, ACTION_DEPTH_MAX, out);
        yaml_event_delete(&e);
    }
    if (code == 0)
        code = yaml_finish(&r);
    yaml_parser_delete(&r.parser);
    return code < 0 ? code : arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

const struct action_node *action_yaml_member(const struct action_node *map, const char *key)
{
    for (const struct action_node *n = map->first; n; n = n->next)
        if (str_eq(n->key, str_z(key)))
            return n;
    return NULL;
}
