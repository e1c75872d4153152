/* The walk over the segments that makes one page of a sharded bucket's listing (list.c). */
#ifndef SHARD_LIST_INT_H
#define SHARD_LIST_INT_H

#include "base/vec.h"
#include "shard/bucket_int.h"

/* An entry of a listing: an object or a version, an upload, or a common prefix. */
struct listed {
    struct str key;
    struct str version;               /* version of the object, or id of the upload */
    const struct list_entry *entry;   /* set for objects, versions, and their common prefixes */
    const struct upload_info *upload; /* set for uploads */
    bool is_prefix;
};

struct listed_page {
    struct listed *entries;
    size_t count;
    bool more;
};

/* Asks one shard for a page of its listing. The page is in the arena. */
typedef int listing_ask_fn(struct bucket *shard, struct arena *a, const struct list_options *o,
                           struct listed_page *out, struct err *err);

struct listing {
    struct sharded_bucket *b;
    listing_ask_fn *ask;
    struct arena *a; /* holds the result, and all strings below */
    const struct list_options *o;
    bool by_version; /* after_version is used */
    size_t limit;
    VEC(struct listed) found;
    bool more;

    /* The place that the walk has reached: all keys up to `done` are listed, or are not to be
     * listed. */
    struct str done;
    /* The key and version after which the next shard begins its listing (list_options). They mean
     * the place `done`, in the form that the client or a shard gave: a common prefix stands for all
     * keys under it. */
    struct str after, after_version;
    bool at_boundary; /* `after` is the end of a segment, not an entry */
    bool ended;
};

/* Asks for the current versions of objects, as list() does. */
listing_ask_fn listing_ask_objects;
/* Makes the page. The caller has set the members before `found`, and releases `found`. */
int listing_run(struct listing *l, struct err *err) MUST_CHECK;

#endif
