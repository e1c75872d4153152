/* XML: expat reads it into a tree in an arena, code in this file writes it. */
#include "base/xml.h"

#include <expat.h>

/* An element whose end tag has not been read yet. */
struct open_element {
    struct xml_node *node;
    struct xml_node **end; /* where the element's next child is linked in */
    struct buf text;
};

struct reading {
    XML_Parser parser;
    struct arena *arena;
    struct err *err;
    int code; /* why a callback stopped the parser, or 0 */
    size_t depth, nodes;
    struct xml_node *root;
    struct open_element open[XML_MAX_DEPTH];
};

static void reading_stop(struct reading *r, int code, const char *why)
{
    if (r->code == 0)
        r->code = err_set(r->err, code, "line %lu: %s", XML_GetCurrentLineNumber(r->parser), why);
    XML_StopParser(r->parser, XML_FALSE);
}

static struct str without_prefix(const char *name)
{
    const char *colon = strrchr(name, ':');
    return str_z(colon ? colon + 1 : name);
}

static void add_attrs(struct reading *r, struct xml_node *node, const char **attrs)
{
    struct xml_attr **end = &node->attrs;

    for (; attrs[0]; attrs += 2) {
        struct xml_attr *attr = arena_new(r->arena, struct xml_attr);
        if (!attr)
            return;
        attr->name = arena_str(r->arena, without_prefix(attrs[0]));
        attr->value = arena_str(r->arena, str_z(attrs[1]));
        *end = attr;
        end = &attr->next;
    }
}

static void on_start(void *ctx, const char *name, const char **attrs)
{
    struct reading *r = ctx;
    struct xml_node *node;

    if (r->depth == XML_MAX_DEPTH) {
        reading_stop(r, ERR_TOO_LARGE, "XML nests too deep");
        return;
    }
    if (r->nodes++ == XML_MAX_NODES) {
        reading_stop(r, ERR_TOO_LARGE, "too many XML elements");
        return;
    }
    node = arena_new(r->arena, struct xml_node);
    if (!node) {
        reading_stop(r, ERR_NO_MEMORY, "XML needs too much memory");
        return;
    }
    node->name = arena_str(r->arena, without_prefix(name));
    add_attrs(r, node, attrs);
    if (r->depth == 0) {
        r->root = node;
    } else {
        struct open_element *parent = &r->open[r->depth - 1];
        *parent->end = node;
        parent->end = &node->next;
    }
    r->open[r->depth].node = node;
    r->open[r->depth].end = &node->children;
    buf_reset(&r->open[r->depth].text);
    r->depth++;
}

static void on_text(void *ctx, const char *text, int len)
{
    struct reading *r = ctx;
    buf_append(&r->open[r->depth - 1].text, text, (size_t)len);
}

static void element_ended(void *ctx, const char *name)
{
    struct reading *r = ctx;
    struct open_element *element = &r->open[--r->depth];

    (void)name;
    element->node->text = arena_str(r->arena, buf_str(&element->text));
    if (arena_error(r->arena) < 0)
        reading_stop(r, ERR_NO_MEMORY, "XML needs too much memory");
}

static void on_doctype(void *ctx, const char *name, const char *system_id, const char *public_id,
                       int has_subset)
{
    (void)name, (void)system_id, (void)public_id, (void)has_subset;
    reading_stop(ctx, ERR_PARSE, "a document type declaration is not allowed");
}

int xml_read(struct xml_node **out, struct arena *arena, struct str text, struct err *err)
{
    struct reading r = {.arena = arena, .err = err};

    if (text.len > XML_MAX_BYTES)
        return err_set(err, ERR_TOO_LARGE, "XML of %zu bytes, at most %d are read", text.len,
                       XML_MAX_BYTES);
    /* The text is checked here, because expat would obey a byte order mark of UTF-16 although it is
     * told below that the encoding is UTF-8. */
    if (!str_is_utf8(text) || str_chr(text, '\0') >= 0)
        return err_set(err, ERR_PARSE, "the XML is not UTF-8");
    r.parser = XML_ParserCreate("UTF-8");
    if (!r.parser)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < XML_MAX_DEPTH; i++)
        buf_init(&r.open[i].text, XML_MAX_BYTES);
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_start, element_ended);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
    if (XML_Parse(r.parser, text.p ? text.p : "", (int)text.len, XML_TRUE) != XML_STATUS_OK &&
        r.code == 0)
        r.code = err_set(
            err, ERR_PARSE, "line %lu, column %lu: %s", XML_GetCurrentLineNumber(r.parser),
            XML_GetCurrentColumnNumber(r.parser) + 1, XML_ErrorString(XML_GetErrorCode(r.parser)));
    XML_ParserFree(r.parser);
    for (size_t i = 0; i < XML_MAX_DEPTH; i++)
        buf_release(&r.open[i].text);
    if (r.code == 0)
        *out = r.root;
    return r.code;
}

static struct xml_node *first_named(struct xml_node *node, const char *name)
{
    while (node && !str_eq(node->name, str_z(name)))
        node = node->next;
    return node;
}

struct xml_node *xml_child(const struct xml_node *node, const char *name)
{
    return node ? first_named(node->children, name) : NULL;
}

struct xml_node *xml_next(const struct xml_node *node, const char *name)
{
    return node ? first_named(node->next, name) : NULL;
}

struct str xml_child_text(const struct xml_node *node, const char *name, struct str fallback)
{
    const struct xml_node *child = xml_child(node, name);
    return child ? child->text : fallback;
}

struct str xml_attr_value(const struct xml_node *node, const char *name, struct str fallback)
{
    for (const struct xml_attr *attr = node ? node->attrs : NULL; attr; attr = attr->next)
        if (str_eq(attr->name, str_z(name)))
            return attr->value;
    return fallback;
}

/* Returns the reference with which `c` must be written, or NULL when `c` is written unchanged. A
 * reader of XML would change a carriage return anywhere, and a tab or a line feed in an attribute.
 * There these characters are written as numbers. */
static const char *replacement(char c, bool in_attr)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\r':
        return "&#13;";
    case '\t':
        return in_attr ? "&#9;" : NULL;
    case '\n':
        return in_attr ? "&#10;" : NULL;
    default:
        return NULL;
    }
}

/* Writes the character at the front of `s`, which may begin with any byte, and returns the
 * character's length in `s`. */
static size_t put_character(struct buf *out, struct str s, bool in_attr)
{
    size_t n = str_utf8_len(s);
    unsigned char c = (unsigned char)s.p[0];
    const char *instead = replacement(s.p[0], in_attr);

    if (instead)
        buf_append_z(out, instead);
    else if (n == 0)
        buf_append_z(out, "\xef\xbf\xbd");
    else if (c < 0x20 && c != '\t' && c != '\n')
        buf_appendf(out, "&#x%X;", c);
    else if (str_starts(s, STR("\xef\xbf\xbe")) || str_starts(s, STR("\xef\xbf\xbf")))
        buf_appendf(out, "&#xFFF%c;", s.p[2] == '\xbe' ? 'E' : 'F');
    else
        buf_append(out, s.p, n);
    return n ? n : 1;
}

static bool plain(char c)
{
    return c >= 0x20 && c < 0x7f && c != '&' && c != '<' && c != '>' && c != '"';
}

static void put_escaped(struct buf *out, struct str s, bool in_attr)
{
    while (s.len) {
        size_t n = 0;
        while (n < s.len && plain(s.p[n]))
            n++;
        buf_append(out, s.p, n);
        s = str_skip(s, n);
        if (s.len)
            s = str_skip(s, put_character(out, s, in_attr));
    }
}

void xml_text(struct buf *out, struct str text)
{
    put_escaped(out, text, false);
}

void xml_prolog(struct buf *out)
{
    buf_append_z(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
}

void xml_open(struct buf *out, const char *name)
{
    buf_append_char(out, '<');
    buf_append_z(out, name);
    buf_append_char(out, '>');
}

void xml_open_attr(struct buf *out, const char *name, const char *attr, const char *value)
{
    buf_append_char(out, '<');
    buf_append_z(out, name);
    buf_append_char(out, ' ');
    buf_append_z(out, attr);
    buf_append_z(out, "=\"");
    put_escaped(out, str_z(value), true);
    buf_append_z(out, "\">");
}

void xml_close(struct buf *out, const char *name)
{
    buf_append_z(out, "</");
    buf_append_z(out, name);
    buf_append_char(out, '>');
}

void xml_element(struct buf *out, const char *name, struct str text)
{
    xml_open(out, name);
    xml_text(out, text);
    xml_close(out, name);
}

void xml_element_u64(struct buf *out, const char *name, uint64_t v)
{
    xml_open(out, name);
    buf_append_u64(out, v);
    xml_close(out, name);
}
