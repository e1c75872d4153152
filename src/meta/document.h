/* What all XML documents of S3 share: the checked root, the shape of an element, numbers, the
 * namespace. What does not fit is MalformedXML, with words that say where. */
#ifndef META_DOCUMENT_H
#define META_DOCUMENT_H

#include "base/xml.h"
#include "meta/error.h"

#define S3_NAMESPACE  "http://s3.amazonaws.com/doc/2006-03-01/"
#define XSI_NAMESPACE "http://www.w3.org/2001/XMLSchema-instance"

/* The root, which must be named `root`. ERR_NO_MEMORY past the arena. */
int document_read(struct xml_node **out, struct arena *a, struct str text, const char *root,
                  struct err *err) MUST_CHECK;

/* The children that an element may have, by name: "Key! Value! ID? Tag* Rule+" are exactly one,
 * exactly one, at most one, any number, at least one. Any other child is malformed. */
int document_shape(const struct xml_node *node, const char *shape, struct err *err) MUST_CHECK;

size_t document_count(const struct xml_node *node, const char *name);

/* Exactly "true" or "false" (any case, as S3 takes it); `fallback` when there is no such child. */
int document_bool(const struct xml_node *node, const char *name, bool fallback, bool *out,
                  struct err *err) MUST_CHECK;

/* A whole number; *out is not touched when there is no such child. */
int document_i64(const struct xml_node *node, const char *name, int64_t *out,
                 struct err *err) MUST_CHECK;

/* The position of `text` in a list of `count` names, or -1. */
int document_choice(struct str text, const char *const *names, size_t count);

/* The prolog and the root's opening tag with S3's namespace. */
void document_open(struct buf *out, const char *root);

#endif
