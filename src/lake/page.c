/* Fills pages of paths, by prefix, delimiter and the path after which the page begins. */
#include "lake/page.h"
#include "lake/layers.h"

size_t page_limit(const struct lake_list_options *o)
{
    return size_min(o->limit, LAKE_LIST_MAX);
}

/* Returns the common prefix into which a path is folded; empty: there is none. */
static struct str page_common(const struct lake_list_options *o, struct str path)
{
    ptrdiff_t at = o->delimiter.len ? str_find(str_skip(path, o->prefix.len), o->delimiter) : -1;

    return at < 0 ? STR_EMPTY : str_head(path, o->prefix.len + (size_t)at + o->delimiter.len);
}

int page_start(struct arena *a, const struct lake_list_options *o, struct str *from,
               struct err *err)
{
    *from = STR_EMPTY;
    if (o->after.len == 0)
        return 0;
    /* `after` is a common prefix with which the last page ended, so all paths with that prefix are
     * skipped. */
    if (str_starts(o->after, o->prefix) && str_eq(page_common(o, o->after), o->after)) {
        if (!layers_behind(a, o->after, from))
            return ERR_END;
    } else { /* the smallest path that is greater than `after` is `after` with a NUL added */
        char *copy = arena_z(a, o->after);
        *from = str_n(copy, copy ? o->after.len + 1 : 0);
    }
    int code = arena_error(a);
    return code < 0 ? err_code(err, code) : 0;
}

int page_fill(struct arena *a, const struct lake_list_options *o, const struct page_source *from,
              bool *more, struct str *last, struct err *err)
{
    size_t count = 0, limit = page_limit(o);
    struct str path, behind;
    int code;

    *more = false;
    *last = o->after;
    while ((code = from->next(from->ctx, &path, err)) == 0) {
        if (count == limit) {
            *more = true;
            return 0;
        }
        struct str common = page_common(o, path);
        *last = arena_str(a, common.len ? common : path);
        if ((code = arena_error(a)) == 0)
            code = from->add(from->ctx, *last, common.len > 0, err);
        if (code < 0)
            return code;
        count++;
        if (common.len && !layers_behind(a, *last, &behind))
            return 0;
        if (common.len)
            from->seek(from->ctx, behind);
    }
    return code == ERR_END ? 0 : code;
}
