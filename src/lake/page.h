/* Pages of paths, for listings and differences. A page has the paths that begin with `prefix` and
 * are greater than `after`. If a path has the delimiter somewhere after `prefix`, the page shows
 * its beginning up to the delimiter instead, its common prefix, once for all paths that have it. */
#ifndef LAKE_PAGE_H
#define LAKE_PAGE_H

#include "lake/lake.h"

/* The source of a page's paths. Paths come in ascending order. */
struct page_source {
    /* Gives the next path. ERR_END: there are no more. */
    int (*next)(void *ctx, struct str *path, struct err *err);
    /* Moves the source: the next path is the first one at or after `path`. */
    void (*seek)(void *ctx, struct str path);
    /* Adds a result to the page. `path` is the path that next() returned last, or its common prefix
     * (`is_prefix`). */
    int (*add)(void *ctx, struct str path, bool is_prefix, struct err *err);
    void *ctx;
};

/* Gives the first path that the page may have. ERR_END: the page is empty. */
int page_start(struct arena *a, const struct lake_list_options *o, struct str *from,
               struct err *err) MUST_CHECK;
/* Returns the largest number of results that the page may have. */
size_t page_limit(const struct lake_list_options *o);
/* Fills the page. *last is the last path or prefix that was added, in the arena. It is the `after`
 * of the next page. */
int page_fill(struct arena *a, const struct lake_list_options *o, const struct page_source *from,
              bool *more, struct str *last, struct err *err) MUST_CHECK;

#endif
