/* Pages of paths, for listings and differences. A page has the paths that begin with `prefix` and
 * are greater than `after`. Paths that have the delimiter somewhere after the prefix are folded
 * into common prefixes. */
#ifndef LAKE_PAGE_H
#define LAKE_PAGE_H

#include "lake/lake.h"

/* The source of a page's paths. Paths come in ascending order. */
struct page_source {
    /* Gives the next path. ERR_END: there are no more. */
    int (*next)(void *ctx, struct str *path, struct err *err);
    /* Moves the source: the next path is the first one at or after `path`. */
    void (*seek)(void *ctx, struct str path);
    /* Adds a result to the page: the path that next() returned last, or the common prefix into
     * which that path is folded. */
    int (*add)(void *ctx, struct str path, bool is_prefix, struct err *err);
    void *ctx;
};

/* Gives the first path that the page may have. ERR_END: no path can be on the page. */
int page_start(struct arena *a, const struct lake_list_options *o, struct str *from,
               struct err *err) MUST_CHECK;
/* Returns the largest number of results that the page may have. */
size_t page_limit(const struct lake_list_options *o);
/* Fills the page. *last is the last path or prefix that was added, in the arena; it is `after` of
 * the next page. */
int page_fill(struct arena *a, const struct lake_list_options *o, const struct page_source *from,
              bool *more, struct str *last, struct err *err) MUST_CHECK;

#endif
