/* XML: reads a small document into a tree under limits, with expat, and writes XML directly into a
 * buf.
 *
 * Reading: a document has at most XML_MAX_BYTES bytes and XML_MAX_NODES elements, and a depth of at
 * most XML_MAX_DEPTH. A document type declaration is refused, so there are no entities that could
 * grow without limit. The text is read as UTF-8, whatever encoding the document declares. The
 * namespace prefix is removed from the names of elements and attributes, so <s3:Key> and <Key> are
 * both "Key". The tree is in the caller's arena. */
#ifndef BASE_XML_H
#define BASE_XML_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum { XML_MAX_BYTES = 8 * 1024 * 1024, XML_MAX_DEPTH = 32, XML_MAX_NODES = 100000 };

struct xml_attr {
    struct str name, value;
    struct xml_attr *next;
};

struct xml_node {
    struct str name;           /* without its prefix; empty for the name "a:" */
    struct str text;           /* all character data directly inside this element, joined */
    struct xml_attr *attrs;    /* in the order of the document */
    struct xml_node *children; /* the first child; the other children follow by `next` */
    struct xml_node *next;     /* next sibling, or NULL */
};

/* Reads a document. ERR_PARSE: the document is malformed; the text of `err` has line and column.
 * ERR_TOO_LARGE: the document is past a limit of this header. ERR_NO_MEMORY: the tree is past the
 * arena's limit. */
int xml_read(struct xml_node **out, struct arena *arena, struct str text,
             struct err *err) MUST_CHECK;

/* These functions find children, siblings and attributes by name. A NULL node has none of them.
 * xml_child returns the first child of that name, or NULL. xml_next returns the next sibling of
 * that name, or NULL. */
struct xml_node *xml_child(const struct xml_node *node, const char *name);
struct xml_node *xml_next(const struct xml_node *node, const char *name);
struct str xml_child_text(const struct xml_node *node, const char *name, struct str fallback);
struct str xml_attr_value(const struct xml_node *node, const char *name, struct str fallback);

/* These functions write XML. Text is escaped so that it reads back equal; bytes that are not UTF-8
 * become U+FFFD. Characters that XML 1.0 cannot represent are written as &#xN;, as S3 does; lenient
 * readers accept them, but xml_read() does not. Names are literals. */
void xml_prolog(struct buf *out);
void xml_open(struct buf *out, const char *name);
void xml_open_attr(struct buf *out, const char *name, const char *attr, const char *value);
void xml_close(struct buf *out, const char *name);
void xml_element(struct buf *out, const char *name, struct str text);
void xml_element_u64(struct buf *out, const char *name, uint64_t v);
void xml_text(struct buf *out, struct str text);

#endif
