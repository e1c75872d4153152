/* Reading and writing S3's XML documents. The functions that read return MalformedXML for a
 * document of the wrong form, with a message that says where the document is wrong. */
#ifndef META_DOCUMENT_H
#define META_DOCUMENT_H

#include "base/xml.h"
#include "meta/error.h"

#define S3_NAMESPACE  "http://s3.amazonaws.com/doc/2006-03-01/"
#define XSI_NAMESPACE "http://www.w3.org/2001/XMLSchema-instance"

/* Parses the text; its root must be named `root`. ERR_NO_MEMORY: the arena's limit is reached. */
int document_read(struct xml_node **out, struct arena *a, struct str text, const char *root,
                  struct err *err) MUST_CHECK;

/* Checks which children an element has. "Key! ID? Tag* Rule+" means exactly one Key, at most one
 * ID, any number of Tag, at least one Rule, and no other child. */
int document_shape(const struct xml_node *node, const char *shape, struct err *err) MUST_CHECK;

size_t document_count(const struct xml_node *node, const char *name);

/* Reads the value of the child `name`, "true" or "false" in any case. Without such a child *out is
 * `fallback`. */
int document_bool(const struct xml_node *node, const char *name, bool fallback, bool *out,
                  struct err *err) MUST_CHECK;

/* Reads the value of the child `name`, a whole number. Without such a child *out is not changed. */
int document_i64(const struct xml_node *node, const char *name, int64_t *out,
                 struct err *err) MUST_CHECK;

/* Returns the index of `text` in a list of `count` names, or -1. */
int document_choice(struct str text, const char *const *names, size_t count);

/* Writes the prolog, and the root's opening tag with S3's namespace. */
void document_open(struct buf *out, const char *root);

#endif
