/* Tags of objects and buckets: the XML document, the header x-amz-tagging, and the stored form,
 * which is "k=v&k2=v2", URL-encoded, in the order of the keys.
 *
 * A set is checked as a whole: limits, characters, no key twice. Strings live in the arena. */
#ifndef META_TAGGING_H
#define META_TAGGING_H

#include "base/arena.h"
#include "base/buf.h"
#include "meta/error.h"

enum { TAG_KEY_MAX = 128, TAG_VALUE_MAX = 256 /* characters */ };
enum tag_limit { TAGS_OF_OBJECT = 10, TAGS_OF_BUCKET = 50 };

struct tag {
    struct str key, value;
};

struct tag_set {
    struct tag *tags;
    size_t count;
};

/* Reads <Tagging>. MalformedXML: the document is not valid. InvalidTag: a tag is not valid, or
 * there are more than `limit` tags. */
int tagging_read(struct tag_set *out, struct arena *a, struct str xml, enum tag_limit limit,
                 struct err *err) MUST_CHECK;

/* Reads the form of the header x-amz-tagging. InvalidArgument: the text is not "k=v&...".
 * InvalidTag: as for tagging_read(). */
int tagging_parse(struct tag_set *out, struct arena *a, struct str query, enum tag_limit limit,
                  struct err *err) MUST_CHECK;

/* Appends the stored form, which tagging_parse() reads back. */
void tagging_encode(struct buf *out, const struct tag_set *set);

/* Returns the stored form of an object's tags, in the arena. */
struct str tagging_text(struct arena *a, const struct tag_set *set);

/* Appends the tags as <Tagging>. */
void tagging_write(struct buf *out, const struct tag_set *set);

/* Checks one tag by itself. InvalidTag: its key or value is not allowed. */
int tag_check(const struct tag *tag, struct err *err) MUST_CHECK;

/* Sets *value to the value of the tag with this key. False: there is no such tag. */
bool tagging_find(const struct tag_set *set, struct str key, struct str *value);

#endif
