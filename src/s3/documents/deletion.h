/* The document of DeleteObjects: which keys, and how they are answered. */
#ifndef S3_DOCUMENTS_DELETION_H
#define S3_DOCUMENTS_DELETION_H

#include "meta/document.h"

enum { DELETION_MAX_KEYS = 1000 };

struct deletion {
    struct xml_node *root; /* its children are `count` Objects, each with one Key, and Quiet */
    struct str *keys;      /* in the document's order */
    size_t count;
    bool quiet; /* only failures are answered */
};

/* All of it lives in the arena. MalformedXML: an Object without a Key or with two, an empty Key, an
 * element that S3 has not, elements inside a Key, no Object or more than DELETION_MAX_KEYS. */
int deletion_read(struct deletion *out, struct arena *a, struct str text,
                  struct err *err) MUST_CHECK;

/* Writes the document anew: without comments, prefixes, attributes, CDATA and empty elements, so
 * that every reader finds the keys and versions that were found here. */
void deletion_write(struct buf *out, const struct deletion *d);

#endif
