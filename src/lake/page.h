/* Pages of paths, for listings and differences: they begin behind `after`, have paths that begin
 * with `prefix`, and fold the paths that have the delimiter behind the prefix into common prefixes.
 */
#ifndef LAKE_PAGE_H
#define LAKE_PAGE_H

#include "lake/lake.h"

/* What a page is made from. Paths come in their order. */
struct page_source {
    /* Gives the next path. ERR_END: there are no more. */
    int (*next)(void *ctx, struct str *path, struct err *err);
    /* The next path is the first one at or behind `path`. */
    void (*seek)(void *ctx, struct str path);
    /* Adds the path that next() gave last, or the common prefix that it is folded into. */
    int (*add)(void *ctx, struct str path, bool is_prefix, struct err *err);
    void *ctx;
};

/* The first path that the page may have. ERR_END: no path can be on it. */
int page_start(struct arena *a, const struct lake_list_options *o, struct str *from,
               struct err *err) MUST_CHECK;
/* The number of results that a page has at most. */
size_t page_limit(const struct lake_list_options *o);
/* Fills the page. *last is the last path or prefix that was added, in the arena: `after` of the
 * next page. */
int page_fill(struct arena *a, const struct lake_list_options *o, const struct page_source *from,
              bool *more, struct str *last, struct err *err) MUST_CHECK;

#endif
