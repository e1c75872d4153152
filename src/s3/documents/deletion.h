/* The document of DeleteObjects: the keys to delete, and whether successes are reported. */
#ifndef S3_DOCUMENTS_DELETION_H
#define S3_DOCUMENTS_DELETION_H

#include "meta/document.h"

enum { DELETION_MAX_KEYS = 1000 };

struct deletion {
    struct xml_node *root; /* its children are `count` elements Object, and perhaps one Quiet */
    struct str *keys;      /* in the document's order */
    size_t count;
    bool quiet; /* the answer lists only failures */
};

/* Reads the document; the result lives in the arena. MalformedXML: an Object without a Key or with
 * two Keys, an empty Key, an element that S3 does not know, elements inside a Key, no Object, or
 * more than DELETION_MAX_KEYS Objects. */
int deletion_read(struct deletion *out, struct arena *a, struct str text,
                  struct err *err) MUST_CHECK;

/* Writes the document without comments, prefixes, attributes, CDATA and empty elements, so that
 * every other reader finds the same keys and versions as weir. */
void deletion_write(struct buf *out, const struct deletion *d);

#endif
